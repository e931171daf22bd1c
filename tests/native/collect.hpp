// What a pipeline gives, as the plain values of naive_pipeline.hpp, and what holds of all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "naive_pipeline.hpp"
#include "scan/pipeline.hpp"

struct Collecting {
  std::vector<Event> events;

  void words(const bpe_beam::TextView& text, std::span<const bpe_beam::Word> words) {
    CHECK(!words.empty() && words.size() <= bpe_beam::Pipeline::kWords);
    for (const bpe_beam::Word& word : words) {
      CHECK(word.begin < word.end && word.end <= text.bytes.size());
      events.push_back({NaiveCut::kPlain, NaivePiece::of(text.sub(word.begin, word.end))});
    }
  }
  void added(std::uint32_t id, const bpe_beam::TextView& text) {
    CHECK(!text.bytes.empty());
    events.push_back({id, NaivePiece::of(text)});
  }
};

/// Checks that it is the same without origins, and that all places lie within the text and on
/// borders of its characters.
inline std::vector<Event> events_of(const bpe_beam::Pipeline& pipeline, std::string_view bytes,
                                    const std::vector<std::uint32_t>& allowed,
                                    bpe_beam::PipelineState& state) {
  const ExactCopy text(bytes);
  Collecting placed, plain;
  pipeline.run(text.view(), allowed, true, state, placed);
  pipeline.run(text.view(), allowed, false, state, plain);
  CHECK(placed.events.size() == plain.events.size());
  const NaiveCharacters characters(bytes);
  for (std::size_t i = 0; i < placed.events.size(); ++i) {
    const Event& event = placed.events[i];
    CHECK(event.id == plain.events[i].id && event.text.bytes == plain.events[i].text.bytes);
    for (const bpe_beam::Origin& origin : event.text.origins) {
      CHECK(origin.begin <= origin.end && origin.end <= bytes.size());
      CHECK(characters.is_border(origin.begin) && characters.is_border(origin.end));
    }
    CHECK(event.text.place() == bpe_beam::origin_of(event.text.view()));
    CHECK(event.text.place().begin <= event.text.place().end);
  }
  return placed.events;
}

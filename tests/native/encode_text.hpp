// What an encoder makes of a text, with and without places, and the same by the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/text_encoder.hpp"
#include "exact_copy.hpp"
#include "naive_models.hpp"
#include "naive_pipeline.hpp"

/// Ids and places; if a word has no encoding, those before it, and the place of what is missing.
struct EncodedText {
  Ids ids;
  std::vector<bpe_beam::Origin> places;
  bool missing = false;
  bpe_beam::Origin missing_place;
  bool operator==(const EncodedText&) const = default;
};

inline EncodedText encoded(const PipelineSpec& pipeline, const NaiveModel& model,
                           std::string_view text, const std::vector<std::uint32_t>& allowed) {
  EncodedText result;
  for (const Event& event : pipeline.run(text, allowed)) {
    if (event.id != NaiveCut::kPlain) {
      result.ids.push_back(event.id);
      result.places.push_back(event.text.place());
      continue;
    }
    try {
      std::size_t at = 0, end = 0;
      for (const Symbol& symbol : model.encode(event.text.bytes)) {
        // At the word's end is no character whose place an empty range could have.
        const bool after_all = symbol.size == 0 && end == event.text.bytes.size();
        if (symbol.size != bpe_beam::ModelState::kSameBytes && !after_all) {
          at = end;
          end += symbol.size;
        }
        result.ids.push_back(symbol.id);
        const std::size_t before = at < end ? 0 : event.text.origins[at].begin;
        result.places.push_back(at < end ? event.text.part(at, end).place()
                                         : bpe_beam::Origin{before, before});
      }
    } catch (const bpe_beam::MissingSymbol& missing) {
      result.missing = true;
      result.missing_place = event.text.part(missing.begin, missing.end).place();
      return result;
    }
  }
  return result;
}

/// Checks that ids are the same without places, also out of the cache; that places lie within the
/// text, on borders of its characters.
inline EncodedText encoded(const bpe_beam::TextEncoder& encoder, std::string_view bytes,
                           const std::vector<std::uint32_t>& allowed,
                           bpe_beam::EncodingState& state) {
  const ExactCopy text(bytes);
  EncodedText result;
  bpe_beam::IdsWithOffsets placed;
  try {
    encoder.encode_with_offsets(text.view(), allowed, state, placed);
  } catch (const bpe_beam::MissingSymbol& missing) {
    result.missing = true;
    result.missing_place = {missing.begin, missing.end};
  }
  result.ids = placed.ids;
  CHECK(placed.begins.size() == placed.ids.size() && placed.ends.size() == placed.ids.size());
  const NaiveCharacters characters(bytes);
  const auto check = [&](const bpe_beam::Origin& place) {
    CHECK(place.begin <= place.end && place.end <= bytes.size());
    CHECK(characters.is_border(place.begin) && characters.is_border(place.end));
  };
  for (std::size_t i = 0; i < placed.ids.size(); ++i) {
    result.places.push_back({placed.begins[i], placed.ends[i]});
    check(result.places.back());
  }
  check(result.missing_place);
  // Twice: the second time short words come out of the cache.
  for (int round = 0; round < 2; ++round) {
    bpe_beam::IdBuffer buffer;
    buffer.push_back(77);
    bool missing = false;
    try {
      encoder.encode(text.view(), allowed, state, buffer);
    } catch (const bpe_beam::MissingSymbol& place) {
      missing = true;
      CHECK((bpe_beam::Origin{place.begin, place.end} == result.missing_place));
    }
    CHECK(missing == result.missing);
    const auto ids = buffer.ids();
    CHECK(ids[0] == 77 && Ids(ids.begin() + 1, ids.end()) == result.ids);
  }
  return result;
}

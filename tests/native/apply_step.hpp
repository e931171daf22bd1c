// A normalizer's result as plain values: the text, and the places of its characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "normalize/normalizers.hpp"

/// A character of the result and its offset in the input.
struct Placed {
  std::string character;
  std::size_t begin;
  std::size_t end;
  bool operator==(const Placed&) const = default;
};

/// The places of the characters of a text that is not yet changed.
inline std::vector<bpe_beam::Origin> own_places(std::string_view text) {
  std::vector<bpe_beam::Origin> origins;
  while (origins.size() < text.size()) {
    const std::size_t at = origins.size();
    const std::size_t size =
        bpe_beam::decode_utf8(text.data() + at, text.data() + text.size()).size;
    origins.insert(origins.end(), size, {at, at + size});
  }
  return origins;
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto point = bpe_beam::decode_utf8(text.data() + at, text.data() + text.size());
    if (point.value == bpe_beam::kMalformed) return false;
    at += point.size;
  }
  return true;
}

/// The result with places. Checks that it is the same without, that places lie within the text, and
/// that every byte of a character has the character's; where what stood between two malformed bytes
/// goes, they may become one character.
inline std::vector<Placed> places_of(const bpe_beam::Normalizer& step, std::string_view text) {
  const ExactCopy copy(text);
  const std::vector<bpe_beam::Origin> origins = own_places(text);
  bpe_beam::TextBuffer out, plain;
  out.clear(true);
  step.apply({copy.view(), origins.data()}, out);
  plain.clear(false);
  step.apply({copy.view(), nullptr}, plain);
  const bool valid = is_utf8(text);
  const bpe_beam::TextView view = out.view();
  CHECK(view.bytes == plain.view().bytes && plain.view().origins == nullptr);
  std::vector<Placed> placed;
  for (std::size_t at = 0; at < view.bytes.size();) {
    const std::size_t size =
        bpe_beam::decode_utf8(view.bytes.data() + at, view.bytes.data() + view.bytes.size()).size;
    const bpe_beam::Origin& place = view.origins[at];
    CHECK(place.begin <= place.end && place.end <= text.size());
    for (std::size_t i = 1; valid && i < size; ++i) CHECK(view.origins[at + i] == place);
    placed.push_back({std::string(view.bytes.substr(at, size)), place.begin, place.end});
    at += size;
  }
  return placed;
}

inline std::string text_of(const bpe_beam::Normalizer& step, std::string_view text) {
  std::string joined;
  for (const Placed& placed : places_of(step, text)) joined += placed.character;
  return joined;
}

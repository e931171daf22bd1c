// What a model makes of one word, or why it makes nothing, as a plain value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "check.hpp"
#include "encode/id_buffer.hpp"
#include "encode/word_cache.hpp"
#include "encode/word_model.hpp"
#include "exact_copy.hpp"
#include "naive_models.hpp"

struct Encoded {
  Symbols symbols;
  bool missing = false;
  std::size_t begin = 0;  // of what is missing
  std::size_t end = 0;
  bool operator==(const Encoded&) const = default;
};

template <typename Encode>
Encoded result_of(Encode encode) {
  try {
    return {encode()};
  } catch (const bpe_beam::MissingSymbol& missing) {
    return {{}, true, missing.begin, missing.end};
  }
}

/// Checks that ids are the same with and without sizes, and that sizes add up to the word. The
/// bytes of a prefix or suffix have size 0.
inline Encoded encoded(const bpe_beam::WordModel& model, std::string_view word) {
  const ExactCopy copy(word);
  bpe_beam::ModelState state;
  // What another word has left behind.
  state.ids = state.sizes = state.ranks = {7, 7, 7, 7, 7};
  const Encoded with_sizes = result_of([&] {
    model.encode(copy.view(), true, state);
    CHECK(state.ids.size() == state.sizes.size());
    Symbols symbols;
    std::size_t total = 0;
    for (std::size_t i = 0; i < state.ids.size(); ++i) {
      symbols.push_back({state.ids[i], state.sizes[i]});
      if (state.sizes[i] != bpe_beam::ModelState::kSameBytes) total += state.sizes[i];
    }
    CHECK(total == word.size());
    return symbols;
  });
  const Encoded ids_only = result_of([&] {
    model.encode(copy.view(), false, state);
    CHECK(state.ids == ids_of(with_sizes.symbols));
    return with_sizes.symbols;
  });
  CHECK(ids_only == with_sizes);
  return with_sizes;
}

/// The same from the definition.
inline Encoded encoded(const NaiveModel& model, std::string_view word) {
  return result_of([&] { return model.encode(std::string(word)); });
}

/// The ids of a model that caches parts of words.
inline Ids cached_ids(const bpe_beam::WordModel& model, std::string_view word,
                      bpe_beam::WordCache& cache) {
  const ExactCopy copy(word);
  bpe_beam::ModelState state;
  bpe_beam::IdBuffer out;
  out.push_back(99);  // of what is before the word
  model.encode_cached(copy.view(), cache, state, out);
  const auto ids = out.ids();
  CHECK(ids[0] == 99);
  return {ids.begin() + 1, ids.end()};
}

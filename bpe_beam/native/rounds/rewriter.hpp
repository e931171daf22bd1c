// Applies batches of merges to packed words.
//
// A word in which nothing is merged is copied as bytes. PairSides rules out most boundaries without
// a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "count/packed_words.hpp"
#include "encode/bpe_merges.hpp"
#include "encode/word_model.hpp"
#include "rounds/pair_sides.hpp"

namespace bpe_beam {

class Rewriter {
 public:
  /// Adds a batch, which is applied to each word after the batches before it.
  void add_batch(std::span<const MergeRow> merges) {
    Batch& batch = batches_.emplace_back(BpeMerges(merges, false));
    for (const MergeRow& merge : merges) batch.sides.add(merge.left, merge.right);
  }

  /// Returns the words after the merges, in their order, without words of fewer than two symbols.
  [[nodiscard]] PackedColumns rewrite(const PackedWords& words) const {
    PackedColumns out;
    out.data.reserve(words.bytes());
    State state;
    for (std::size_t word = 0; word < words.size(); ++word) {
      check_count(words.counts[word], word);
      state.model.ids.clear();
      unpack_word(words, word, state.model.ids);
      if (state.model.ids.size() >= kNoId) throw std::length_error("a word of 2^32 symbols");
      const bool changed = apply(state.model);
      if (state.model.ids.size() < 2) continue;
      if (changed) {
        append_packed(state.model.ids, state.scratch, out.data);
      } else {
        out.data.append(words.begin(word),
                        static_cast<std::size_t>(words.end(word) - words.begin(word)));
      }
      out.end_word(words.counts[word]);
    }
    return out;
  }

 private:
  struct Batch {
    explicit Batch(BpeMerges rows) : merges(std::move(rows)) {}
    BpeMerges merges;
    PairSides sides;
  };

  struct State {
    ModelState model;
    std::vector<char> scratch;
  };

  /// Returns whether a pair was merged.
  bool apply(ModelState& state) const {
    bool changed = false;
    for (const Batch& batch : batches_) {
      if (!look_up_ranks(batch, state)) continue;
      batch.merges.apply(false, state);
      changed = true;
    }
    return changed;
  }

  /// Fills state.ranks; returns whether there is a pair to merge.
  static bool look_up_ranks(const Batch& batch, ModelState& state) {
    const std::size_t size = state.ids.size();
    if (size < 2) return false;
    state.ranks.resize(size);
    bool any = false;
    for (std::size_t i = 0; i + 1 < size; ++i) {
      state.ranks[i] = BpeMerges::kNoRank;
      if (!batch.sides.may_hold(state.ids[i], state.ids[i + 1])) continue;
      state.ranks[i] = batch.merges.rank(state.ids[i], state.ids[i + 1]);
      any |= state.ranks[i] != BpeMerges::kNoRank;
    }
    state.ranks[size - 1] = BpeMerges::kNoRank;
    return any;
  }

  std::vector<Batch> batches_;
};

}  // namespace bpe_beam

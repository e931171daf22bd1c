// Byte-pair encoding as in SentencePiece: scores decide, and several pieces may have the same
// score.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/byte_trie.hpp"
#include "encode/pair_ranks.hpp"
#include "encode/word_model.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Merges; several merges that make different tokens may have the same rank.
class TiedMerges {
 public:
  /// `ranks`: of each merge. A pair listed twice counts as its last merge.
  TiedMerges(std::span<const MergeRow> merges, std::span<const std::uint32_t> ranks)
      : rows_(merges.size(), most_id(merges)), ranks_(ranks.begin(), ranks.end()) {
    if (ranks.size() != merges.size()) throw std::invalid_argument("a rank for each merge");
    for (const MergeRow& merge : merges) {
      rows_.set(merge.left, merge.right, static_cast<std::uint32_t>(joined_.size()));
      joined_.push_back(merge.joined);
    }
  }

  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    const std::uint32_t row = rows_.find(left, right);
    return row == PairRanks::kNone ? PairRanks::kNone : ranks_[row];
  }

  /// What a pair that merges becomes.
  [[nodiscard]] std::uint32_t joined(std::uint32_t left, std::uint32_t right) const {
    return joined_[rows_.find(left, right)];
  }

 private:
  static std::uint32_t most_id(std::span<const MergeRow> merges) {
    std::uint32_t most = 0;
    for (const MergeRow& merge : merges) most = std::max({most, merge.left, merge.right});
    return most;
  }

  PairRanks rows_;  // pairs to numbers of merges
  std::vector<std::uint32_t> ranks_;
  std::vector<std::uint32_t> joined_;
};

class SentencePieceBpe : public WordModel {
 public:
  /// `symbols`: the symbols into which a text is split first, from the left the longest:
  /// characters, and user-defined texts, whose ids no merge has. `unk`: the id of a run of unknown
  /// characters. `byte_ids`: the ids of the bytes that replace an unknown character instead, or
  /// none.
  SentencePieceBpe(TiedMerges merges, const TokenIds& symbols, std::uint32_t unk,
                   std::vector<std::uint32_t> byte_ids)
      : merges_(std::move(merges)), symbols_(symbols), unk_(unk), byte_ids_(std::move(byte_ids)) {}

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    state.ids.clear();
    state.sizes.clear();
    bool after_unknown = false;
    for (std::size_t at = 0; at < word.size();) {
      const std::string_view rest = word.substr(at);
      const ByteTrie::Match symbol = symbols_.longest(rest);
      const bool known = symbol.size > 0;
      const std::size_t size =
          known ? symbol.size : decode_utf8(rest.data(), rest.data() + rest.size()).size;
      if (known) {
        add(symbol.id, size, state);
      } else if (!byte_ids_.empty()) {
        for (const char byte : rest.substr(0, size)) {
          add(byte_ids_[static_cast<unsigned char>(byte)], 1, state);
        }
      } else if (after_unknown) {
        state.sizes.back() += static_cast<std::uint32_t>(size);
      } else {
        add(unk_, size, state);
      }
      after_unknown = !known;
      at += size;
    }
    merge(with_sizes, state);
  }

 private:
  static void add(std::uint32_t id, std::size_t size, ModelState& state) {
    state.ids.push_back(id);
    state.sizes.push_back(static_cast<std::uint32_t>(size));
  }

  void merge(bool with_sizes, ModelState& state) const {
    const std::size_t size = state.ids.size();
    state.ranks.assign(size, PairRanks::kNone);
    for (std::size_t i = 0; i + 1 < size; ++i) {
      state.ranks[i] = merges_.rank(state.ids[i], state.ids[i + 1]);
    }
    Merging(merges_).apply(with_sizes, state);
  }

  TiedMerges merges_;
  ByteTrie symbols_;
  std::uint32_t unk_;
  std::vector<std::uint32_t> byte_ids_;
};

}  // namespace bpe_beam

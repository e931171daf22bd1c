// Unigram encoding: a word is cut into the pieces with the highest sum of scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/byte_trie.hpp"
#include "encode/word_model.hpp"
#include "text/deadline.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Doubles are added in the same order as in Hugging Face's Unigram, so sums and ties are equal: if
/// two sums are equal, the one whose last piece begins first counts. A character that is not a
/// piece is unknown, with the lowest score minus kUnknownPenalty; unknown neighbours are one token.
///
/// The time is linear in the word for a given vocabulary: at most its longest piece for each
/// character.
class UnigramModel : public WordModel {
 public:
  /// `pieces`: if two are equal, the last counts; `scores`: by id. `unk`: the unknown piece's id,
  /// kNoId if there is none. `byte_ids`: the ids of the bytes of an unknown token, kNoId for a byte
  /// without an id; or empty.
  UnigramModel(const TokenIds& pieces, std::vector<double> scores, std::uint32_t unk,
               std::vector<std::uint32_t> byte_ids)
      : trie_(pieces), scores_(std::move(scores)), unk_(unk), byte_ids_(std::move(byte_ids)) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : scores_) lowest = std::min(lowest, score);
    unknown_score_ = lowest - kUnknownPenalty;
  }

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    (void)with_sizes;  // they cost little here
    find_best(word, state.best);
    state.ids.clear();
    state.sizes.clear();
    for (std::size_t end = word.size(); end > 0;) {
      std::size_t begin = state.best[end].begin;
      if (state.best[end].id != unk_) {
        add(state.best[end].id, end - begin, state);
      } else {
        while (begin > 0 && state.best[begin].id == unk_) begin = state.best[begin].begin;
        add_unknown(word.substr(begin, end - begin), state);
      }
      end = begin;
    }
    std::reverse(state.ids.begin(), state.ids.end());
    std::reverse(state.sizes.begin(), state.sizes.end());
  }

 private:
  static constexpr double kUnknownPenalty = 10.0;
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up

  using Best = ModelState::BestPiece;

  /// For each byte at which a piece can end, the last piece of the best way there.
  void find_best(std::string_view word, std::vector<Best>& best) const {
    best.assign(word.size() + 1, Best{0, kNoId, kNoId});
    for (std::size_t begin = 0; begin < word.size();) {
      const double before = best[begin].score;
      const auto offer = [&](std::size_t end, double score, std::uint32_t id) {
        Best& current = best[end];
        const double sum = score + before;
        if (current.begin != kNoId && !(sum > current.score)) return;
        if (id == kNoId) throw MissingSymbol{begin, end};
        current = {sum, static_cast<std::uint32_t>(begin), id};
      };
      const std::size_t size = decode_utf8(word.data() + begin, word.data() + word.size()).size;
      bool is_piece = false;
      std::size_t at = begin;
      for (std::uint32_t node = ByteTrie::kRoot; at < word.size();) {
        node = trie_.child(node, word[at]);
        if (node == ByteTrie::kNone) break;
        ++at;
        const std::uint32_t id = trie_.id_at(node);
        if (id == kNoId) continue;
        offer(at, scores_[id], id);
        is_piece = is_piece || at - begin == size;
      }
      if (at - begin > kShortWalk) [[unlikely]]
        Deadline::spend(10 * (at - begin));
      if (!is_piece) offer(begin + size, unknown_score_, unk_);
      begin += size;
    }
  }

  static void add(std::uint32_t id, std::size_t size, ModelState& state) {
    state.ids.push_back(id);
    state.sizes.push_back(static_cast<std::uint32_t>(size));
  }

  /// Adds, from the last to the first, the tokens of unknown characters. Joined they may be a piece
  /// whose score was not better.
  void add_unknown(std::string_view characters, ModelState& state) const {
    const std::uint32_t id = trie_.find(characters);
    if (id != kNoId) return add(id, characters.size(), state);
    if (!has_bytes(characters)) return add(unk_, characters.size(), state);
    for (std::size_t i = characters.size(); i-- > 0;) {
      const std::size_t size = i == 0 ? characters.size() : ModelState::kSameBytes;
      add(byte_ids_[static_cast<unsigned char>(characters[i])], size, state);
    }
  }

  /// Returns whether all these bytes have tokens.
  [[nodiscard]] bool has_bytes(std::string_view characters) const {
    return !byte_ids_.empty() && std::all_of(characters.begin(), characters.end(), [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)] != kNoId;
    });
  }

  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  std::uint32_t unk_;
  std::vector<std::uint32_t> byte_ids_;
};

}  // namespace bpe_beam

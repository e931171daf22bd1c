// Unigram encoding as SentencePiece does it, in the floats that it adds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/byte_trie.hpp"
#include "encode/word_model.hpp"
#include "text/deadline.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// A piece that is found in texts.
struct ScoredPiece {
  std::string text;
  std::uint32_t id;
  float score;
  bool user_defined;  // its score follows from its length instead
};

/// The sums are those of SentencePiece 0.2.3, in 32 bits: of two equal ones the one whose last piece
/// begins first counts, and a sum that grows large is taken from those that lie ahead. So the ids of
/// a long text depend on where it begins: it is one word.
class SentencePieceUnigram : public WordModel {
 public:
  /// `unk`: the id of an unknown character. `byte_ids`: the ids of the bytes that stand for one, or
  /// none; unknown neighbours are then one token.
  SentencePieceUnigram(std::vector<ScoredPiece> pieces, std::uint32_t unk,
                       std::vector<std::uint32_t> byte_ids)
      : trie_(numbered(pieces)), pieces_(std::move(pieces)), unk_(unk),
        byte_ids_(std::move(byte_ids)) {
    float lowest = std::numeric_limits<float>::max();
    for (ScoredPiece& piece : pieces_) {
      if (piece.user_defined) {
        piece.score = static_cast<float>(0.1 * (static_cast<double>(piece.text.size()) - 1));
      } else {
        lowest = std::min(lowest, piece.score);
      }
      piece.text = {};
    }
    unknown_score_ = lowest - kUnknownPenalty;
  }

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    (void)with_sizes;  // they cost little here
    find_best(word, state.best);
    state.ids.clear();
    state.sizes.clear();
    for (std::size_t end = word.size(); end > 0;) {
      const std::size_t begin = state.best[end].begin;
      const std::uint32_t piece = state.best[end].id;
      if (piece != kUnknown) {
        add(pieces_[piece].id, end - begin, state);
      } else {
        add_unknown(word.substr(begin, end - begin), end == word.size(), state);
      }
      end = begin;
    }
    std::reverse(state.ids.begin(), state.ids.end());
    std::reverse(state.sizes.begin(), state.sizes.end());
  }

 private:
  static constexpr float kUnknownPenalty = 10.0F;
  static constexpr float kLargeSum = 100'000.0F;
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFE;
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up

  using Best = ModelState::BestPiece;

  static TokenIds numbered(const std::vector<ScoredPiece>& pieces) {
    TokenIds numbers;
    for (const ScoredPiece& piece : pieces) {
      numbers.emplace_back(piece.text, static_cast<std::uint32_t>(numbers.size()));
    }
    return numbers;
  }

  /// For each byte at which a piece can end, the number of the last piece of the best way there.
  void find_best(std::string_view word, std::vector<Best>& best) const {
    best.assign(word.size() + 1, Best{0, kNoId, kNoId});
    std::size_t farthest = 0;  // end of a piece
    for (std::size_t begin = 0; begin < word.size();) {
      if (std::abs(best[begin].score) > kLargeSum) take_off(begin, farthest, best);
      const auto before = static_cast<float>(best[begin].score);
      const auto offer = [&](std::size_t end, float score, std::uint32_t piece) {
        farthest = std::max(farthest, end);
        Best& found = best[end];
        const float sum = score + before;
        if (found.begin != kNoId && !(sum > static_cast<float>(found.score))) return;
        found = {sum, static_cast<std::uint32_t>(begin), piece};
      };
      const std::size_t size = decode_utf8(word.data() + begin, word.data() + word.size()).size;
      bool is_piece = false;
      std::size_t at = begin;
      for (std::uint32_t node = ByteTrie::kRoot; at < word.size();) {
        node = trie_.child(node, word[at]);
        if (node == ByteTrie::kNone) break;
        ++at;
        const std::uint32_t piece = trie_.id_at(node);
        if (piece == kNoId) continue;
        offer(at, pieces_[piece].score, piece);
        is_piece = is_piece || at - begin == size;
      }
      if (at - begin > kShortWalk) [[unlikely]] Deadline::spend(10 * (at - begin));
      if (!is_piece) offer(begin + size, unknown_score_, kUnknown);
      begin += size;
    }
  }

  /// Subtracts the sum at `begin` from it, and from those behind it up to `farthest`.
  static void take_off(std::size_t begin, std::size_t farthest, std::vector<Best>& best) {
    const auto sum = static_cast<float>(best[begin].score);
    for (std::size_t end = begin; end <= farthest; ++end) {
      if (end == begin || best[end].begin != kNoId) {
        best[end].score = static_cast<float>(best[end].score) - sum;
      }
    }
    best[begin].score = 0;
  }

  static void add(std::uint32_t id, std::size_t size, ModelState& state) {
    state.ids.push_back(id);
    state.sizes.push_back(static_cast<std::uint32_t>(size));
  }

  /// Adds, from the last to the first, the tokens of an unknown character.
  void add_unknown(std::string_view character, bool last, ModelState& state) const {
    if (!byte_ids_.empty()) {
      for (std::size_t i = character.size(); i-- > 0;) {
        const std::size_t size = i == 0 ? character.size() : ModelState::kSameBytes;
        add(byte_ids_[static_cast<unsigned char>(character[i])], size, state);
      }
    } else if (!last && state.ids.back() == unk_) {
      state.sizes.back() += static_cast<std::uint32_t>(character.size());
    } else {
      add(unk_, character.size(), state);
    }
  }

  ByteTrie trie_;  // to the numbers of pieces
  std::vector<ScoredPiece> pieces_;
  float unknown_score_ = 0;
  std::uint32_t unk_;
  std::vector<std::uint32_t> byte_ids_;
};

}  // namespace bpe_beam

// Unigram encoding as in SentencePiece, with the same additions of floats.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/byte_trie.hpp"
#include "encode/id_buffer.hpp"
#include "encode/piece_boundaries.hpp"
#include "encode/word_cache.hpp"
#include "encode/word_model.hpp"
#include "text/deadline.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// A piece that may occur in texts.
struct ScoredPiece {
  std::string text;
  std::uint32_t id;
  float score;
  bool user_defined;  // its score follows from its length instead
};

/// The sums equal SentencePiece 0.2.3's, in 32 bits: if two sums are equal, the one whose last
/// piece begins first counts, and a sum that grows large is subtracted from the sums ahead of it.
/// So the ids of a long text depend on where it begins: it is one word.
///
/// Between two boundaries that no piece crosses, the ids depend on the text before only by the
/// rounding of sums. If the best pieces of a part are better than all others by more than rounding
/// can change, they are cached with the largest sum for which this is true. Any other part is
/// encoded again with the current sum.
class SentencePieceUnigram : public WordModel {
 public:
  /// `unk`: the id of an unknown character. `byte_ids`: the ids of the bytes that replace an
  /// unknown character, or none; without them, unknown neighbours are one token.
  SentencePieceUnigram(std::vector<ScoredPiece> pieces, std::uint32_t unk,
                       std::vector<std::uint32_t> byte_ids)
      : trie_(numbered(pieces)),
        boundaries_(texts_of(pieces)),
        unk_(unk),
        byte_ids_(std::move(byte_ids)) {
    float lowest = std::numeric_limits<float>::max();
    pieces_.reserve(pieces.size());
    for (const ScoredPiece& piece : pieces) {
      if (piece.user_defined) {
        const double size = static_cast<double>(piece.text.size());
        pieces_.push_back({piece.id, static_cast<float>(0.1 * (size - 1))});
      } else {
        pieces_.push_back({piece.id, piece.score});
        lowest = std::min(lowest, piece.score);
      }
    }
    for (const ScoredPiece& piece : pieces) add_first(piece.text);
    unknown_score_ = lowest - kUnknownPenalty;
    largest_score_ = std::abs(double{unknown_score_});
    for (const Piece& piece : pieces_) {
      // Not std::max, which may drop what is not a number.
      if (!(std::abs(piece.score) <= largest_score_)) largest_score_ = std::abs(piece.score);
    }
  }

  /// With the sums of the whole word.
  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    (void)with_sizes;  // they cost little here
    (void)find_best(word, 0, state.best);
    state.ids.clear();
    state.sizes.clear();
    for (std::size_t end = word.size(); end > 0;) {
      const Best& best = state.best[end];
      if (best.id != kUnknown) {
        add(pieces_[best.id].id, end - best.begin, state);
      } else {
        add_unknown(word.substr(best.begin, end - best.begin), end == word.size(), state);
      }
      end = best.begin;
    }
    std::reverse(state.ids.begin(), state.ids.end());
    std::reverse(state.sizes.begin(), state.sizes.end());
  }

  [[nodiscard]] bool caches_parts() const override { return true; }

  void encode_cached(std::string_view word, WordCache& cache, ModelState& state,
                     IdBuffer& out) const override {
    check_size(word);
    Encoding encoding{*this, word, cache, state, out};
    boundaries_.for_each_part(
        word, [&](std::size_t begin, std::size_t end) { encoding.add(begin, end); });
    encoding.write();
  }

 private:
  static constexpr float kUnknownPenalty = 10.0F;
  static constexpr float kLargeSum = 100'000.0F;
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFE;
  static constexpr std::size_t kShortWalk = 64;   // bytes; only longer walks can add up
  static constexpr std::size_t kMostCached = 96;  // bytes of a part

  using Best = ModelState::BestPiece;
  using TwoBest = ModelState::TwoBest;

  struct Piece {
    std::uint32_t id;
    float score;
  };

  /// A word on its way to ids.
  class Encoding {
   public:
    Encoding(const SentencePieceUnigram& model, std::string_view word, WordCache& cache,
             ModelState& state, IdBuffer& out)
        : model_(model), word_(word), cache_(cache), state_(state), out_(out), first_(out.size()) {}

    void add(std::size_t begin, std::size_t end) {
      Part& part = parts_[count_++];
      part.bytes = {word_.data() + begin, end - begin};
      // A slot has few bytes: the space before a word is in the kind of its entry.
      part.has_space = part.bytes.size() > kSpace.size() && part.bytes.starts_with(kSpace);
      part.entry = cache_.entry_of(part.key(), part.has_space ? WordKind::kPart : WordKind::kWord,
                                   word_.size() - end + part.key().size());
      cache_.prefetch(part.entry);
      if (count_ == kParts) write();
    }

    /// Appends the ids of the parts that were added.
    void write() {
      for (std::size_t i = 0; i < count_; ++i) {
        if (std::abs(sum_) > kLargeSum) sum_ = 0;  // as SentencePiece does where no piece crosses
        if (!write_cached(parts_[i])) encode(parts_[i]);
      }
      count_ = 0;
    }

   private:
    static constexpr std::size_t kParts = 32;  // whose slots are on their way from memory
    static constexpr std::string_view kSpace = "\xE2\x96\x81";

    struct Part {
      std::string_view bytes;
      WordCache::Entry entry;
      bool has_space;

      /// What the cache has it by.
      [[nodiscard]] std::string_view key() const {
        return bytes.substr(has_space ? kSpace.size() : 0);
      }
    };

    /// Returns whether the cache has the ids for the current sum.
    bool write_cached(const Part& part) {
      const WordCache::Slot* const slot = cache_.find(part.entry);
      if (slot == nullptr) return false;
      if (slot->has_ids()) [[likely]] {
        std::array<std::uint32_t, WordCache::kWrittenIds> ids;
        slot->write_ids(ids.data());
        return write({ids.data(), slot->count()});
      }
      const auto ids = cache_.find_in_ring(*slot, part.key());
      return ids && write(*ids);
    }

    /// `cached`: the upper half of the limit's bits (a slightly lower limit), and the numbers of
    /// pieces.
    bool write(std::span<const std::uint32_t> cached) {
      if (!(std::abs(sum_) < std::bit_cast<float>(cached[0] << 16))) return false;
      std::uint32_t* to = out_.room(cached.size());
      for (const std::uint32_t number : cached.subspan(1)) {
        const Piece& piece = model_.pieces_[number];
        *to++ = piece.id;
        sum_ += piece.score;
      }
      out_.written_to(to);
      return true;
    }

    void encode(const Part& part) {
      if (part.bytes.size() <= kMostCached) {
        const float limit = model_.find_two_best(part.bytes, state_.two_best);
        if (std::abs(sum_) < limit) {
          state_.ids.assign(1, std::bit_cast<std::uint32_t>(limit) >> 16);
          const bool all_known = write(state_.two_best, part.bytes);
          if (all_known) cache_.put(part.entry, part.key(), state_.ids);
          return;
        }
      }
      const float sum = model_.find_best(part.bytes, sum_, state_.best);
      write(state_.best, part.bytes);
      sum_ = sum;
    }

    /// Appends the ids of the best way to the end of a part, and the numbers of its pieces to
    /// state.ids; adds the scores to the sum. Returns whether no character is unknown.
    template <class Way>
    bool write(const std::vector<Way>& best, std::string_view part) {
      std::vector<std::uint32_t>& ends = state_.next;  // of pieces, from the last to the first
      ends.clear();
      for (auto end = static_cast<std::uint32_t>(part.size()); end > 0; end = best[end].begin) {
        ends.push_back(end);
      }
      bool all_known = true;
      for (std::size_t i = ends.size(); i-- > 0;) {
        const Way& last = best[ends[i]];
        if (last.id != kUnknown) {
          const Piece& piece = model_.pieces_[last.id];
          out_.push_back(piece.id);
          state_.ids.push_back(last.id);
          sum_ += piece.score;
        } else {
          write_unknown(part.substr(last.begin, ends[i] - last.begin));
          sum_ += model_.unknown_score_;
          all_known = false;
        }
      }
      return all_known;
    }

    void write_unknown(std::string_view character) {
      if (model_.byte_ids_.empty()) {
        const bool joins = out_.size() > first_ && out_.ids().back() == model_.unk_;
        if (!joins) out_.push_back(model_.unk_);
      } else {
        for (const char byte : character) {
          out_.push_back(model_.byte_ids_[static_cast<unsigned char>(byte)]);
        }
      }
    }

    const SentencePieceUnigram& model_;
    std::string_view word_;
    WordCache& cache_;
    ModelState& state_;
    IdBuffer& out_;
    std::size_t first_;  // of the word's ids
    float sum_ = 0;      // of the scores of the pieces so far, as SentencePiece rounds it
    std::size_t count_ = 0;
    std::array<Part, kParts> parts_;
  };

  /// The number of each piece by its text. Sorts the pieces: one walk of the trie finds those that
  /// begin alike, whose scores are then close to each other in memory.
  static TokenIds numbered(std::vector<ScoredPiece>& pieces) {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const auto& one, const auto& other) { return one.text < other.text; });
    TokenIds numbers;
    numbers.reserve(pieces.size());
    for (const ScoredPiece& piece : pieces) {
      numbers.emplace_back(piece.text, static_cast<std::uint32_t>(numbers.size()));
    }
    return numbers;
  }

  void add_first(std::string_view piece) {
    if (piece.empty()) return;
    const CodePoint first = decode_utf8(piece.data(), piece.data() + piece.size());
    if (first.value >= firsts_.size()) return;
    firsts_[first.value] = trie_.walk(ByteTrie::kRoot, piece.substr(0, first.size));
  }

  static std::vector<std::string_view> texts_of(const std::vector<ScoredPiece>& pieces) {
    std::vector<std::string_view> texts;
    texts.reserve(pieces.size());
    for (const ScoredPiece& piece : pieces) texts.emplace_back(piece.text);
    return texts;
  }

  /// Finds the two best ways to each byte at which a piece can end, by exact sums from 0 on.
  /// Returns a limit: if the sum before the part is below it, the best way to the part's end is
  /// SentencePiece's. The limit is 0 or less, or not a number, if there is no such sum.
  ///
  /// SentencePiece's sum is the largest of the rounded sums of all ways, because rounding keeps the
  /// order. For n pieces after a sum S, each addition rounds by at most 2^-24 of its result, which
  /// is at most |S| and n scores. So another way has a smaller rounded sum if its exact sum is
  /// lower by more than twice this error for each of n additions. One percent more covers the
  /// rounding of the bound itself and of the exact sums, which are doubles here.
  [[nodiscard]] float find_two_best(std::string_view part, std::vector<TwoBest>& two_best) const {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    two_best.assign(part.size() + 1, TwoBest{kNever, kNever, 0, kNoId});
    two_best[0].first = 0;
    for_each_piece(
        part, [&](std::size_t begin) { return two_best[begin]; },
        [&](const TwoBest& before, std::size_t begin, std::size_t end, float score,
            std::uint32_t number) {
          const double first = before.first + double{score};
          TwoBest& current = two_best[end];
          if (first > current.first) {
            const double second = std::max(current.first, before.second + double{score});
            current = {first, second, static_cast<std::uint32_t>(begin), number};
          } else {
            current.second = std::max(current.second, first);
          }
        });
    const TwoBest& last = two_best[part.size()];
    if (last.id == kNoId) return 0;                      // scores that are not finite
    const auto most = static_cast<double>(part.size());  // pieces of a way
    const double rounding = 2.02 * most * std::ldexp(1.0, -24);
    const double limit = std::min((last.first - last.second) / rounding, double{kLargeSum});
    return static_cast<float>((limit - 1.01 * most * largest_score_) * 0.999);
  }

  /// Finds the last piece of the best way to each byte at which a piece can end, given the sum
  /// before the part. Returns the sum at the part's end.
  float find_best(std::string_view part, float sum, std::vector<Best>& best) const {
    best.assign(part.size() + 1, Best{0, kNoId, kNoId});
    best[0].score = sum;
    std::size_t farthest = 0;  // end of a piece
    for_each_piece(
        part,
        [&](std::size_t begin) {
          if (std::abs(best[begin].score) > kLargeSum) take_off(begin, farthest, best);
          return static_cast<float>(best[begin].score);
        },
        [&](float before, std::size_t begin, std::size_t end, float score, std::uint32_t number) {
          farthest = std::max(farthest, end);
          Best& current = best[end];
          const float with_score = score + before;
          if (current.begin != kNoId && !(with_score > static_cast<float>(current.score))) return;
          current = {with_score, static_cast<std::uint32_t>(begin), number};
        });
    return static_cast<float>(best[part.size()].score);
  }

  /// Calls use(before, begin, end, score, number) for the pieces that begin with each character,
  /// where `before` is what sums_at(begin) returned before them.
  template <class SumsAt, class Use>
  void for_each_piece(std::string_view part, SumsAt&& sums_at, Use&& use) const {
    for (std::size_t begin = 0; begin < part.size();) {
      const auto before = sums_at(begin);
      const CodePoint first = decode_utf8(part.data() + begin, part.data() + part.size());
      std::size_t at = begin + first.size;
      // By a table, because the walk through a large vocabulary waits for memory at each byte.
      std::uint32_t node = first.value < firsts_.size()
                               ? firsts_[first.value]
                               : trie_.walk(ByteTrie::kRoot, part.substr(begin, first.size));
      const std::uint32_t single = node == ByteTrie::kNone ? kNoId : trie_.id_at(node);
      if (single != kNoId) {
        use(before, begin, at, pieces_[single].score, single);
      } else {
        use(before, begin, at, unknown_score_, kUnknown);
      }
      for (; node != ByteTrie::kNone && at < part.size(); ++at) {
        node = trie_.child(node, part[at]);
        if (node == ByteTrie::kNone) break;
        const std::uint32_t number = trie_.id_at(node);
        if (number != kNoId) use(before, begin, at + 1, pieces_[number].score, number);
      }
      if (at - begin > kShortWalk) [[unlikely]]
        Deadline::spend(10 * (at - begin));
      begin += first.size;
    }
  }

  /// Subtracts the sum at `begin` from it, and from the sums after it up to `farthest`.
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
  // The node after each character of the basic plane.
  std::vector<std::uint32_t> firsts_ = std::vector<std::uint32_t>(0x10000, ByteTrie::kNone);
  PieceBoundaries boundaries_;
  std::vector<Piece> pieces_;
  float unknown_score_ = 0;
  double largest_score_ = 0;  // of scores without their signs
  std::uint32_t unk_;
  std::vector<std::uint32_t> byte_ids_;
};

}  // namespace bpe_beam

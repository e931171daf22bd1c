// The interface of the models, which encode one word as tokens, and their common parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe_beam {

inline constexpr std::uint32_t kNoId = 0xFFFFFFFF;

class IdBuffer;
class Seams;
class WordCache;

/// A part of a word for which the model has no token.
struct MissingSymbol {
  std::size_t begin;  // in the word
  std::size_t end;
};

/// The mutable state of a model; each thread has its own.
struct ModelState {
  /// As a size: the token covers the same bytes as the one before it.
  static constexpr std::uint32_t kSameBytes = 0xFFFFFFFF;

  /// The last piece of the best way to cut a word up to some byte.
  struct BestPiece {
    double score;         // of all pieces of the way
    std::uint32_t begin;  // of the piece
    std::uint32_t id;
  };

  /// The two best ways to cut a part of a word up to some byte.
  struct TwoBest {
    double first;  // the sum of the scores of all pieces
    double second;
    std::uint32_t begin;  // of the last piece of the first way
    std::uint32_t id;
  };

  std::vector<std::uint32_t> ids;       // the tokens of the current word
  std::vector<std::uint32_t> sizes;     // bytes of the word that each covers, where asked for
  std::vector<std::uint32_t> ranks;     // rank of the pair that begins at each symbol
  std::vector<std::uint32_t> previous;  // links of a long word
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> parts;  // the tokens of a long word's parts before the current one
  std::vector<BestPiece> best;       // by the byte where the piece ends
  std::vector<TwoBest> two_best;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// Puts the tokens of a word (not empty) into state.ids and, on request, state.sizes. Throws
  /// MissingSymbol. Thread-safe.
  virtual void encode(std::string_view word, bool with_sizes, ModelState& state) const = 0;

  /// Returns whether `encode_cached` takes the place of `encode` without sizes, because the tokens
  /// of a part of a word may depend on the parts before it.
  [[nodiscard]] virtual bool caches_parts() const { return false; }

  /// Appends the ids of a word. The cache is the model's own.
  virtual void encode_cached(std::string_view, WordCache&, ModelState&, IdBuffer&) const {}

  /// The boundaries that divide words into parts that are encoded one by one; null if a word is
  /// encoded as a whole.
  [[nodiscard]] virtual const Seams* seams() const { return nullptr; }

  /// The id of a word that is always one token, or kNoId.
  [[nodiscard]] virtual std::uint32_t whole_word(std::string_view) const { return kNoId; }

  /// As `encode`, without sizes, for a part of a word between two seams.
  virtual void encode_part(std::string_view part, ModelState& state) const {
    encode(part, false, state);
  }

 protected:
  static void check_size(std::string_view word) {
    if (word.size() >= kNoId) throw std::length_error("a word of 2^32 bytes");
  }

  /// The whole word is one token.
  static void one_token(std::string_view word, std::uint32_t id, ModelState& state) {
    state.ids.assign(1, id);
    state.sizes.assign(1, static_cast<std::uint32_t>(word.size()));
  }
};

using TokenIds = std::vector<std::pair<std::string, std::uint32_t>>;

/// Ids by token: open addressing over one block of text. If two tokens are equal, the first counts.
class TokenMap {
 public:
  explicit TokenMap(const TokenIds& tokens) {
    std::size_t slots = 16, bytes = 0;
    while (slots < tokens.size() * 2) slots *= 2;
    for (const auto& [token, id] : tokens) bytes += token.size();
    slots_.resize(slots);
    text_.reserve(bytes);
    for (const auto& [token, id] : tokens) {
      Slot& slot = slots_[slot_of(token)];
      if (slot.id != kNoId) continue;
      slot = {text_.size(), token.size(), id};
      text_ += token;
    }
  }

  [[nodiscard]] std::uint32_t find(std::string_view token) const {
    return slots_[slot_of(token)].id;
  }

 private:
  struct Slot {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::uint32_t id = kNoId;
  };

  /// The token's slot, or the free one for it.
  [[nodiscard]] std::size_t slot_of(std::string_view token) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::hash<std::string_view>{}(token)&mask;
    while (slots_[at].id != kNoId && text_of(slots_[at]) != token) at = (at + 1) & mask;
    return at;
  }

  [[nodiscard]] std::string_view text_of(const Slot& slot) const {
    return std::string_view(text_).substr(slot.begin, slot.size);
  }

  std::string text_;
  std::vector<Slot> slots_;
};

}  // namespace bpe_beam

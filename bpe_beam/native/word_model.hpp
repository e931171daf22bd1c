// What turns one word into tokens: the interface of the models, and what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bpe_beam {

inline constexpr std::uint32_t kNoId = 0xFFFFFFFF;

/// A part of a word that the model has no token for.
struct MissingSymbol {
  std::size_t begin;  // in the word
  std::size_t end;
};

/// What changes while words are encoded; one a thread.
struct ModelState {
  std::vector<std::uint32_t> ids;       // the tokens of the word at hand
  std::vector<std::uint32_t> sizes;     // bytes of the word that each covers, where asked for
  std::vector<std::uint32_t> ranks;     // rank of the pair that begins at each symbol
  std::vector<std::uint32_t> previous;  // links of a long word
  std::vector<std::uint32_t> next;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// Leaves the tokens of a word (not empty) in state.ids and, if asked, state.sizes. Throws
  /// MissingSymbol. Thread-safe.
  virtual void encode(std::string_view word, bool with_sizes, ModelState& state) const = 0;

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

/// Ids by token.
class TokenMap {
 public:
  explicit TokenMap(const TokenIds& tokens) {
    ids_.reserve(tokens.size());
    for (const auto& [token, id] : tokens) ids_.emplace(token, id);
  }

  [[nodiscard]] std::uint32_t find(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? kNoId : found->second;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view token) const {
      return std::hash<std::string_view>{}(token);
    }
  };

  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace bpe_beam

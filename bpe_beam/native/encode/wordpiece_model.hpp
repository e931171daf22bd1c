// WordPiece and word-level encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "count/pair_map.hpp"
#include "encode/word_model.hpp"
#include "text/deadline.hpp"

namespace bpe_beam {

/// From the left, the longest token that fits; after a word's first token, tokens with the prefix.
///
/// A byte trie finds each token in one walk of at most the longest token, so for a given vocabulary
/// the time is linear in the word.
class WordPieceModel : public WordModel {
 public:
  /// `unk`: the unknown token's id, kNoId if the vocabulary has none. Words of more than
  /// `max_characters` are unknown.
  WordPieceModel(const TokenIds& tokens, std::string_view prefix, std::uint32_t unk,
                 std::size_t max_characters)
      : next_(nodes_of(tokens)), unk_(unk), max_characters_(max_characters) {
    for (const auto& [token, id] : tokens) id_at_[node_of(token)] = id;
    // Also where no token has the prefix: its node then has no children.
    continuing_ = node_of(prefix);
  }

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    (void)with_sizes;  // they cost nothing here
    state.ids.clear();
    state.sizes.clear();
    if (word.size() > max_characters_ && characters(word) > max_characters_) {
      return unknown(word, state);
    }
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < word.size();) {
      std::uint32_t id = kNoId;
      std::size_t end = at;
      std::size_t i = at;
      for (; i < word.size(); ++i) {
        node = next_.find(PairMap::key(node, static_cast<unsigned char>(word[i])));
        if (node == PairMap::kNone) break;
        if (id_at_[node] == kNoId) continue;
        id = id_at_[node];
        end = i + 1;
      }
      if (i - at > kShortWalk) [[unlikely]]
        Deadline::spend(10 * (i - at));
      if (id == kNoId) return unknown(word, state);
      state.ids.push_back(id);
      state.sizes.push_back(static_cast<std::uint32_t>(end - at));
      at = end;
      node = continuing_;
    }
  }

 private:
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up

  /// About the number of nodes: tokens share a part of their bytes.
  static std::size_t nodes_of(const TokenIds& tokens) {
    std::size_t bytes = 0;
    for (const auto& [token, id] : tokens) bytes += token.size();
    return bytes / 2;
  }

  static std::size_t characters(std::string_view word) {
    std::size_t count = 0;
    for (const char byte : word) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    return count;
  }

  void unknown(std::string_view word, ModelState& state) const {
    if (unk_ == kNoId) throw MissingSymbol{0, word.size()};
    one_token(word, unk_, state);
  }

  std::uint32_t node_of(std::string_view text) {
    std::uint32_t node = 0;
    for (const char byte : text) {
      std::uint32_t& next = next_[PairMap::key(node, static_cast<unsigned char>(byte))];
      if (next == PairMap::kNone) {
        next = static_cast<std::uint32_t>(id_at_.size());
        id_at_.push_back(kNoId);
      }
      node = next;
    }
    return node;
  }

  PairMap next_;  // (node, byte) to node; 0 is the root
  std::vector<std::uint32_t> id_at_ = {kNoId};
  std::uint32_t continuing_ = 0;
  std::uint32_t unk_;
  std::size_t max_characters_;
};

/// A word is a token, or unknown.
class WordLevelModel : public WordModel {
 public:
  WordLevelModel(const TokenIds& tokens, std::uint32_t unk) : tokens_(tokens), unk_(unk) {}

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    (void)with_sizes;
    std::uint32_t id = tokens_.find(word);
    if (id == kNoId) id = unk_;
    if (id == kNoId) throw MissingSymbol{0, word.size()};
    one_token(word, id, state);
  }

 private:
  TokenMap tokens_;
  std::uint32_t unk_;
};

}  // namespace bpe_beam

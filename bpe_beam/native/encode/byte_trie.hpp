// A trie of tokens by their bytes, as a double array: the node of a byte is one addition away.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/word_model.hpp"
#include "text/deadline.hpp"

namespace bpe_beam {

/// Ids by token. Each node takes about 12 bytes of memory. There are at most as many nodes as bytes
/// of the tokens, and fewer if tokens begin alike.
class ByteTrie {
 public:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  /// If two tokens are equal, the last one counts. Only `find` returns an empty token.
  explicit ByteTrie(const TokenIds& tokens) { build({tokens.begin(), tokens.end()}); }

  using Views = std::vector<std::pair<std::string_view, std::uint32_t>>;

  /// The same, without a copy of the tokens.
  static ByteTrie of_views(Views tokens) {
    ByteTrie trie;
    trie.build(std::move(tokens));
    return trie;
  }

  /// The node of `byte` after a node, or kNone.
  [[nodiscard]] std::uint32_t child(std::uint32_t node, char byte) const {
    const std::uint32_t next = nodes_[node].base ^ static_cast<unsigned char>(byte);
    return nodes_[next].parent == node ? next : kNone;
  }

  /// Begins to load what `child` reads.
  void prefetch_child(std::uint32_t node, char byte) const {
    __builtin_prefetch(&nodes_[nodes_[node].base ^ static_cast<unsigned char>(byte)]);
  }

  /// The id of the token that ends at a node, or kNoId.
  [[nodiscard]] std::uint32_t id_at(std::uint32_t node) const { return nodes_[node].id; }

  struct Match {
    std::size_t size = 0;
    std::uint32_t id = kNoId;
  };

  /// The longest token with which `text` begins, except the empty token; of size 0 if there is
  /// none.
  [[nodiscard]] Match longest(std::string_view text) const {
    Match match;
    std::size_t at = 0;
    for (std::uint32_t node = kRoot; at < text.size();) {
      node = child(node, text[at]);
      if (node == kNone) break;
      ++at;
      if (id_at(node) != kNoId) match = {at, id_at(node)};
    }
    if (at > kShortWalk) [[unlikely]]
      Deadline::spend(10 * at);
    return match;
  }

  /// The node of some bytes after a node, or kNone.
  [[nodiscard]] std::uint32_t walk(std::uint32_t node, std::string_view bytes) const {
    for (const char byte : bytes) {
      node = child(node, byte);
      if (node == kNone) break;
    }
    return node;
  }

  /// The id of a token, or kNoId.
  [[nodiscard]] std::uint32_t find(std::string_view token) const {
    const std::uint32_t node = walk(kRoot, token);
    return node == kNone ? kNoId : id_at(node);
  }

 private:
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up
  static constexpr std::uint32_t kBlock = 256;
  static constexpr std::size_t kOpenBlocks = 16;
  static constexpr std::uint32_t kFree = 0xFFFFFFFE;

  struct Node {
    std::uint32_t base = 0;  // its child of byte b is node base ^ b
    std::uint32_t parent = kFree;
    std::uint32_t id = kNoId;
  };

  /// Adds the sorted tokens [begin, end), which share their first `depth` bytes, the bytes of
  /// `node`.
  struct Range {
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
    std::uint32_t node;
  };

  /// A block of nodes of which some are free.
  struct Open {
    std::uint32_t first;
    std::array<std::uint64_t, kBlock / 64> free;
  };

  ByteTrie() = default;

  void build(Views tokens) {
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(tokens.begin(), tokens.end(), before)) {
      std::stable_sort(tokens.begin(), tokens.end(), before);
    }
    // There is a node for each byte that two neighbours do not share. Some nodes of blocks stay
    // free.
    std::size_t nodes = kBlock;
    std::string_view last;
    for (const auto& [token, id] : tokens) {
      const auto differ = std::mismatch(token.begin(), token.end(), last.begin(), last.end()).first;
      nodes += static_cast<std::size_t>(token.end() - differ);
      last = token;
    }
    nodes_.reserve(nodes + nodes / 8);
    add_block();
    take(kRoot, kNone);
    std::vector<Range> waiting{{0, tokens.size(), 0, kRoot}};
    while (!waiting.empty()) {
      const Range range = waiting.back();
      waiting.pop_back();
      add_children(tokens, range, waiting);
    }
    if (nodes_.capacity() - nodes_.size() > nodes_.size() / 4) nodes_.shrink_to_fit();
    open_ = {};
  }

  void add_children(const Views& tokens, Range range, std::vector<Range>& waiting) {
    while (range.begin < range.end && tokens[range.begin].first.size() == range.depth) {
      nodes_[range.node].id = tokens[range.begin++].second;
    }
    if (range.begin == range.end) return;
    const auto byte_of = [&](std::size_t i) {
      return static_cast<unsigned char>(tokens[i].first[range.depth]);
    };
    std::vector<unsigned char> bytes;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (bytes.empty() || bytes.back() != byte_of(i)) bytes.push_back(byte_of(i));
    }
    const std::uint32_t base = free_base(bytes);
    nodes_[range.node].base = base;
    std::size_t begin = range.begin;
    for (const unsigned char byte : bytes) {
      std::size_t end = begin;
      while (end < range.end && byte_of(end) == byte) ++end;
      take(base ^ byte, range.node);
      waiting.push_back({begin, end, range.depth + 1, base ^ byte});
      begin = end;
    }
  }

  /// A base at which the nodes of all these bytes are free.
  std::uint32_t free_base(const std::vector<unsigned char>& bytes) {
    for (auto block = open_.rbegin(); block != open_.rend(); ++block) {
      if (const auto base = base_in(*block, bytes)) return *base;
    }
    add_block();
    return *base_in(open_.back(), bytes);
  }

  static std::optional<std::uint32_t> base_in(const Open& block,
                                              const std::vector<unsigned char>& bytes) {
    for (std::uint32_t word = 0; word < block.free.size(); ++word) {
      for (std::uint64_t left = block.free[word]; left != 0; left &= left - 1) {
        const std::uint32_t slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(left));
        const std::uint32_t base = slot ^ bytes[0];
        const bool fits = std::all_of(bytes.begin(), bytes.end(), [&](unsigned char byte) {
          const std::uint32_t at = base ^ byte;
          return (block.free[at / 64] >> (at % 64) & 1) != 0;
        });
        if (fits) return block.first + base;
      }
    }
    return std::nullopt;
  }

  void add_block() {
    if (open_.size() == kOpenBlocks) open_.erase(open_.begin());
    Open block{static_cast<std::uint32_t>(nodes_.size()), {}};
    block.free.fill(~std::uint64_t{0});
    open_.push_back(block);
    nodes_.resize(nodes_.size() + kBlock);
  }

  void take(std::uint32_t node, std::uint32_t parent) {
    nodes_[node].parent = parent;
    for (Open& block : open_) {
      if (node - block.first >= kBlock) continue;
      const std::uint32_t at = node - block.first;
      block.free[at / 64] &= ~(std::uint64_t{1} << (at % 64));
    }
  }

  std::vector<Node> nodes_;
  std::vector<Open> open_;  // while it is built
};

}  // namespace bpe_beam

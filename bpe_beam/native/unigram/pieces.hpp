// Pieces in the order of their bytes, and the places in a text where they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/byte_trie.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Pieces; a piece's number is its rank by bytes.
class Pieces {
 public:
  /// Throws std::invalid_argument unless the texts ascend and none is empty.
  explicit Pieces(const std::vector<std::string_view>& texts)
      : trie_(ByteTrie::of_views(numbered(texts))) {
    std::size_t bytes = 0;
    for (const std::string_view text : texts) bytes += text.size();
    data_.reserve(bytes);
    ends_.reserve(texts.size() + 1);
    for (const std::string_view text : texts) {
      data_ += text;
      ends_.push_back(data_.size());
    }
  }

  [[nodiscard]] std::size_t size() const { return ends_.size() - 1; }
  [[nodiscard]] const ByteTrie& trie() const { return trie_; }

  [[nodiscard]] std::string_view text(std::size_t piece) const {
    return std::string_view(data_).substr(ends_[piece], ends_[piece + 1] - ends_[piece]);
  }

  /// Whether a piece is one character, which every vocabulary keeps.
  [[nodiscard]] bool is_character(std::size_t piece) const {
    const std::string_view bytes = text(piece);
    return decode_utf8(bytes.data(), bytes.data() + bytes.size()).size == bytes.size();
  }

  /// Some of the pieces: `chosen` has an item for each.
  [[nodiscard]] Pieces subset(std::span<const std::uint8_t> chosen) const {
    std::vector<std::string_view> texts;
    for (std::size_t piece = 0; piece < size(); ++piece) {
      if (chosen[piece] != 0) texts.push_back(text(piece));
    }
    return Pieces(texts);
  }

 private:
  static ByteTrie::Views numbered(const std::vector<std::string_view>& texts) {
    ByteTrie::Views numbers;
    numbers.reserve(texts.size());
    for (std::size_t piece = 0; piece < texts.size(); ++piece) {
      if (texts[piece].empty() || (piece > 0 && texts[piece] <= texts[piece - 1])) {
        throw std::invalid_argument("pieces must ascend, and none may be empty");
      }
      numbers.emplace_back(texts[piece], static_cast<std::uint32_t>(piece));
    }
    return numbers;
  }

  std::string data_;
  std::vector<std::size_t> ends_{0};
  ByteTrie trie_;
};

/// The pieces at every character of a text. Reused for many texts.
class PieceMatches {
 public:
  struct Match {
    std::uint32_t end;
    std::uint32_t piece;
  };

  void find(const Pieces& pieces, std::string_view text) {
    find(pieces, text, [](std::uint32_t) {});
  }

  /// The same; calls `prefetch(piece)` for each, early enough to load what is read for it later.
  template <class Prefetch>
  void find(const Pieces& pieces, std::string_view text, Prefetch&& prefetch) {
    begins_.clear();
    for (std::uint32_t at = 0; at < text.size(); ++at) {
      if ((text[at] & 0xC0) != 0x80 || at == 0) begins_.push_back(at);
    }
    matches_.clear();
    firsts_.clear();
    for (std::size_t first = 0; first < size(); first += kLanes) {
      const std::size_t lanes = std::min(kLanes, size() - first);
      walk(pieces.trie(), text, std::span(begins_).subspan(first, lanes), prefetch);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        firsts_.push_back(matches_.size());
        matches_.insert(matches_.end(), lanes_[lane].begin(), lanes_[lane].end());
      }
    }
    firsts_.push_back(matches_.size());
  }

  /// The number of characters.
  [[nodiscard]] std::size_t size() const { return begins_.size(); }

  /// The byte at which a character begins.
  [[nodiscard]] std::uint32_t begin(std::size_t character) const { return begins_[character]; }

  /// The pieces that begin at a character, the shortest first.
  [[nodiscard]] std::span<const Match> at(std::size_t character) const {
    return std::span(matches_).subspan(firsts_[character],
                                       firsts_[character + 1] - firsts_[character]);
  }

 private:
  static constexpr std::size_t kLanes = 16;

  /// Finds the pieces at some characters, a byte of each in turn: while one node is loaded from
  /// memory, others are read.
  template <class Prefetch>
  void walk(const ByteTrie& trie, std::string_view text, std::span<const std::uint32_t> begins,
            Prefetch&& prefetch) {
    struct Walk {
      std::uint32_t lane;
      std::uint32_t end;
      std::uint32_t node;
    };
    std::array<Walk, kLanes> walks{};
    for (std::uint32_t lane = 0; lane < begins.size(); ++lane) {
      walks[lane] = {lane, begins[lane], ByteTrie::kRoot};
      lanes_[lane].clear();
    }
    for (std::size_t open = begins.size(); open > 0;) {
      std::size_t still = 0;
      for (std::size_t i = 0; i < open; ++i) {
        Walk at = walks[i];
        at.node = trie.child(at.node, text[at.end]);
        if (at.node == ByteTrie::kNone) continue;
        ++at.end;
        const std::uint32_t piece = trie.id_at(at.node);
        if (piece != kNoId) {
          lanes_[at.lane].push_back({at.end, piece});
          prefetch(piece);
        }
        if (at.end == text.size()) continue;
        trie.prefetch_child(at.node, text[at.end]);
        walks[still++] = at;
      }
      open = still;
    }
  }

  std::array<std::vector<Match>, kLanes> lanes_;
  std::vector<Match> matches_;
  std::vector<std::uint32_t> begins_;
  std::vector<std::size_t> firsts_;
};

}  // namespace bpe_beam

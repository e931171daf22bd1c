// The models as they are defined, symbol by symbol and string by string. Quadratic and worse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/bpe_models.hpp"
#include "encode/unigram_model.hpp"
#include "encode/word_model.hpp"
#include "text/utf8.hpp"

/// A token of a word, and how many of its bytes it covers.
struct Symbol {
  std::uint32_t id;
  std::uint32_t size;
  bool operator==(const Symbol&) const = default;
};

using Symbols = std::vector<Symbol>;
using Ids = std::vector<std::uint32_t>;

/// The pair of lowest rank, the leftmost of equals, until none is left.
inline Symbols naive_merge(const std::vector<bpe_beam::MergeRow>& rows, bool rank_by_joined,
                           Symbols symbols) {
  struct Merge {
    std::size_t rank;
    std::uint32_t joined;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Merge> merges;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && !(rank_by_joined && rows[i].joined == rows[i - 1].joined)) ++rank;
    merges[{rows[i].left, rows[i].right}] = {rank, rows[i].joined};
  }
  while (true) {
    const Merge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges.find({symbols[i].id, symbols[i + 1].id});
      if (found != merges.end() && (best == nullptr || found->second.rank < best->rank)) {
        best = &found->second;
        at = i;
      }
    }
    if (best == nullptr) return symbols;
    symbols[at] = {best->joined, symbols[at].size + symbols[at + 1].size};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

class NaiveModel {
 public:
  virtual ~NaiveModel() = default;
  /// Throws MissingSymbol as WordModel does.
  [[nodiscard]] virtual Symbols encode(const std::string& word) const = 0;

 protected:
  static std::uint32_t size_of(const std::string& word) {
    return static_cast<std::uint32_t>(word.size());
  }
};

using Vocabulary = std::map<std::string, std::uint32_t>;

struct NaiveByteBpe : NaiveModel {
  std::vector<bpe_beam::MergeRow> rows;
  Ids byte_ids;
  Vocabulary whole_words;

  [[nodiscard]] Symbols encode(const std::string& word) const override {
    if (const auto whole = whole_words.find(word); whole != whole_words.end()) {
      return {{whole->second, size_of(word)}};
    }
    Symbols symbols;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const std::uint32_t id = byte_ids[static_cast<unsigned char>(word[i])];
      if (id == bpe_beam::kNoId) throw bpe_beam::MissingSymbol{i, i + 1};
      symbols.push_back({id, 1});
    }
    return naive_merge(rows, false, std::move(symbols));
  }
};

struct NaiveCharBpe : NaiveModel {
  std::vector<bpe_beam::MergeRow> rows;
  Vocabulary tokens;
  bpe_beam::CharBpeSettings settings;

  [[nodiscard]] Symbols encode(const std::string& word) const override {
    if (const auto whole = tokens.find(word); settings.ignore_merges && whole != tokens.end()) {
      return {{whole->second, size_of(word)}};
    }
    Symbols symbols;
    bool open = false;  // the last symbol is an unknown one that may grow
    for (std::size_t at = 0; at < word.size();) {
      const auto point = bpe_beam::decode_utf8(word.data() + at, word.data() + word.size());
      const std::string character = word.substr(at, point.size);
      std::string token = (at > 0 ? settings.prefix : "") + character;
      if (at + point.size == word.size()) token += settings.suffix;
      const auto known = tokens.find(token);
      const Symbols bytes = bytes_of(token, at > 0 ? settings.prefix.size() : 0, point.size);
      if (known != tokens.end() && point.value != bpe_beam::kMalformed) {
        symbols.push_back({known->second, point.size});
        open = false;
      } else if (!bytes.empty()) {
        symbols.insert(symbols.end(), bytes.begin(), bytes.end());
        open = false;
      } else if (!settings.unk) {
        throw bpe_beam::MissingSymbol{at, at + point.size};
      } else if (open && settings.fuse_unk) {
        symbols.back().size += point.size;
      } else {
        symbols.push_back({*settings.unk, point.size});
        open = true;
      }
      at += point.size;
    }
    return naive_merge(rows, false, std::move(symbols));
  }

 private:
  /// None unless the vocabulary has them all; the bytes of the decorations cover nothing.
  [[nodiscard]] Symbols bytes_of(const std::string& token, std::size_t begin,
                                 std::size_t size) const {
    Symbols symbols;
    if (settings.byte_fallback.empty()) return symbols;
    for (std::size_t at = 0; at < token.size(); ++at) {
      const std::uint32_t covered = at >= begin && at < begin + size ? 1 : 0;
      symbols.push_back({settings.byte_fallback[static_cast<unsigned char>(token[at])], covered});
      if (symbols.back().id == bpe_beam::kNoId) return {};
    }
    return symbols;
  }
};

struct NaiveWordPiece : NaiveModel {
  Vocabulary tokens;
  std::string prefix;
  std::uint32_t unk = bpe_beam::kNoId;
  std::size_t max_characters = 100;

  [[nodiscard]] Symbols encode(const std::string& word) const override {
    std::size_t characters = 0;
    for (std::size_t at = 0; at < word.size(); ++characters) {
      at += bpe_beam::decode_utf8(word.data() + at, word.data() + word.size()).size;
    }
    Symbols symbols;
    for (std::size_t at = 0; at < word.size() && characters <= max_characters;) {
      std::size_t end = word.size();
      const auto known = [&] {
        return tokens.find((at > 0 ? prefix : "") + word.substr(at, end - at));
      };
      while (end > at && known() == tokens.end()) --end;
      if (end == at) return unknown(word);
      symbols.push_back({known()->second, static_cast<std::uint32_t>(end - at)});
      at = end;
    }
    return characters <= max_characters ? symbols : unknown(word);
  }

 private:
  [[nodiscard]] Symbols unknown(const std::string& word) const {
    if (unk == bpe_beam::kNoId) throw bpe_beam::MissingSymbol{0, word.size()};
    return {{unk, size_of(word)}};
  }
};

struct NaiveWordLevel : NaiveModel {
  Vocabulary tokens;
  std::uint32_t unk = bpe_beam::kNoId;

  [[nodiscard]] Symbols encode(const std::string& word) const override {
    const auto known = tokens.find(word);
    const std::uint32_t id = known != tokens.end() ? known->second : unk;
    if (id == bpe_beam::kNoId) throw bpe_beam::MissingSymbol{0, word.size()};
    return {{id, size_of(word)}};
  }
};

struct NaiveUnigram : NaiveModel {
  std::vector<std::pair<std::string, double>> pieces;  // by id
  std::uint32_t unk = bpe_beam::kNoId;
  Ids byte_ids;

  [[nodiscard]] Symbols encode(const std::string& word) const override {
    struct Way {
      double score = 0;
      std::size_t begin = 0;  // of the last piece
      std::uint32_t id = bpe_beam::kNoId;
      bool found = false;
    };
    std::map<std::size_t, Way> ways;
    ways[0].found = true;
    double lowest = pieces[0].second;
    for (const auto& [piece, score] : pieces) lowest = std::min(lowest, score);
    for (std::size_t begin = 0, size; begin < word.size(); begin += size) {
      size = bpe_beam::decode_utf8(word.data() + begin, word.data() + word.size()).size;
      const auto offer = [&](std::size_t end, double score, std::uint32_t id) {
        Way& way = ways[end];
        if (way.found && !(score + ways[begin].score > way.score)) return;
        if (id == bpe_beam::kNoId) throw bpe_beam::MissingSymbol{begin, end};
        way = {score + ways[begin].score, begin, id, true};
      };
      for (std::size_t end = begin + 1; end <= word.size(); ++end) {
        const std::uint32_t id = id_of(word.substr(begin, end - begin));
        if (id != bpe_beam::kNoId) offer(end, pieces[id].second, id);
      }
      if (id_of(word.substr(begin, size)) == bpe_beam::kNoId) {
        offer(begin + size, lowest - 10.0, unk);
      }
    }
    std::vector<std::pair<std::uint32_t, std::string>> parts;
    for (std::size_t end = word.size(); end > 0; end = ways[end].begin) {
      const Way& way = ways[end];
      const std::string part = word.substr(way.begin, end - way.begin);
      if (!parts.empty() && way.id == unk && parts.back().first == unk) {
        parts.back().second = part + parts.back().second;
      } else {
        parts.emplace_back(way.id, part);
      }
    }
    Symbols symbols;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(part->second, symbols);
    return symbols;
  }

 private:
  [[nodiscard]] std::uint32_t id_of(const std::string& text) const {
    for (std::size_t id = pieces.size(); id-- > 0;) {
      if (pieces[id].first == text) return static_cast<std::uint32_t>(id);
    }
    return bpe_beam::kNoId;
  }

  /// Adds the tokens of a piece, or of unknown characters.
  void add(const std::string& text, Symbols& symbols) const {
    const std::uint32_t id = id_of(text);
    if (id != bpe_beam::kNoId) return symbols.push_back({id, size_of(text)});
    Symbols bytes;
    for (const char byte : text) {
      if (byte_ids.empty()) break;
      bytes.push_back({byte_ids[static_cast<unsigned char>(byte)],
                       bytes.empty() ? size_of(text) : bpe_beam::ModelState::kSameBytes});
      if (bytes.back().id == bpe_beam::kNoId) {
        bytes.clear();
        break;
      }
    }
    if (bytes.empty()) bytes.push_back({unk, size_of(text)});
    symbols.insert(symbols.end(), bytes.begin(), bytes.end());
  }
};

inline bpe_beam::UnigramModel unigram_model(const NaiveUnigram& naive) {
  bpe_beam::TokenIds pieces;
  std::vector<double> scores;
  for (const auto& [piece, score] : naive.pieces) {
    pieces.emplace_back(piece, static_cast<std::uint32_t>(scores.size()));
    scores.push_back(score);
  }
  return {pieces, std::move(scores), naive.unk, naive.byte_ids};
}

inline bpe_beam::TokenIds token_ids(const Vocabulary& tokens) {
  return {tokens.begin(), tokens.end()};
}

inline Ids ids_of(const Symbols& symbols) {
  Ids ids;
  for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
  return ids;
}

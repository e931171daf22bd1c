// Merge rounds as they are defined, on symbols instead of packed words: maps and vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "count/packed_words.hpp"
#include "naive_models.hpp"

using SymbolPair = std::pair<std::uint32_t, std::uint32_t>;

struct CountedSymbols {
  Ids symbols;
  std::int64_t count;
  bool operator==(const CountedSymbols&) const = default;
};

using CountedWords = std::vector<CountedSymbols>;

/// The words packed by the kernel's own writer.
inline bpe_beam::PackedColumns packed(const CountedWords& words) {
  bpe_beam::PackedColumns columns;
  std::vector<char> scratch;
  for (const CountedSymbols& word : words) {
    bpe_beam::append_packed(word.symbols, scratch, columns.data);
    columns.end_word(word.count);
  }
  return columns;
}

inline bpe_beam::PackedWords view_of(const bpe_beam::PackedColumns& columns) {
  return {columns.data, columns.offsets, columns.counts};
}

inline CountedWords unpacked(const bpe_beam::PackedColumns& columns) {
  CountedWords words;
  const bpe_beam::PackedWords view = view_of(columns);
  for (std::size_t word = 0; word < view.size(); ++word) {
    Ids symbols;
    bpe_beam::unpack_word(view, word, symbols);
    words.push_back({symbols, view.counts[word]});
  }
  return words;
}

inline std::map<SymbolPair, std::int64_t> naive_pairs(const CountedWords& words) {
  std::map<SymbolPair, std::int64_t> pairs;
  for (const auto& [symbols, count] : words) {
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      pairs[{symbols[i], symbols[i + 1]}] += count;
    }
  }
  return pairs;
}

inline CountedWords naive_segments(const CountedWords& words, const std::set<SymbolPair>& hot,
                                   bool singles) {
  CountedWords segments;
  for (const auto& [symbols, count] : words) {
    Ids segment;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      segment.push_back(symbols[i]);
      if (i + 1 < symbols.size() && hot.contains({symbols[i], symbols[i + 1]})) continue;
      if (singles || segment.size() > 1) segments.push_back({segment, count});
      segment.clear();
    }
  }
  return segments;
}

inline CountedWords naive_rewrite(const CountedWords& words,
                                  const std::vector<std::vector<bpe_beam::MergeRow>>& batches) {
  CountedWords left;
  for (const auto& [ids, count] : words) {
    Symbols symbols;
    for (const std::uint32_t id : ids) symbols.push_back({id, 1});
    for (const auto& rows : batches) symbols = naive_merge(rows, false, symbols);
    Ids merged;
    for (const Symbol& symbol : symbols) merged.push_back(symbol.id);
    if (merged.size() > 1) left.push_back({merged, count});
  }
  return left;
}

/// A pair of lefts and rights, as the kernels take sets of pairs.
struct PairLists {
  explicit PairLists(const std::set<SymbolPair>& pairs) {
    for (const auto& [left, right] : pairs) {
      lefts.push_back(left);
      rights.push_back(right);
    }
  }

  Ids lefts;
  Ids rights;
};

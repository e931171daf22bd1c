// BPE learning by counting everything again after each merge: what the fast learner must equal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bpe_learner.hpp"

struct NaiveWord {
  std::vector<std::uint32_t> symbols;
  std::int64_t count;
};

/// Appends what it learns to `tokens`; the arguments are those of BpeLearner.
inline std::vector<bpe_beam::LearnedMerge> naive_learn(std::vector<NaiveWord> words,
                                                       std::vector<std::string>& tokens,
                                                       std::size_t vocab_size,
                                                       std::int64_t min_frequency,
                                                       bpe_beam::TieBreak tie_break) {
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  struct Seen {
    std::int64_t count = 0;
    std::size_t first = 0;
  };
  std::vector<bpe_beam::LearnedMerge> learned;
  while (tokens.size() < vocab_size) {
    std::map<Pair, Seen> pairs;
    for (const NaiveWord& word : words) {
      for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        const Seen fresh{0, pairs.size()};
        const Pair pair{word.symbols[i], word.symbols[i + 1]};
        pairs.try_emplace(pair, fresh).first->second.count += word.count;
      }
    }
    const auto better = [&](const auto& a, const auto& b) {
      if (a.second.count != b.second.count) return a.second.count > b.second.count;
      if (tie_break == bpe_beam::TieBreak::kLowestId) return a.first < b.first;
      if (tie_break == bpe_beam::TieBreak::kFirstSeen) return a.second.first < b.second.first;
      return std::pair(tokens[a.first.first], tokens[a.first.second]) >
             std::pair(tokens[b.first.first], tokens[b.first.second]);
    };
    auto best = pairs.begin();
    for (auto pair = pairs.begin(); pair != pairs.end(); ++pair) {
      if (better(*pair, *best)) best = pair;
    }
    if (best == pairs.end() || best->second.count < std::max<std::int64_t>(min_frequency, 1)) break;
    const auto [left, right] = best->first;
    const std::string bytes = tokens[left] + tokens[right];
    std::uint32_t joined = 0;
    while (joined < tokens.size() && tokens[joined] != bytes) ++joined;
    if (joined == tokens.size()) tokens.push_back(bytes);
    learned.push_back({left, right, joined, best->second.count});
    for (NaiveWord& word : words) {
      std::vector<std::uint32_t> symbols;
      for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        const bool here =
            i + 1 < word.symbols.size() && word.symbols[i] == left && word.symbols[i + 1] == right;
        symbols.push_back(here ? joined : word.symbols[i]);
        if (here) ++i;
      }
      word.symbols = std::move(symbols);
    }
  }
  return learned;
}

// Learning by counting everything again after each merge: what the fast learner must equal.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "learn/bpe_learner.hpp"

struct NaiveWord {
  std::vector<std::uint32_t> symbols;
  std::int64_t count;
  std::vector<std::uint64_t> spans;  // empty: one each
};

struct NaiveRules {
  std::size_t vocab_size;
  std::int64_t min_frequency;
  bpe_beam::TieBreak tie_break;
  bpe_beam::Score score = bpe_beam::Score::kCount;
  std::string prefix;
  std::uint64_t max_token_length = UINT64_MAX;
};

/// A product in digits of 32 bits, the highest first: such arrays compare as numbers do.
inline std::array<std::uint32_t, 8> naive_product(std::initializer_list<std::int64_t> factors) {
  std::array<std::uint32_t, 8> digits{};
  digits[7] = 1;
  for (const std::int64_t factor : factors) {
    std::array<std::uint32_t, 8> product{};
    for (const int half : {0, 1}) {
      const std::uint64_t by = (static_cast<std::uint64_t>(factor) >> (32 * half)) & 0xFFFFFFFF;
      std::uint64_t carry = 0;
      for (int i = 7; i - half >= 0; --i) {
        const auto at = static_cast<std::size_t>(i);
        const auto to = static_cast<std::size_t>(i - half);
        carry += digits[at] * by + product[to];
        product[to] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    digits = product;
  }
  return digits;
}

class NaiveLearner {
 public:
  NaiveLearner(std::vector<NaiveWord> words, std::vector<std::string> tokens, NaiveRules rules)
      : words_(std::move(words)), tokens_(std::move(tokens)), rules_(std::move(rules)) {
    for (NaiveWord& word : words_) {
      if (word.spans.empty()) word.spans.assign(word.symbols.size(), 1);
    }
  }

  std::vector<bpe_beam::LearnedMerge> learn() {
    std::vector<bpe_beam::LearnedMerge> learned;
    while (tokens_.size() < rules_.vocab_size) {
      count();
      auto best = pairs_.end();
      for (auto pair = pairs_.begin(); pair != pairs_.end(); ++pair) {
        if (pair->second.count < std::max<std::int64_t>(rules_.min_frequency, 1)) continue;
        if (best == pairs_.end() || better(*pair, *best)) best = pair;
      }
      if (best == pairs_.end()) break;
      learned.push_back(merge(best->first, best->second.count));
    }
    return learned;
  }

  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  struct Seen {
    std::int64_t count = 0;
    std::size_t first = 0;
  };

  [[nodiscard]] bool is_at(const NaiveWord& word, std::size_t i) const {
    if (i + 1 >= word.symbols.size()) return false;
    const std::uint64_t length = word.spans[i] + word.spans[i + 1];
    return length == 2 || length < rules_.max_token_length;
  }

  void count() {
    pairs_.clear();
    frequencies_.clear();
    for (const NaiveWord& word : words_) {
      for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        frequencies_[word.symbols[i]] += word.count;
        if (!is_at(word, i)) continue;
        const Seen fresh{0, pairs_.size()};
        const Pair pair{word.symbols[i], word.symbols[i + 1]};
        pairs_.try_emplace(pair, fresh).first->second.count += word.count;
      }
    }
  }

  [[nodiscard]] bool better(const std::pair<const Pair, Seen>& a,
                            const std::pair<const Pair, Seen>& b) const {
    const auto [x, y] = a.first;
    const auto [u, v] = b.first;
    if (rules_.score == bpe_beam::Score::kLikelihood) {
      const auto a_score = naive_product({a.second.count, frequencies_.at(u), frequencies_.at(v)});
      const auto b_score = naive_product({b.second.count, frequencies_.at(x), frequencies_.at(y)});
      if (a_score != b_score) return a_score > b_score;
    } else if (a.second.count != b.second.count) {
      return a.second.count > b.second.count;
    }
    if (rules_.tie_break == bpe_beam::TieBreak::kLowestId) return a.first < b.first;
    if (rules_.tie_break == bpe_beam::TieBreak::kFirstSeen) return a.second.first < b.second.first;
    return std::pair(tokens_[x], tokens_[y]) > std::pair(tokens_[u], tokens_[v]);
  }

  bpe_beam::LearnedMerge merge(Pair pair, std::int64_t count) {
    const auto [left, right] = pair;
    std::string part = tokens_[right];
    if (part.starts_with(rules_.prefix)) part.erase(0, rules_.prefix.size());
    const std::string bytes = tokens_[left] + part;
    std::uint32_t joined = 0;
    while (joined < tokens_.size() && tokens_[joined] != bytes) ++joined;
    if (joined == tokens_.size()) tokens_.push_back(bytes);
    for (NaiveWord& word : words_) {
      NaiveWord now{{}, word.count, {}};
      for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        const bool here = is_at(word, i) && word.symbols[i] == left && word.symbols[i + 1] == right;
        now.symbols.push_back(here ? joined : word.symbols[i]);
        now.spans.push_back(word.spans[i] + (here ? word.spans[i + 1] : 0));
        if (here) ++i;
      }
      word = std::move(now);
    }
    return {left, right, joined, count};
  }

  std::vector<NaiveWord> words_;
  std::vector<std::string> tokens_;
  NaiveRules rules_;
  std::map<Pair, Seen> pairs_;
  std::map<std::uint32_t, std::int64_t> frequencies_;
};

inline bool same_merge(const bpe_beam::LearnedMerge& a, const bpe_beam::LearnedMerge& b) {
  return a.left == b.left && a.right == b.right && a.joined == b.joined && a.count == b.count;
}

inline bool same_merges(const std::vector<bpe_beam::LearnedMerge>& a,
                        const std::vector<bpe_beam::LearnedMerge>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_merge);
}

/// All merges, `step` a call.
inline std::vector<bpe_beam::LearnedMerge> learn_by_steps(bpe_beam::BpeLearner& learner,
                                                          std::size_t step) {
  std::vector<bpe_beam::LearnedMerge> found;
  while (true) {
    const auto more = learner.learn(step);
    if (more.empty()) return found;
    found.insert(found.end(), more.begin(), more.end());
  }
}

// Learns merges from words and their counts: BPE by counts, WordPiece by likelihood.
//
// A queue chooses the next pair (count_queue.hpp, likelihood_queue.hpp); the table changes words
// and pairs for a merge (merge_table.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "learn/count_queue.hpp"
#include "learn/likelihood_queue.hpp"
#include "learn/merge_table.hpp"

namespace bpe_beam {

enum class Score { kCount, kLikelihood };

/// The rules by which the next pair is chosen and learning ends.
struct LearningRules {
  std::size_t vocab_size = 0;
  std::int64_t min_frequency = 0;  // 0 means 1
  TieBreak tie_break = TieBreak::kLowestId;
  Score score = Score::kCount;
  /// True if learning ends after a merge whose joined token had an id before.
  bool stop_at_known = false;
  /// The maximum number of bytes of the parts of all merges; learning ends before the merge that
  /// would exceed it. Without this limit, a text of one letter makes tokens as long as the text.
  std::uint64_t max_text = UINT64_MAX;
};

class BpeLearner {
 public:
  BpeLearner(WordsToLearn words, const LearningRules& rules) {
    if (rules.score == Score::kLikelihood) {
      learner_ = std::make_unique<LearnerOf<LikelihoodQueue>>(std::move(words), rules);
    } else {
      learner_ = std::make_unique<LearnerOf<CountQueue>>(std::move(words), rules);
    }
  }

  /// Learns and returns at most `limit` more merges. An empty result means the end: the
  /// vocabulary is full, no pair is frequent enough, or `stopped()` or `text_full()` is true.
  std::vector<LearnedMerge> learn(std::size_t limit) { return learner_->learn(limit); }

  /// Returns whether the last merge made a token that existed before, and the rules end learning
  /// there.
  [[nodiscard]] bool stopped() const { return learner_->stopped(); }

  /// Returns whether learning ended because the best pair would have exceeded `max_text`.
  [[nodiscard]] bool text_full() const { return learner_->text_full(); }

  /// The number of tokens that the words have now, each word weighted by its count.
  [[nodiscard]] std::int64_t token_count() const { return learner_->token_count(); }

  /// The bytes of every token, in the order of ids.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return learner_->tokens(); }

 private:
  struct Learner {
    virtual ~Learner() = default;
    virtual std::vector<LearnedMerge> learn(std::size_t limit) = 0;
    [[nodiscard]] virtual bool stopped() const = 0;
    [[nodiscard]] virtual bool text_full() const = 0;
    [[nodiscard]] virtual std::int64_t token_count() const = 0;
    [[nodiscard]] virtual const std::vector<std::string>& tokens() const = 0;
  };

  template <typename Queue>
  class LearnerOf final : public Learner {
   public:
    LearnerOf(WordsToLearn words, const LearningRules& rules)
        : vocab_size_(rules.vocab_size),
          stop_at_known_(rules.stop_at_known),
          text_left_(rules.max_text),
          table_(std::move(words)),
          queue_(table_, std::max<std::int64_t>(rules.min_frequency, 1), rules.tie_break) {}

    std::vector<LearnedMerge> learn(std::size_t limit) override {
      std::vector<LearnedMerge> learned;
      while (!stopped_ && !text_full_ && learned.size() < limit &&
             table_.tokens().size() < vocab_size_) {
        const std::size_t known = table_.tokens().size();
        const std::uint32_t pair = queue_.pop_best();
        if (pair == PairMap::kNone) break;
        if (!take_text(pair)) break;
        learned.push_back(table_.merge(pair, [this](std::uint32_t it) { queue_.count_rose(it); }));
        const auto& [left, right, joined, count] = learned.back();
        queue_.frequency_fell(left);
        if (right != left) queue_.frequency_fell(right);
        stopped_ = stop_at_known_ && joined < known;
      }
      return learned;
    }

    [[nodiscard]] bool stopped() const override { return stopped_; }

    [[nodiscard]] bool text_full() const override { return text_full_; }

    [[nodiscard]] std::int64_t token_count() const override {
      std::int64_t count = 0;  // at most the words' first symbols, which fit 64 bits
      for (std::uint32_t token = 0; token < table_.tokens().size(); ++token) {
        count += table_.frequency(token);
      }
      return count;
    }

    [[nodiscard]] const std::vector<std::string>& tokens() const override {
      return table_.tokens();
    }

   private:
    /// Subtracts the bytes of a pair's parts from the bytes left for merges. Returns false, and
    /// subtracts nothing, if the pair needs more bytes than are left.
    bool take_text(std::uint32_t index) {
      const auto& pair = table_.pairs()[index];
      const std::uint64_t bytes =
          table_.tokens()[pair.left].size() + table_.tokens()[pair.right].size();
      text_full_ = bytes > text_left_;
      if (!text_full_) text_left_ -= bytes;
      return !text_full_;
    }

    std::size_t vocab_size_;
    bool stop_at_known_;
    bool stopped_ = false;
    bool text_full_ = false;
    std::uint64_t text_left_;
    typename Queue::Table table_;
    Queue queue_;
  };

  std::unique_ptr<Learner> learner_;
};

}  // namespace bpe_beam

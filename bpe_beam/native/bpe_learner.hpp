// Learns merges from words and their counts: BPE by counts, WordPiece by likelihood.
//
// Which pair is next is a queue's affair (count_queue.hpp, likelihood_queue.hpp); what a merge does
// to words and pairs, the table's (merge_table.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "count_queue.hpp"
#include "likelihood_queue.hpp"
#include "merge_table.hpp"

namespace bpe_beam {

enum class Score { kCount, kLikelihood };

/// How the next pair is chosen, and when there is none.
struct LearningRules {
  std::size_t vocab_size = 0;
  std::int64_t min_frequency = 0;  // 0 is as 1
  TieBreak tie_break = TieBreak::kLowestId;
  Score score = Score::kCount;
  /// Symbols are decorated: the same token may be made of other symbols elsewhere.
  bool decorated = false;
  /// Nothing is learned after a merge whose joined token had an id before.
  bool stop_at_known = false;
};

class BpeLearner {
 public:
  /// Words with spans or a prefix count as decorated.
  BpeLearner(WordsToLearn words, const LearningRules& rules) {
    const bool by_place = rules.decorated || !words.spans.empty() || !words.prefix.empty();
    if (rules.score == Score::kLikelihood) {
      by_place ? start<LikelihoodQueue<true>>(std::move(words), rules)
               : start<LikelihoodQueue<false>>(std::move(words), rules);
    } else {
      by_place ? start<CountQueue<true>>(std::move(words), rules)
               : start<CountQueue<false>>(std::move(words), rules);
    }
  }

  /// Learns at most `limit` more merges; returns them. An empty result means the end: the
  /// vocabulary is full, no pair is frequent enough, or it has stopped.
  std::vector<LearnedMerge> learn(std::size_t limit) { return learner_->learn(limit); }

  /// Whether the last merge made a token that was there before, and the rules end learning there.
  [[nodiscard]] bool stopped() const { return learner_->stopped(); }

  /// The bytes of every token, in the order of ids.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return learner_->tokens(); }

 private:
  struct Learner {
    virtual ~Learner() = default;
    virtual std::vector<LearnedMerge> learn(std::size_t limit) = 0;
    [[nodiscard]] virtual bool stopped() const = 0;
    [[nodiscard]] virtual const std::vector<std::string>& tokens() const = 0;
  };

  template <typename Queue>
  class LearnerOf final : public Learner {
   public:
    LearnerOf(WordsToLearn words, const LearningRules& rules)
        : vocab_size_(rules.vocab_size),
          stop_at_known_(rules.stop_at_known),
          table_(std::move(words)),
          queue_(table_, std::max<std::int64_t>(rules.min_frequency, 1), rules.tie_break) {}

    std::vector<LearnedMerge> learn(std::size_t limit) override {
      std::vector<LearnedMerge> learned;
      while (!stopped_ && learned.size() < limit && table_.tokens().size() < vocab_size_) {
        const std::size_t known = table_.tokens().size();
        const std::uint32_t pair = queue_.pop_best();
        if (pair == PairMap::kNone) break;
        learned.push_back(table_.merge(pair, [this](std::uint32_t it) { queue_.gained(it); }));
        queue_.fell(learned.back().left);
        if (learned.back().right != learned.back().left) queue_.fell(learned.back().right);
        stopped_ = stop_at_known_ && learned.back().joined < known;
      }
      return learned;
    }

    [[nodiscard]] bool stopped() const override { return stopped_; }

    [[nodiscard]] const std::vector<std::string>& tokens() const override {
      return table_.tokens();
    }

   private:
    std::size_t vocab_size_;
    bool stop_at_known_;
    bool stopped_ = false;
    typename Queue::Table table_;
    Queue queue_;
  };

  template <typename Queue>
  void start(WordsToLearn words, const LearningRules& rules) {
    learner_ = std::make_unique<LearnerOf<Queue>>(std::move(words), rules);
  }

  std::unique_ptr<Learner> learner_;
};

}  // namespace bpe_beam

// Binds bpe_learner.hpp.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "learn/bpe_learner.hpp"

namespace bpe_beam {
namespace {

TieBreak tie_break_of(const std::string& name) {
  if (name == "lowest_id") return TieBreak::kLowestId;
  if (name == "first_seen") return TieBreak::kFirstSeen;
  if (name == "greatest_bytes") return TieBreak::kGreatestBytes;
  throw std::invalid_argument("tie_break must be lowest_id, first_seen or greatest_bytes, got " +
                              name);
}

Score score_of(const std::string& name) {
  if (name == "count") return Score::kCount;
  if (name == "likelihood") return Score::kLikelihood;
  throw std::invalid_argument("score must be count or likelihood, got " + name);
}

class PyBpeLearner {
 public:
  PyBpeLearner(const InputArray<std::uint32_t>& symbols, const InputArray<std::int64_t>& offsets,
               const InputArray<std::int64_t>& counts, std::vector<std::string> tokens,
               std::size_t vocab_size, std::int64_t min_frequency, const std::string& tie_break,
               const std::string& score, const std::string& prefix,
               std::optional<std::uint64_t> max_token_length,
               const std::optional<InputArray<std::uint32_t>>& spans, bool stop_at_known,
               std::optional<std::uint64_t> max_text, std::optional<std::uint64_t> max_positions) {
    const LearningRules rules{.vocab_size = vocab_size,
                              .min_frequency = min_frequency,
                              .tie_break = tie_break_of(tie_break),
                              .score = score_of(score),
                              .stop_at_known = stop_at_known,
                              .max_text = max_text.value_or(UINT64_MAX)};
    WordsToLearn words{.symbols = span_of(symbols),
                       .offsets = span_of(offsets),
                       .counts = span_of(counts),
                       .tokens = std::move(tokens),
                       .spans = {},
                       .prefix = prefix};
    if (spans) words.spans = span_of(*spans);
    if (max_positions) words.max_positions = *max_positions;
    if (max_token_length) words.max_token_length = *max_token_length;
    py::gil_scoped_release release;
    learner_ = std::make_unique<BpeLearner>(std::move(words), rules);
  }

  py::tuple learn(std::size_t limit) {
    std::vector<std::uint32_t> rows;
    std::vector<std::int64_t> counts;
    {
      py::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      for (const LearnedMerge& merge : learner_->learn(limit)) {
        rows.insert(rows.end(), {merge.left, merge.right, merge.joined});
        counts.push_back(merge.count);
      }
    }
    return py::make_tuple(as_array(std::move(rows), 3), as_array(std::move(counts)));
  }

  bool stopped() {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return learner_->stopped();
  }

  bool text_full() {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return learner_->text_full();
  }

  std::int64_t token_count() {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return learner_->token_count();
  }

  py::list tokens() {
    const std::lock_guard lock(mutex_);
    py::list result;
    for (const std::string& token : learner_->tokens())
      result.append(py::bytes(token.data(), token.size()));
    return result;
  }

 private:
  std::unique_ptr<BpeLearner> learner_;
  std::mutex mutex_;
};

}  // namespace

void bind_learning(py::module_& m) {
  using namespace py::literals;
  m.attr("MAX_POSITIONS") = kMaxPositions;
  py::class_<PyBpeLearner>(m, "BpeLearner", "Learns merges from words and their counts.")
      .def(py::init<const InputArray<std::uint32_t>&, const InputArray<std::int64_t>&,
                    const InputArray<std::int64_t>&, std::vector<std::string>, std::size_t,
                    std::int64_t, const std::string&, const std::string&, const std::string&,
                    std::optional<std::uint64_t>, const std::optional<InputArray<std::uint32_t>>&,
                    bool, std::optional<std::uint64_t>, std::optional<std::uint64_t>>(),
           "symbols"_a, "offsets"_a, "counts"_a, "tokens"_a, "vocab_size"_a, "min_frequency"_a,
           "tie_break"_a, "score"_a = "count", "prefix"_a = "", "max_token_length"_a = py::none(),
           "spans"_a = py::none(), "stop_at_known"_a = false, "max_text"_a = py::none(),
           "max_positions"_a = py::none())
      .def("learn", &PyBpeLearner::learn, "limit"_a,
           "The next merges, at most `limit`: (uint32[n, 3] left, right, joined; int64[n] counts).")
      .def_prop_ro("stopped", &PyBpeLearner::stopped,
                   "True if training ended after a merge whose token had an id before.")
      .def_prop_ro("text_full", &PyBpeLearner::text_full,
                   "True if training ended before a merge beyond `max_text`.")
      .def_prop_ro("token_count", &PyBpeLearner::token_count,
                   "The number of tokens that the words have now.")
      .def("tokens", &PyBpeLearner::tokens, "The bytes of every id.");
}

}  // namespace bpe_beam

// Binds the pipeline, which Python describes as tuples.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/described_steps.hpp"
#include "bind/py_pipeline.hpp"
#include "bind/subjects.hpp"
#include "scan/pipeline.hpp"
#include "text/deadline.hpp"

namespace bpe_beam {
namespace {

SplitBehavior behavior_of(const std::string& name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw std::invalid_argument("behavior must be a SplitDelimiterBehavior, got " + name);
}

/// A step: ("scan", name), ("fixed_length", characters), ("split", matcher, behavior, invert),
/// ("rewrite", normalizer) or ("prepend", bytes, first_only).
std::unique_ptr<PreTokenizerStep> make_step(const py::tuple& step) {
  const auto kind = py::cast<std::string>(step[0]);
  if (kind == "scan") return std::make_unique<ScanStep>(py::cast<std::string>(step[1]));
  if (kind == "split") {
    return std::make_unique<SplitStep>(make_matcher(step[1]),
                                       behavior_of(py::cast<std::string>(step[2])),
                                       py::cast<bool>(step[3]));
  }
  if (kind == "rewrite") return std::make_unique<RewriteStep>(make_normalizer(step[1]));
  if (kind == "prepend") {
    return std::make_unique<PrependStep>(py::cast<std::string>(step[1]), py::cast<bool>(step[2]));
  }
  if (kind == "fixed_length")
    return std::make_unique<FixedLengthStep>(py::cast<std::size_t>(step[1]));
  throw std::invalid_argument("step must be scan, fixed_length, split, rewrite or prepend, got " +
                              kind);
}

/// (content, id, single_word, lstrip, rstrip, normalized, special).
using AddedTuple = std::tuple<std::string, std::uint32_t, bool, bool, bool, bool, bool>;

std::shared_ptr<const Pipeline> make_pipeline(const std::vector<AddedTuple>& added,
                                              const py::object& normalizer,
                                              const std::vector<py::tuple>& steps,
                                              double text_seconds) {
  std::unique_ptr<Normalizer> normalizing;
  if (!normalizer.is_none()) normalizing = make_normalizer(normalizer);
  std::vector<AddedToken> raw;
  std::vector<AddedToken> clean;
  for (const auto& [content, id, single_word, lstrip, rstrip, normalized, special] : added) {
    AddedToken token{content, id, single_word, lstrip, rstrip, special};
    if (normalized && normalizing != nullptr) {
      TextBuffer buffer;
      buffer.clear(false);
      normalizing->apply({token.content, nullptr}, buffer);
      token.content = std::string(buffer.view().bytes);
      if (token.content.empty()) continue;  // no part of the text remains
    }
    (normalized ? clean : raw).push_back(std::move(token));
  }
  std::vector<std::unique_ptr<PreTokenizerStep>> made;
  for (const py::tuple& step : steps) made.push_back(make_step(step));
  return std::make_shared<const Pipeline>(AddedTokens(std::move(raw)),
                                          AddedTokens(std::move(clean)), std::move(normalizing),
                                          std::move(made), text_seconds);
}

/// The words of a text as bytes, as counting and encoding get them. All added tokens are extracted.
py::list words_of(const PyPipeline& splitting, const Buffer& text,
                  std::vector<std::uint32_t> allowed) {
  struct Collecting {
    std::vector<std::string> collected;
    void words(const TextView& view, std::span<const Word> spans) {
      for (const Word& word : spans) {
        collected.emplace_back(view.bytes.substr(word.begin, word.end - word.begin));
      }
    }
    void added(std::uint32_t, const TextView&) {}
  };
  const std::string_view bytes = bytes_of(text);
  Collecting sink;
  {
    py::gil_scoped_release release;
    std::sort(allowed.begin(), allowed.end());
    PipelineState state;
    splitting.pipeline->run(bytes, allowed, false, state, sink);
  }
  py::list result;
  for (const std::string& word : sink.collected) result.append(py::bytes(word.data(), word.size()));
  return result;
}

/// The scope of a deadline as a context manager; the same thread must enter and leave it.
class TextDeadline {
 public:
  explicit TextDeadline(double seconds) : seconds_(seconds) {}
  void enter() {
    scope_.emplace(seconds_);
    Deadline::left();  // Starts the clock, so that Python's time before the first check counts.
  }
  void exit(const py::args&) { scope_.reset(); }

 private:
  double seconds_;
  std::optional<Deadline::Scope> scope_;
};

/// Finds the texts of tokens in any context.
class TokenFinder {
 public:
  explicit TokenFinder(const std::vector<std::tuple<std::string, std::uint32_t, bool>>& tokens)
      : tokens_(added_of(tokens)) {}

  /// (id, begin, end) of each, in bytes; None for the id of a special token that is not allowed.
  [[nodiscard]] py::list find(const Buffer& data, std::vector<std::uint32_t> allowed) const {
    const std::string_view bytes = bytes_of(data);
    std::sort(allowed.begin(), allowed.end());
    py::list matches;
    const auto append = [&](const py::object& id, const TextView& place) {
      const auto begin = static_cast<std::size_t>(place.bytes.data() - bytes.data());
      matches.append(py::make_tuple(id, begin, begin + place.bytes.size()));
    };
    tokens_.extract(
        TextView{bytes, nullptr}, allowed, [](const TextView&) {},
        [&](std::uint32_t id, const TextView& place) { append(py::int_(id), place); },
        [&](const TextView& place) { append(py::none(), place); });
    return matches;
  }

 private:
  static AddedTokens added_of(
      const std::vector<std::tuple<std::string, std::uint32_t, bool>>& all) {
    std::vector<AddedToken> tokens;
    for (const auto& [content, id, special] : all) {
      AddedToken token{content, id};
      token.special = special;
      tokens.push_back(std::move(token));
    }
    return AddedTokens(std::move(tokens));
  }

  AddedTokens tokens_;
};

}  // namespace

void bind_pipeline(py::module_& m) {
  using namespace py::literals;
  m.attr("TextGrowthError") =
      py::steal(PyErr_NewException("bpe_beam._native.TextGrowthError", PyExc_ValueError, nullptr));
  static const py::handle growth_error = py::object(m.attr("TextGrowthError")).release();
  static const py::handle data_error =
      py::object(py::module_::import_("bpe_beam.errors").attr("DataError")).release();
  py::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const TextGrowth&) {
      PyErr_SetString(growth_error.ptr(),
                      "the tokenizer's normalizer or pre-tokenizer makes a text over 32 times as "
                      "long: check the Replace and Prepend parts in its file");
    } catch (const TextTimeout& timeout) {
      const std::string message =
          "one text takes over " + std::to_string(std::llround(timeout.seconds)) +
          " seconds of CPU time: the tokenizer's normalizer, pre-tokenizer, added tokens or "
          "decoder "
          "are too slow for it; BPE_BEAM_TEXT_SECONDS=N in the environment allows N seconds";
      PyErr_SetString(data_error.ptr(), message.c_str());
    }
  });
  py::class_<TextDeadline>(m, "TextDeadline",
                           "A context in which the thread's text has a deadline.")
      .def(py::init<double>(), "seconds"_a)
      .def("__enter__", &TextDeadline::enter)
      .def("__exit__", &TextDeadline::exit);
  m.attr("TEXT_BYTES_PER_SECOND") = Pipeline::kTextBytesPerSecond;
  m.def("seconds_left", &Deadline::left,
        "The CPU seconds that the current text has left; infinity where no deadline is set.");
  m.def("check_deadline", &Deadline::check, "Raises DataError if the time is over.");
  py::class_<TokenFinder>(m, "TokenFinder", "Finds the texts of tokens in a text.")
      .def(py::init<const std::vector<std::tuple<std::string, std::uint32_t, bool>>&>(), "tokens"_a,
           "`tokens`: (content, id, special) of each.")
      .def("find", &TokenFinder::find, "data"_a, "allowed"_a = std::vector<std::uint32_t>{},
           "(id, begin, end) of each token in UTF-8, leftmost first, of those the longest that "
           "counts; (None, begin, end) of special tokens that are not allowed.");
  py::class_<PyPipeline>(m, "Pipeline", "From texts to words: what counting and encoding share.")
      .def(
          "__init__",
          [](PyPipeline* self, const std::vector<AddedTuple>& added, const py::object& normalizer,
             const std::vector<py::tuple>& steps, double text_seconds) {
            new (self) PyPipeline{make_pipeline(added, normalizer, steps, text_seconds)};
          },
          "added"_a, "normalizer"_a.none(), "steps"_a,
          "text_seconds"_a = std::numeric_limits<double>::infinity(),
          "`added`: (content, id, single_word, lstrip, rstrip, normalized, special) of each.")
      .def("words", &words_of, "text"_a, "allowed"_a = std::vector<std::uint32_t>{},
           "The words of a text as bytes; added tokens that count are extracted.");
}

}  // namespace bpe_beam

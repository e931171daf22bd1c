// Python's side of normalizing: steps described as tuples.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/described_steps.hpp"
#include "bind/subjects.hpp"
#include "normalize/bert_normalizer.hpp"
#include "normalize/matcher.hpp"
#include "normalize/normalizers.hpp"
#include "normalize/precompiled.hpp"
#include "normalize/sentencepiece_normalizer.hpp"
#include "text/deadline.hpp"

namespace bpe_beam {
namespace {

/// Matches that a Python function finds: callable(bytes) -> sequence of (begin, end) in bytes.
class CallbackMatcher final : public Matcher {
 public:
  explicit CallbackMatcher(py::object callable) : callable_(std::move(callable)) {
    if (!PyCallable_Check(callable_.ptr())) {
      throw std::invalid_argument("a regex matcher needs a callable");
    }
  }
  CallbackMatcher(const CallbackMatcher&) = delete;
  CallbackMatcher& operator=(const CallbackMatcher&) = delete;
  ~CallbackMatcher() override {
    const py::gil_scoped_acquire gil;
    callable_ = py::object();
  }

  void find(std::string_view text, std::vector<Span>& out) const override {
    Deadline::check();
    const py::gil_scoped_acquire gil;
    const py::object spans = callable_(py::bytes(text.data(), text.size()));
    std::size_t last = 0;
    for (const py::handle item : spans) {
      const auto [begin, end] = py::cast<std::pair<std::size_t, std::size_t>>(item);
      if (begin < last || end < begin || end > text.size()) {
        throw std::invalid_argument("the matcher's span (" + std::to_string(begin) + ", " +
                                    std::to_string(end) + ") lies outside of the text of " +
                                    std::to_string(text.size()) +
                                    " bytes or before the end of another");
      }
      out.push_back({begin, end});
      last = end;
    }
  }

 private:
  py::object callable_;
};

/// The items of a described step, after a check of its name and number of arguments.
py::tuple step_items(py::handle described) {
  if (!py::isinstance<py::tuple>(described) || py::len(described) == 0) {
    throw std::invalid_argument(std::string("a step is a tuple that begins with its name, not ") +
                                py::repr(described).c_str());
  }
  return py::borrow<py::tuple>(described);
}

std::invalid_argument unknown_step(const char* kind, const py::tuple& items) {
  return std::invalid_argument("no " + std::string(kind) + " is described by " +
                               py::repr(items).c_str());
}

/// Sequences that are nested deeper are refused, because recursion walks them.
constexpr int kDeepestSteps = 32;

std::unique_ptr<Normalizer> make_nested(py::handle described, int depth) {
  if (depth > kDeepestSteps) throw std::invalid_argument("normalizers are nested too deep");
  const py::tuple items = step_items(described);
  const auto name = py::cast<std::string>(items[0]);
  const std::size_t arguments = items.size() - 1;
  const auto flag = [&](std::size_t i) { return py::cast<bool>(items[i]); };
  const auto form = [](NormalizationForm form) { return std::make_unique<FormNormalizer>(form); };
  if (name == "NFC" && arguments == 0) return form(NormalizationForm::kNfc);
  if (name == "NFD" && arguments == 0) return form(NormalizationForm::kNfd);
  if (name == "NFKC" && arguments == 0) return form(NormalizationForm::kNfkc);
  if (name == "NFKD" && arguments == 0) return form(NormalizationForm::kNfkd);
  if (name == "Lowercase" && arguments == 0) return std::make_unique<Lowercase>();
  if (name == "StripAccents" && arguments == 0) return std::make_unique<StripAccents>();
  if (name == "ByteLevel" && arguments == 0) return std::make_unique<ByteLevelText>();
  if (name == "Strip" && arguments == 2) return std::make_unique<Strip>(flag(1), flag(2));
  if (name == "Nmt" && arguments == 0) return std::make_unique<Nmt>();
  if (name == "Precompiled" && arguments == 1) {
    return std::make_unique<Precompiled>(bytes_of(py::cast<py::bytes>(items[1])));
  }
  if (name == "SentencePiece" && arguments == 6) {
    TokenIds symbols;
    for (const py::handle symbol : items[6]) symbols.emplace_back(py::cast<std::string>(symbol), 0);
    return std::make_unique<SentencePieceNormalizer>(
        bytes_of(py::cast<py::bytes>(items[1])), symbols,
        SentencePieceRules{flag(2), flag(3), flag(4), flag(5)});
  }
  if (name == "Prepend" && arguments == 1) {
    return std::make_unique<Prepend>(py::cast<std::string>(items[1]));
  }
  if (name == "BertNormalizer" && arguments == 4) {
    return std::make_unique<BertNormalizer>(BertSteps{flag(1), flag(2), flag(3), flag(4)});
  }
  if (name == "Replace" && arguments == 2) {
    return std::make_unique<Replace>(make_matcher(items[1]), py::cast<std::string>(items[2]));
  }
  if (name == "Sequence" && arguments == 1) {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const py::handle step : items[1]) steps.push_back(make_nested(step, depth + 1));
    return std::make_unique<NormalizerSequence>(std::move(steps));
  }
  throw unknown_step("normalizer", items);
}

/// The origins of the characters of an original text; a malformed byte is a character.
std::vector<Origin> own_origins(std::string_view text) {
  std::vector<Origin> origins;
  origins.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = decode_utf8(text.data() + at, text.data() + text.size()).size;
    origins.insert(origins.end(), size, Origin{at, at + size});
    at += size;
  }
  return origins;
}

py::tuple normalize_text(const py::handle& step, const py::bytes& text, bool with_origins) {
  const std::unique_ptr<Normalizer> normalizer = make_normalizer(step);
  const std::string_view bytes = bytes_of(text);
  TextBuffer out;
  out.clear(with_origins);
  {
    const py::gil_scoped_release release;
    const std::vector<Origin> origins = with_origins ? own_origins(bytes) : std::vector<Origin>{};
    normalizer->apply({bytes, with_origins ? origins.data() : nullptr}, out);
  }
  const TextView view = out.view();
  py::object places = py::none();
  if (with_origins) {
    std::vector<std::int64_t> rows;
    rows.reserve(2 * view.bytes.size());
    for (const Origin& origin : std::span(view.origins, view.bytes.size())) {
      rows.push_back(static_cast<std::int64_t>(origin.begin));
      rows.push_back(static_cast<std::int64_t>(origin.end));
    }
    places = as_array(std::move(rows), 2);
  }
  return py::make_tuple(py::bytes(view.bytes.data(), view.bytes.size()), places);
}

}  // namespace

std::unique_ptr<Matcher> make_matcher(py::handle described) {
  const py::tuple items = step_items(described);
  const auto name = py::cast<std::string>(items[0]);
  const std::size_t arguments = items.size() - 1;
  if (name == "literal" && arguments == 1) {
    return std::make_unique<LiteralMatcher>(py::cast<std::string>(items[1]));
  }
  if (name == "punctuation" && arguments == 0) return std::make_unique<PunctuationMatcher>();
  if (name == "word_end" && arguments == 0) return std::make_unique<WordEndMatcher>();
  if (name == "space_run" && arguments == 0) return std::make_unique<SpaceRunMatcher>();
  if (name == "regex" && arguments == 1) {
    return std::make_unique<CallbackMatcher>(py::object(items[1]));
  }
  throw unknown_step("matcher", items);
}

std::unique_ptr<Normalizer> make_normalizer(py::handle described) {
  return make_nested(described, 0);
}

void bind_normalizing(py::module_& m) {
  using namespace py::literals;
  m.def(
      "check_charsmap", [](const py::bytes& data) { const Charsmap map{bytes_of(data)}; }, "data"_a,
      "Raises ValueError with the error of a precompiled charsmap, if it has one.");
  m.def("normalize", &normalize_text, "step"_a, "text"_a, "with_origins"_a,
        "UTF-8 `text` after a step: (bytes, int64[bytes, 2] origins in `text` or None).");
}

}  // namespace bpe_beam

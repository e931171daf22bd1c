// Binds word_table.hpp and id_counts.hpp.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/py_pipeline.hpp"
#include "bind/py_text.hpp"
#include "bind/subjects.hpp"
#include "count/id_counts.hpp"
#include "count/word_table.hpp"
#include "encode/word_model.hpp"
#include "text/deadline.hpp"
#include "text/utf8_writer.hpp"

namespace bpe_beam {
namespace {

class PyWordTable {
 public:
  explicit PyWordTable(bool with_places) : table_(with_places) {}

  std::uint64_t add_texts(const PyPipeline& pipeline, std::vector<std::uint32_t> added,
                          const Buffer& data, const InputArray<std::int64_t>& offsets,
                          const std::optional<InputArray<std::uint64_t>>& documents,
                          std::size_t max_bytes, std::uint32_t partitions,
                          const std::optional<py::callable>& on_full) {
    const std::string_view bytes = bytes_of(data);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    const auto positions = positions_of(documents, bounds.size() - 1);
    return add_each(
        pipeline, std::move(added), bounds.size() - 1,
        [&](std::size_t i) { return text_at(bytes, bounds, i); },
        [&](std::size_t i) { return positions.empty() ? 0 : positions[i]; }, max_bytes, partitions,
        on_full);
  }

  /// Takes a list of str or bytes that no other thread changes; ASCII texts and bytes are read
  /// without a copy. Returns (words, bytes of UTF-8, texts). If these are fewer texts than the list
  /// has, the next item is not a text, not UTF-8, or has a lone surrogate.
  py::tuple add_text_list(const PyPipeline& pipeline, std::vector<std::uint32_t> added,
                          const py::list& list, std::uint64_t first_document, std::size_t max_bytes,
                          std::uint32_t partitions, const std::optional<py::callable>& on_full) {
    std::vector<PyText> texts;
    texts.reserve(list.size());
    for (const py::handle text : list) {
      if (!PyText::is_text(text.ptr())) return py::make_tuple(0, 0, texts.size());
      texts.emplace_back(text.ptr());
    }
    Utf8Writer writer;
    std::size_t bytes = 0;
    std::size_t done = 0;
    std::uint64_t words = 0;
    try {
      words = add_each(
          pipeline, std::move(added), texts.size(),
          [&](std::size_t i) {
            const auto text = texts[i].utf8(writer);
            if (!text) throw NotUtf8{};
            bytes += text->size();
            done = i + 1;
            return *text;
          },
          [&](std::size_t i) { return first_document + i; }, max_bytes, partitions, on_full);
    } catch (const NotUtf8&) {
    }
    return py::make_tuple(words, bytes, done);
  }

  void add_words(const Buffer& data, const InputArray<std::int64_t>& offsets,
                 const InputArray<std::int64_t>& counts,
                 const std::optional<InputArray<std::uint64_t>>& documents,
                 const std::optional<InputArray<std::uint64_t>>& words) {
    const std::string_view bytes = bytes_of(data);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    check_length("counts", counts.size(), bounds.size() - 1);
    const auto first_documents = positions_of(documents, bounds.size() - 1);
    const auto first_words = positions_of(words, bounds.size() - 1);
    const auto totals = span_of(counts);
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      WordPosition position;
      if (!first_documents.empty()) position = {first_documents[i], first_words[i]};
      table_.add(text_at(bytes, bounds, i), totals[i], position,
                 bytes.size() - static_cast<std::size_t>(bounds[i]));
    }
  }

  void add_table(PyWordTable& other) {
    if (this == &other) throw std::invalid_argument("a table must not be added to itself");
    if (table_.with_places() && !other.table_.with_places()) {
      throw std::invalid_argument("a table to add must have positions, as this one");
    }
    py::gil_scoped_release release;
    const std::scoped_lock lock(mutex_, other.mutex_);
    table_.add_table(other.table_);
  }

  py::list split(std::uint32_t partitions) {
    std::vector<WordColumns> parts;
    {
      py::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      parts = table_.split(partitions);
    }
    return as_list(std::move(parts));
  }

  py::tuple unsorted() {
    std::vector<WordColumns> all;
    {
      const py::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      all.push_back(table_.unsorted());
    }
    return py::borrow<py::tuple>(as_list(std::move(all))[0]);
  }

  void clear() {
    // Wait for the lock without the GIL, because the thread with the lock may need the GIL for a
    // pattern.
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    table_.clear();
  }

  std::size_t size() {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

  std::size_t memory_bytes() {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return table_.memory_bytes();
  }

  [[nodiscard]] bool with_places() const { return table_.with_places(); }

 private:
  struct NotUtf8 {};

  /// Adds the words of texts; `text_of(i)` is the UTF-8 of a text until the next call, and
  /// `document_of(i)` its position. They are called without the GIL.
  template <class TextOf, class DocumentOf>
  std::uint64_t add_each(const PyPipeline& pipeline, std::vector<std::uint32_t> added,
                         std::size_t texts, TextOf&& text_of, DocumentOf&& document_of,
                         std::size_t max_bytes, std::uint32_t partitions,
                         const std::optional<py::callable>& on_full) {
    std::sort(added.begin(), added.end());
    const std::shared_ptr<const Pipeline> splitting = pipeline.pipeline;
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    const auto hand_over = [&] {
      const Deadline::Pause pause;  // the callback may wait for storage
      std::vector<WordColumns> parts = table_.split(partitions);
      table_.clear();
      const py::gil_scoped_acquire acquire;
      (*on_full)(as_list(std::move(parts)));
    };
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < texts; ++i) {
      words += table_.add_text(text_of(i), *splitting, added, document_of(i),
                               on_full ? max_bytes : SIZE_MAX, hand_over);
    }
    return words;
  }

  /// For each partition: (offsets, data, counts, documents, words).
  static py::list as_list(std::vector<WordColumns> parts) {
    py::list result;
    for (WordColumns& part : parts) {
      result.append(py::make_tuple(
          as_array(std::move(part.offsets)), py::memoryview(as_array(std::move(part.bytes))),
          as_array(std::move(part.counts)), as_array(std::move(part.documents)),
          as_array(std::move(part.words))));
    }
    return result;
  }

  [[nodiscard]] std::span<const std::uint64_t> positions_of(
      const std::optional<InputArray<std::uint64_t>>& positions, std::size_t expected) const {
    if (!table_.with_places()) return {};
    if (!positions) throw std::invalid_argument("documents must be set for a table with positions");
    check_length("positions", positions->size(), expected);
    return span_of(*positions);
  }

  WordTable table_;
  std::mutex mutex_;
};

/// Returns whether each text is not empty and is greater than the previous text, by its bytes.
bool texts_ascend(const Buffer& data, const InputArray<std::int64_t>& offsets) {
  const std::string_view bytes = bytes_of(data);
  const auto bounds = checked_offsets(offsets, bytes.size());
  const py::gil_scoped_release release;
  std::string_view last;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const std::string_view text = text_at(bytes, bounds, i);
    if (text <= last) return false;
    last = text;
  }
  return true;
}

/// See `add_id_counts`; `table` has two dimensions and is changed.
void add_id_counts_to(const InputArray<std::uint32_t>& ids, const InputArray<std::int64_t>& offsets,
                      const InputArray<std::uint32_t>& rows, InputArray<std::int64_t>& table) {
  if (table.ndim() != 2) throw std::invalid_argument("table must have two dimensions");
  const auto items = span_of(ids);
  const auto bounds = checked_offsets(offsets, items.size());
  const auto of = span_of(rows);
  if (!of.empty()) check_length("rows", of.size(), bounds.size() - 1);
  const auto columns = static_cast<std::size_t>(table.shape(1));
  const std::span<std::int64_t> counts{table.mutable_data(),
                                       static_cast<std::size_t>(table.size())};
  const py::gil_scoped_release release;
  add_id_counts(items, bounds, of, counts, columns);
}

/// See `add_times_made`; `made` is changed.
bool add_times_made_to(const InputArray<std::int64_t>& merges, InputArray<std::int64_t>& made) {
  const auto rows = span_of(merges);
  if (rows.size() % 3 != 0) throw std::invalid_argument("a merge must have three positions");
  const std::span<std::int64_t> times{made.mutable_data(), static_cast<std::size_t>(made.size())};
  const py::gil_scoped_release release;
  return add_times_made(rows, times);
}

/// An array of sums. A sum that overflows wraps around; the caller refuses it by its bound.
std::span<std::uint64_t> unsigned_span(InputArray<std::int64_t>& array) {
  return {reinterpret_cast<std::uint64_t*>(array.mutable_data()),
          static_cast<std::size_t>(array.size())};
}

py::tuple as_tuple(const WordAmounts& amounts) {
  return py::make_tuple(amounts.words, amounts.continued, amounts.bytes, amounts.characters,
                        amounts.bound);
}

/// See `add_word_tokens`; `tokens` and `whole` are changed.
py::tuple add_word_tokens_to(const Buffer& data, const InputArray<std::int64_t>& offsets,
                             const InputArray<std::int64_t>& times,
                             const InputArray<std::uint32_t>& ids,
                             const InputArray<std::int64_t>& ends,
                             const InputArray<std::int64_t>& positions,
                             const InputArray<std::int64_t>& known,
                             std::optional<std::size_t> unknown, bool with_tokens,
                             InputArray<std::int64_t>& tokens, InputArray<std::int64_t>& whole) {
  const std::string_view bytes = bytes_of(data);
  const auto bounds = span_of(offsets);
  check_offsets(bounds, bytes.size());
  const auto items = span_of(ids);
  const auto id_ends = span_of(ends);
  check_offsets(id_ends, items.size());
  check_length("ends", id_ends.size(), bounds.size());
  const auto counts = span_of(times);
  check_length("times", counts.size(), bounds.size() - 1);
  const auto by_id = span_of(positions);
  const auto sorted_ids = span_of(known);
  check_length("whole", static_cast<std::size_t>(whole.size()), sorted_ids.size());
  check_length("tokens", static_cast<std::size_t>(tokens.size()), sorted_ids.size());
  const auto all = with_tokens ? unsigned_span(tokens) : std::span<std::uint64_t>{};
  const auto single = unsigned_span(whole);
  const auto text = [&](std::size_t i) { return text_at(bytes, bounds, i); };
  const auto add = [&](auto&& token_of) {
    return add_word_tokens(text, items, id_ends, counts, token_of, unknown.value_or(SIZE_MAX), all,
                           single);
  };
  WordAmounts amounts;
  {
    const py::gil_scoped_release release;
    amounts =
        by_id.empty() ? add([&](std::uint32_t id) {
          const auto at = std::lower_bound(sorted_ids.begin(), sorted_ids.end(), std::int64_t{id});
          return at == sorted_ids.end() || *at != id
                     ? SIZE_MAX
                     : static_cast<std::size_t>(at - sorted_ids.begin());
        })
                      : add([&](std::uint32_t id) {
                          return id < by_id.size() ? static_cast<std::size_t>(by_id[id]) : SIZE_MAX;
                        });
  }
  return as_tuple(amounts);
}

/// The counts of words that have the text of a token.
class PyWholeWords {
 public:
  PyWholeWords(const Buffer& data, const InputArray<std::int64_t>& offsets)
      : tokens_(texts_of(data, offsets)) {}

  /// See `add_whole_words`; `whole` is changed.
  py::tuple add(const Buffer& data, const InputArray<std::int64_t>& offsets,
                const InputArray<std::int64_t>& times, InputArray<std::int64_t>& whole) const {
    const std::string_view bytes = bytes_of(data);
    const auto bounds = checked_offsets(offsets, bytes.size());
    check_length("times", times.size(), bounds.size() - 1);
    const auto counts = span_of(times);
    const auto single = unsigned_span(whole);
    WordAmounts amounts;
    {
      const py::gil_scoped_release release;
      amounts = add_whole_words([&](std::size_t i) { return text_at(bytes, bounds, i); }, counts,
                                [&](std::string_view text) {
                                  const std::uint32_t token = tokens_.find(text);
                                  return token == kNoId ? SIZE_MAX : std::size_t{token};
                                },
                                single);
    }
    return as_tuple(amounts);
  }

 private:
  static TokenIds texts_of(const Buffer& data, const InputArray<std::int64_t>& offsets) {
    const std::string_view bytes = bytes_of(data);
    const auto bounds = checked_offsets(offsets, bytes.size());
    TokenIds tokens;
    tokens.reserve(bounds.size() - 1);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const std::string_view text = text_at(bytes, bounds, i);
      if (!text.empty()) tokens.emplace_back(text, static_cast<std::uint32_t>(i));
    }
    return tokens;
  }

  TokenMap tokens_;
};

}  // namespace

void bind_counting(py::module_& m) {
  using namespace py::literals;
  m.def(
      "add_word_tokens", &add_word_tokens_to, "data"_a, "offsets"_a, "times"_a, "ids"_a, "ends"_a,
      "positions"_a, "known"_a, "unknown"_a, "with_tokens"_a, "tokens"_a.noconvert(),
      "whole"_a.noconvert(),
      "Adds times[i] to tokens[t] for each token of each word i = data[offsets[i]:offsets[i + 1]] "
      "with the ids ids[ends[i]:ends[i + 1]], and to whole[t] if that is its only token, not the "
      "unknown one. t is positions[id], or the position among the ascending `known` ids if there "
      "are no positions. Returns (words, continued words, bytes, characters, a bound of all "
      "sums); without `with_tokens` tokens are not added.");
  py::class_<PyWholeWords>(m, "WholeWords", "Words that have the text of a token.")
      .def(py::init<const Buffer&, const InputArray<std::int64_t>&>(), "data"_a, "offsets"_a,
           "Token t has the text data[offsets[t]:offsets[t + 1]]; no word has an empty text.")
      .def("add", &PyWholeWords::add, "data"_a, "offsets"_a, "times"_a, "whole"_a.noconvert(),
           "Adds times[i] to whole[t] for each word i = data[offsets[i]:offsets[i + 1]] with the "
           "text "
           "of token t, the first if there are more; other words have several tokens. Returns as "
           "`add_word_tokens`.");
  m.def("add_times_made", &add_times_made_to, "merges"_a, "made"_a.noconvert(),
        "Adds to the times that each token was made the times of the tokens it was merged to: for "
        "each row (left, right, joined), from the last to the first. False: a sum needs more than "
        "64 bits.");
  m.def("add_id_counts", &add_id_counts_to, "ids"_a, "offsets"_a, "rows"_a, "table"_a.noconvert(),
        "Adds 1 to table[rows[d], id] for each id of each document d, whose ids are "
        "ids[offsets[d]:offsets[d + 1]]; without rows all documents are of row 0.");
  m.def("texts_ascend", &texts_ascend, "data"_a, "offsets"_a,
        "Return whether no text is empty and each is greater than the previous, by its bytes.");
  m.def(
      "partition_of",
      [](const py::bytes& word, std::uint32_t partitions) {
        return partition_of(bytes_of(word), partitions);
      },
      "word"_a, "partitions"_a, "The word's partition, which never changes.");

  py::class_<PyWordTable>(m, "WordTable", "Words and their 64-bit counts.")
      .def(py::init<bool>(), "with_places"_a)
      .def(
          "add_texts", &PyWordTable::add_texts, "pipeline"_a, "added"_a, "data"_a, "offsets"_a,
          "documents"_a = py::none(), "max_bytes"_a = 0, "partitions"_a = 1,
          "on_full"_a = py::none(),
          "Adds the words of texts i = data[offsets[i]:offsets[i + 1]]; returns how many. `added`: "
          "ids of the special tokens that are extracted from the texts. Before "
          "the table would hold more than `max_bytes`, it is emptied: `on_full` gets its words as "
          "`split` gives them, and must not use the table.")
      .def("add_text_list", &PyWordTable::add_text_list, "pipeline"_a, "added"_a, "texts"_a,
           "first_document"_a = 0, "max_bytes"_a = 0, "partitions"_a = 1, "on_full"_a = py::none(),
           "As `add_texts`, for a list of str and bytes that no other thread changes; text i has "
           "the "
           "position first_document + i. Returns (words, bytes of UTF-8, texts): fewer texts than "
           "there are if the next one is no text, not UTF-8, or has a lone surrogate.")
      .def("add_words", &PyWordTable::add_words, "data"_a, "offsets"_a, "counts"_a,
           "documents"_a = py::none(), "words"_a = py::none(), "Adds words with their counts.")
      .def("add_table", &PyWordTable::add_table, "other"_a)
      .def("split", &PyWordTable::split, "partitions"_a,
           "For each partition, sorted by bytes: (offsets, data, counts, documents, words).")
      .def("unsorted", &PyWordTable::unsorted,
           "All words in no particular order, without positions, as one partition of `split`.")
      .def("clear", &PyWordTable::clear)
      .def("__len__", &PyWordTable::size)
      .def_prop_ro("with_places", &PyWordTable::with_places)
      .def_prop_ro("memory_bytes", &PyWordTable::memory_bytes);
}

}  // namespace bpe_beam

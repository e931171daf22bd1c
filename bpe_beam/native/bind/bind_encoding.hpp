// Binds the models, and the encoder over a pipeline and a model.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bind_pipeline.hpp"
#include "bind/bind_tokens.hpp"
#include "bind/binding.hpp"
#include "bind/py_text.hpp"
#include "encode/bpe_models.hpp"
#include "encode/bpe_ranks.hpp"
#include "encode/reread_number.hpp"
#include "encode/sentencepiece_bpe.hpp"
#include "encode/sentencepiece_unigram.hpp"
#include "encode/text_encoder.hpp"
#include "encode/token_bytes.hpp"
#include "encode/unigram_model.hpp"
#include "encode/wordpiece_model.hpp"
#include "text/utf8_check.hpp"
#include "text/utf8_writer.hpp"

namespace bpe_beam {

/// The most memory that the caches of a thread take: enough for the words of tens of megabytes of
/// text in many languages.
inline constexpr std::size_t kCacheBytes = std::size_t{64} << 20;

/// A document has a part without a token; a Python exception (document, begin, end).
struct MissingSymbolIn {
  std::size_t document;
  std::size_t begin;
  std::size_t end;
};

/// A model, which encoders share.
struct PyModel {
  std::shared_ptr<const WordModel> model;
};

inline std::span<const MergeRow> merge_rows(const InputArray<std::uint32_t>& merges) {
  if (merges.ndim() != 2 || merges.shape(1) != 3) {
    throw std::invalid_argument("merges must be uint32[n, 3]: left, right, joined");
  }
  return {reinterpret_cast<const MergeRow*>(merges.data()),
          static_cast<std::size_t>(merges.shape(0))};
}

/// Calls `make(span<const MergeRow>)` with merges that are a MergeIds or an array of rows.
template <class Make>
PyModel with_merge_rows(const py::object& merges, Make&& make) {
  if (py::isinstance<PyMergeIds>(merges)) return make(merges.cast<const PyMergeIds&>().rows);
  const auto array = merges.cast<InputArray<std::uint32_t>>();
  return make(merge_rows(array));
}

inline PyModel byte_bpe(const py::object& merges, const std::vector<std::uint32_t>& byte_ids,
                        const py::object& whole_words) {
  check_length("byte_ids", byte_ids.size(), 256);
  const TokenIds whole = byte_token_ids(whole_words);
  return with_merge_rows(merges, [&](std::span<const MergeRow> rows) -> PyModel {
    const py::gil_scoped_release release;
    return {std::make_shared<ByteBpeModel>(rows, std::span(byte_ids).first<256>(), whole)};
  });
}

inline PyModel char_bpe(const py::object& merges, const py::object& tokens,
                        std::string prefix, std::string suffix, std::optional<std::uint32_t> unk,
                        bool fuse_unk, bool ignore_merges,
                        std::vector<std::uint32_t> byte_fallback) {
  if (!byte_fallback.empty()) check_length("byte_fallback", byte_fallback.size(), 256);
  CharBpeSettings settings{std::move(prefix), std::move(suffix), unk, fuse_unk, ignore_merges,
                           std::move(byte_fallback)};
  const TokenIds known = token_ids(tokens);
  return with_merge_rows(merges, [&](std::span<const MergeRow> rows) -> PyModel {
    const py::gil_scoped_release release;
    return {std::make_shared<CharBpeModel>(rows, known, std::move(settings))};
  });
}

/// A finite number as `reread_number` reads its shortest text.
inline double reread(double number) {
  const std::unique_ptr<char, decltype(&PyMem_Free)> text(
      PyOS_double_to_string(number, 'r', 0, 0, nullptr), &PyMem_Free);
  if (!text) throw py::error_already_set();
  return reread_number(text.get());
}

inline PyModel unigram(const std::vector<std::pair<py::object, double>>& pieces,
                       std::optional<std::uint32_t> unk, std::vector<std::uint32_t> byte_ids) {
  if (!byte_ids.empty()) check_length("byte_ids", byte_ids.size(), 256);
  if (unk && *unk >= pieces.size()) throw std::invalid_argument("unk must be the id of a piece");
  for (const std::uint32_t id : byte_ids) {
    if (id != kNoId && id >= pieces.size()) throw std::invalid_argument("no piece has this id");
  }
  TokenIds tokens;
  std::vector<double> scores;
  for (const auto& [piece, score] : pieces) {
    tokens.emplace_back(utf8_of(piece.ptr()), static_cast<std::uint32_t>(scores.size()));
    scores.push_back(reread(score));
  }
  const py::gil_scoped_release release;
  return {std::make_shared<UnigramModel>(tokens, std::move(scores), unk.value_or(kNoId),
                                         std::move(byte_ids))};
}

inline PyModel sentencepiece_bpe(const InputArray<std::uint32_t>& merges,
                                 const InputArray<std::uint32_t>& ranks, const py::object& symbols,
                                 std::uint32_t unk, std::vector<std::uint32_t> byte_ids) {
  if (!byte_ids.empty()) check_length("byte_ids", byte_ids.size(), 256);
  return {std::make_shared<SentencePieceBpe>(TiedMerges(merge_rows(merges), span_of(ranks)),
                                             token_ids(symbols), unk, std::move(byte_ids))};
}

inline PyModel sentencepiece_unigram(
    const std::vector<std::tuple<py::object, std::uint32_t, float, bool>>& pieces,
    std::uint32_t unk, std::vector<std::uint32_t> byte_ids) {
  if (!byte_ids.empty()) check_length("byte_ids", byte_ids.size(), 256);
  std::vector<ScoredPiece> found;
  for (const auto& [text, id, score, user_defined] : pieces) {
    found.push_back({utf8_of(text.ptr()), id, score, user_defined});
  }
  const py::gil_scoped_release release;
  return {std::make_shared<SentencePieceUnigram>(std::move(found), unk, std::move(byte_ids))};
}

/// uint32[n, 3]: the numbers of the left, the right and the merged token.
inline py::array rank_merges(const std::vector<std::string>& tokens) {
  std::vector<MergeRow> merges;
  {
    py::gil_scoped_release release;
    merges = merges_of_ranks(tokens);
  }
  std::vector<std::uint32_t> rows;
  rows.reserve(merges.size() * 3);
  for (const MergeRow& row : merges) {
    rows.insert(rows.end(), {row.left, row.right, row.joined});
  }
  const auto count = static_cast<py::ssize_t>(merges.size());
  return as_array(std::move(rows)).reshape({count, py::ssize_t{3}});
}

/// The large buffers of ids that Python has freed: one megabyte and more, at most 128 in total. It
/// lives until the process ends, since Python may free arrays later than it destroys objects.
inline IdBufferPool& freed_ids() {
  static auto* const pool = new IdBufferPool(std::size_t{1} << 18, std::size_t{1} << 25);
  return *pool;
}

/// Hands ids to Python as an array that owns them.
inline py::array_t<std::uint32_t> as_array(IdBuffer&& ids) {
  ids.shrink();
  auto owner = std::make_unique<IdBuffer>(std::move(ids));
  const std::span<const std::uint32_t> values = owner->ids();
  const py::capsule capsule(owner.get(), [](void* held) {
    const std::unique_ptr<IdBuffer> freed(static_cast<IdBuffer*>(held));
    freed_ids().give_back(std::move(*freed));
  });
  (void)owner.release();
  return py::array_t<std::uint32_t>(static_cast<py::ssize_t>(values.size()), values.data(), capsule);
}

class PyEncoder {
 public:
  PyEncoder(const PyPipeline& pipeline, const PyModel& model, std::size_t cache_bytes)
      : encoder_(pipeline.pipeline, model.model), cache_bytes_(cache_bytes) {}

  py::array_t<std::uint32_t> encode(const py::buffer& text, std::vector<std::uint32_t> allowed) {
    return as_array(ids_of(text, std::move(allowed)));
  }

  // A short text needs no array, and a process that makes none does not import NumPy.
  py::list encode_to_list(const py::buffer& text, std::vector<std::uint32_t> allowed) {
    const IdBuffer buffer = ids_of(text, std::move(allowed));
    const std::span<const std::uint32_t> ids = buffer.ids();
    py::list list(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) list[i] = py::int_(ids[i]);
    return list;
  }

  py::tuple encode_with_offsets(const py::buffer& text, std::vector<std::uint32_t> allowed) {
    const py::buffer_info info = text.request();
    const std::string_view bytes = bytes_of(info);
    IdsWithOffsets found;
    {
      py::gil_scoped_release release;
      std::sort(allowed.begin(), allowed.end());
      const Borrowed state(*this);
      try {
        encoder_.encode_with_offsets(bytes, allowed, *state, found);
      } catch (const MissingSymbol& missing) {
        throw MissingSymbolIn{0, missing.begin, missing.end};
      }
    }
    return py::make_tuple(as_array(std::move(found.ids)), as_array(std::move(found.begins)),
                          as_array(std::move(found.ends)), as_array(std::move(found.added)));
  }

  py::tuple encode_batch(const py::buffer& data, const InputArray<std::int64_t>& offsets,
                         std::vector<std::uint32_t> allowed) {
    const py::buffer_info info = data.request();
    const std::string_view bytes = bytes_of(info);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    return ids_of_texts(
        bounds.size() - 1, bytes.size(), [&](std::size_t i) { return text_at(bytes, bounds, i); },
        std::move(allowed));
  }

  py::tuple encode_words(const py::buffer& data, const InputArray<std::int64_t>& offsets) {
    const py::buffer_info info = data.request();
    const std::string_view bytes = bytes_of(info);
    const auto bounds = checked_offsets(offsets, bytes.size());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (bounds[i] == bounds[i + 1]) throw std::invalid_argument("a word must not be empty");
    }
    const auto size = static_cast<std::size_t>(bounds.back() - bounds.front());
    IdBuffer ids = freed_ids().take(size);
    std::vector<std::int64_t> ends{0};
    {
      const py::gil_scoped_release release;
      ends.reserve(bounds.size());
      (void)ids.room(size / 4);
      const Borrowed state(*this);
      try {
        encoder_.encode_words(bytes, bounds, *state, ids, [&] {
          ends.push_back(static_cast<std::int64_t>(ids.size()));
        });
      } catch (const MissingSymbol&) {
        const std::size_t word = ends.size() - 1;
        encode_document(text_at(bytes, bounds, word), word, {}, *state, ids);  // says where
        throw;
      }
    }
    return py::make_tuple(as_array(std::move(ids)), as_array(std::move(ends)));
  }

  // The list is the caller's own: no other thread changes it. A text that is ASCII is read where it
  // is; the UTF-8 of another is made when it is encoded.
  py::tuple encode_texts(const py::list& list, std::vector<std::uint32_t> allowed) {
    std::vector<PyText> texts;
    texts.reserve(list.size());
    std::size_t bytes = 0;
    for (const py::handle text : list) {
      if (!PyUnicode_Check(text.ptr())) throw py::type_error("texts must be str");
      texts.emplace_back(text.ptr());
      bytes += texts.back().size_of_memory();
    }
    Utf8Writer writer;
    try {
      return ids_of_texts(
          texts.size(), bytes,
          [&](std::size_t i) {
            const auto text = texts[i].utf8(writer);
            if (!text) throw LoneSurrogateIn{i};
            return *text;
          },
          std::move(allowed));
    } catch (const LoneSurrogateIn& found) {
      const py::handle text = list[found.text];
      // Python's own error, which says where it is.
      (void)py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(text.ptr()));
      throw py::error_already_set();
    }
  }

  void clear_cache() {
    std::vector<std::unique_ptr<EncodingState>> freed;  // after the lock, since it takes a while
    const std::lock_guard lock(mutex_);
    freed.swap(states_);
  }

 private:
  struct LoneSurrogateIn {
    std::size_t text;
  };

  /// `text_at(i)` is the UTF-8 of one of `texts` until the next call; it is called without the GIL.
  /// They have about `bytes` bytes in total.
  template <class TextAt>
  py::tuple ids_of_texts(std::size_t texts, std::size_t bytes, TextAt&& text_at,
                         std::vector<std::uint32_t> allowed) {
    IdBuffer ids = freed_ids().take(bytes);
    std::vector<std::int64_t> id_offsets{0};
    {
      py::gil_scoped_release release;
      std::sort(allowed.begin(), allowed.end());
      (void)ids.room(bytes / 4);
      id_offsets.reserve(texts + 1);
      const Borrowed state(*this);
      for (std::size_t i = 0; i < texts; ++i) {
        encode_document(text_at(i), i, allowed, *state, ids);
        id_offsets.push_back(static_cast<std::int64_t>(ids.size()));
      }
    }
    return py::make_tuple(as_array(std::move(ids)), as_array(std::move(id_offsets)));
  }

  IdBuffer ids_of(const py::buffer& text, std::vector<std::uint32_t> allowed) {
    const py::buffer_info info = text.request();
    const std::string_view bytes = bytes_of(info);
    IdBuffer ids;
    py::gil_scoped_release release;
    std::sort(allowed.begin(), allowed.end());
    const Borrowed state(*this);
    encode_document(bytes, 0, allowed, *state, ids);
    return ids;
  }

  void encode_document(std::string_view text, std::size_t document,
                       std::span<const std::uint32_t> allowed, EncodingState& state,
                       IdBuffer& ids) const {
    try {
      encoder_.encode(text, allowed, state, ids);
    } catch (const MissingSymbol& missing) {
      throw MissingSymbolIn{document, missing.begin, missing.end};
    }
  }

  /// A state out of the pool, which goes back there whatever happens.
  class Borrowed {
   public:
    explicit Borrowed(PyEncoder& owner) : owner_(owner), state_(owner.take_state()) {}
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { owner_.give_back(std::move(state_)); }
    EncodingState& operator*() const { return *state_; }

   private:
    PyEncoder& owner_;
    std::unique_ptr<EncodingState> state_;
  };

  // States wait in a pool, so each thread finds a warm cache and there are no more than threads.
  std::unique_ptr<EncodingState> take_state() {
    const std::lock_guard lock(mutex_);
    if (states_.empty()) return std::make_unique<EncodingState>(cache_bytes_);
    auto state = std::move(states_.back());
    states_.pop_back();
    return state;
  }

  void give_back(std::unique_ptr<EncodingState> state) {
    const std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }

  TextEncoder encoder_;
  std::size_t cache_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodingState>> states_;
};

/// Return (bytes, int64 offsets of the texts in them), or None if an id has no token or another
/// thread changes the ids meanwhile. kBehind bytes follow the last text.
inline py::object decode_batch(const TokenBytes& tokens, const InputArray<std::uint32_t>& ids,
                               const InputArray<std::int64_t>& offsets) {
  const auto all = span_of(ids);
  const auto bounds = checked_offsets(offsets, all.size());
  const auto ids_at = [&](std::size_t text) {
    const auto begin = static_cast<std::size_t>(bounds[text]);
    return all.subspan(begin, static_cast<std::size_t>(bounds[text + 1]) - begin);
  };
  std::vector<std::int64_t> ends{0};
  {
    const py::gil_scoped_release release;
    ends.reserve(bounds.size());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const std::optional<std::size_t> size = tokens.size_of(ids_at(i));
      if (!size) break;
      ends.push_back(ends.back() + static_cast<std::int64_t>(*size));
    }
  }
  if (ends.size() < bounds.size()) return py::none();
  const auto size = ends.back() + static_cast<std::int64_t>(TokenBytes::kBehind);
  const auto data = py::reinterpret_steal<py::object>(PyBytes_FromStringAndSize(nullptr, size));
  if (!data) throw py::error_already_set();
  char* const begin = PyBytes_AS_STRING(data.ptr());
  bool joined = true;
  {
    const py::gil_scoped_release release;
    for (std::size_t i = 0; joined && i + 1 < bounds.size(); ++i) {
      char* const end = begin + ends[i + 1];
      joined = tokens.join(ids_at(i), begin + ends[i], end + TokenBytes::kBehind) == end;
    }
    std::fill_n(begin + ends.back(), TokenBytes::kBehind, '\0');
  }
  if (!joined) return py::none();
  return py::make_tuple(data, as_array(std::move(ends)));
}

/// The bytes of tokens in the byte-level alphabet; of other tokens their texts. `replaced`: the bytes
/// of those that have others.
/// The ids in lists of int, and the offsets of each list's first one; None if a row is no list, or has
/// anything but int from 0 to 2^32 - 1.
inline py::object ids_of_lists(const py::list& rows) {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> offsets{0};
  offsets.reserve(rows.size() + 1);
  for (const py::handle row : rows) {
    if (PyList_CheckExact(row.ptr()) == 0) return py::none();
    for (const py::handle item : py::reinterpret_borrow<py::list>(row)) {
      if (PyLong_CheckExact(item.ptr()) == 0) return py::none();
      int overflow = 0;
      const long long id = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
      if (overflow != 0 || id < 0 || id > std::numeric_limits<std::uint32_t>::max()) {
        return py::none();
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
    offsets.push_back(static_cast<std::int64_t>(ids.size()));
  }
  return py::make_tuple(as_array(std::move(ids)), as_array(std::move(offsets)));
}

inline TokenBytes token_bytes(const py::dict& tokens, const py::dict& replaced) {
  const ByteLevelAlphabet alphabet;
  TokenIds found;
  found.reserve(tokens.size() + replaced.size());
  for (const auto& [id, token] : tokens) {
    std::string bytes = utf8_of(token.ptr());
    static_cast<void>(alphabet.to_bytes(bytes));
    found.emplace_back(std::move(bytes), id_of(id.ptr()));
  }
  for (const auto& [id, bytes] : replaced) {
    found.emplace_back(bytes.cast<std::string>(), id_of(id.ptr()));
  }
  return TokenBytes(found);
}

inline bool texts_are_utf8_bytes(const py::buffer& data, const InputArray<std::int64_t>& offsets) {
  const py::buffer_info info = data.request();
  const std::string_view bytes = bytes_of(info);
  const auto bounds = checked_offsets(offsets, bytes.size());
  const py::gil_scoped_release release;
  return texts_are_utf8(bytes, bounds);
}

inline void bind_encoding(py::module_& m) {
  using namespace pybind11::literals;
  static py::handle missing_symbol_error =
      py::exception<MissingSymbolIn>(m, "MissingSymbolError", PyExc_ValueError).release();
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const MissingSymbolIn& missing) {
      const py::tuple arguments = py::make_tuple(missing.document, missing.begin, missing.end);
      PyErr_SetObject(missing_symbol_error.ptr(), arguments.ptr());
    }
  });

  py::class_<PyModel>(m, "Model", "Turns words into tokens.");
  m.def("byte_bpe", &byte_bpe, "merges"_a, "byte_ids"_a, "whole_words"_a,
        "BPE over bytes; `merges`: MergeIds, or uint32[n, 3] by rank; `whole_words`: (bytes, id) of each, or a "
        "dict of ids by token, of which those in the byte-level alphabet count.");
  m.def("char_bpe", &char_bpe, "merges"_a, "tokens"_a, "prefix"_a, "suffix"_a, "unk"_a,
        "fuse_unk"_a, "ignore_merges"_a, "byte_fallback"_a, "BPE over characters.");
  m.def("wordpiece", [](const py::object& tokens, const std::string& prefix,
                        std::optional<std::uint32_t> unk, std::size_t max_characters) {
          return PyModel{std::make_shared<WordPieceModel>(token_ids(tokens), prefix, unk.value_or(kNoId),
                                                          max_characters)};
        }, "tokens"_a, "prefix"_a, "unk"_a, "max_characters"_a, "Longest match first.");
  m.def("word_level", [](const py::object& tokens, std::optional<std::uint32_t> unk) {
          return PyModel{std::make_shared<WordLevelModel>(token_ids(tokens), unk.value_or(kNoId))};
        }, "tokens"_a, "unk"_a, "A word is a token, or unknown.");

  m.def("unigram", &unigram, "pieces"_a, "unk"_a, "byte_ids"_a,
        "The pieces of the highest sum of scores; `pieces`: (str, score) by id; `byte_ids`: 256 ids "
        "of the bytes of unknown characters, or none.");

  m.def("sentencepiece_bpe", &sentencepiece_bpe, "merges"_a, "ranks"_a, "symbols"_a, "unk"_a,
        "byte_ids"_a,
        "BPE of which several merges may have one rank; `merges`: uint32[n, 3] of left, right, "
        "joined; `ranks`: uint32[n]; `symbols`: ids of characters, and of texts that never merge, "
        "the longest first; `byte_ids`: 256 ids of the bytes of unknown characters, or none.");
  m.def("sentencepiece_unigram", &sentencepiece_unigram, "pieces"_a, "unk"_a, "byte_ids"_a,
        "Unigram in SentencePiece's floats; `pieces`: (str, id, score, whether it is user-defined); "
        "`byte_ids`: 256 ids of the bytes of unknown characters, or none.");

  m.def("rank_merges", &rank_merges, "tokens"_a,
        "The merges of tokens in the order of their ranks: rows of (left, right, joined).");

  m.def("texts_are_utf8", &texts_are_utf8_bytes, "data"_a, "offsets"_a,
        "Whether each of the texts data[offsets[i]:offsets[i + 1]] is well-formed UTF-8.");

  m.def("ids_of_lists", &ids_of_lists, "rows"_a,
        "The ids in lists of int, uint32[ids], and the offsets of each list's first one, "
        "int64[rows + 1]; None if there is anything else in them, or beyond 32 bits.");

  py::class_<TokenBytes>(m, "TokenBytes", "Ids to bytes: those of each token, joined.")
      .def(py::init(&token_bytes), "tokens"_a, "replaced"_a,
           "`tokens`: a str by id, in the byte-level alphabet or as they are; `replaced`: bytes by id.")
      .def("decode_batch", &decode_batch, "ids"_a, "offsets"_a,
           "The bytes of many texts and their int64 offsets, or None if an id has no token.");

  py::class_<PyEncoder>(m, "Encoder", "Texts to ids.")
      .def(py::init<const PyPipeline&, const PyModel&, std::size_t>(), "pipeline"_a, "model"_a,
           "cache_bytes"_a = kCacheBytes)
      .def("encode", &PyEncoder::encode, "text"_a,
           "allowed"_a = std::vector<std::uint32_t>{}, "The ids of one text: uint32[n].")
      .def("encode_to_list", &PyEncoder::encode_to_list, "text"_a,
           "allowed"_a = std::vector<std::uint32_t>{}, "The same as a list.")
      .def("encode_with_offsets", &PyEncoder::encode_with_offsets, "text"_a,
           "allowed"_a = std::vector<std::uint32_t>{},
           "The ids of one text, where each begins and ends in it, in bytes, and which of them are "
           "added tokens that were found in it.")
      .def("encode_batch", &PyEncoder::encode_batch, "data"_a, "offsets"_a,
           "allowed"_a = std::vector<std::uint32_t>{},
           "The ids of many texts: (uint32[ids], int64 offsets of the texts' first ids).")
      .def("encode_words", &PyEncoder::encode_words, "data"_a, "offsets"_a,
           "The same for different words, none of them empty, that the pipeline leaves whole.")
      .def("encode_texts", &PyEncoder::encode_texts, "texts"_a,
           "allowed"_a = std::vector<std::uint32_t>{}, "The same for a list of str.")
      .def("clear_cache", &PyEncoder::clear_cache, py::call_guard<py::gil_scoped_release>(),
           "Frees the memory of words encoded before, but for that which other threads use now.");
}

}  // namespace bpe_beam

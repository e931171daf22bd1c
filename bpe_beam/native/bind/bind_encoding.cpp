// Binds the encoder over a pipeline and a model.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/py_model.hpp"
#include "bind/py_pipeline.hpp"
#include "bind/py_text.hpp"
#include "bind/subjects.hpp"
#include "encode/id_buffer.hpp"
#include "encode/text_encoder.hpp"
#include "text/utf8_writer.hpp"

namespace bpe_beam {
namespace {

/// The maximum memory of the caches of a thread: enough for the words of tens of megabytes of text
/// in many languages.
constexpr std::size_t kCacheBytes = std::size_t{64} << 20;

/// Part of a document has no token; a Python exception (document, begin, end).
struct MissingSymbolIn {
  std::size_t document;
  std::size_t begin;
  std::size_t end;
};

/// The large buffers of ids that Python has freed: one megabyte and more, at most 128 MB in total.
/// The pool lives until the process ends, because Python may free arrays after it destroys objects.
IdBufferPool& freed_ids() {
  static auto* const pool = new IdBufferPool(std::size_t{1} << 18, std::size_t{1} << 25);
  return *pool;
}

/// Hands ids to Python as an array that owns them.
Array ids_as_array(IdBuffer&& ids) {
  ids.shrink();
  auto owner = std::make_unique<IdBuffer>(std::move(ids));
  const std::span<const std::uint32_t> values = owner->ids();
  const py::capsule capsule(owner.get(), [](void* held) noexcept {
    const std::unique_ptr<IdBuffer> freed(static_cast<IdBuffer*>(held));
    freed_ids().give_back(std::move(*freed));
  });
  (void)owner.release();
  return py::steal<Array>(new_array(type_number<std::uint32_t>(),
                                    {static_cast<Py_intptr_t>(values.size())},
                                    const_cast<std::uint32_t*>(values.data()), capsule));
}

class PyEncoder {
 public:
  PyEncoder(const PyPipeline& pipeline, const PyModel& model, std::size_t cache_bytes)
      : encoder_(pipeline.pipeline, model.model), cache_bytes_(cache_bytes) {}

  Array encode(const Buffer& text, std::vector<std::uint32_t> allowed) {
    return ids_as_array(ids_of(text, std::move(allowed)));
  }

  // A short text needs no array, and a process that makes none does not import NumPy.
  py::list encode_to_list(const Buffer& text, std::vector<std::uint32_t> allowed) {
    const IdBuffer buffer = ids_of(text, std::move(allowed));
    const std::span<const std::uint32_t> ids = buffer.ids();
    const auto list = py::steal<py::list>(PyList_New(static_cast<Py_ssize_t>(ids.size())));
    if (!list.is_valid()) throw py::python_error();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), py::int_(ids[i]).release().ptr());
    }
    return list;
  }

  py::tuple encode_with_offsets(const Buffer& text, std::vector<std::uint32_t> allowed) {
    const std::string_view bytes = bytes_of(text);
    IdsWithOffsets ids;
    {
      py::gil_scoped_release release;
      std::sort(allowed.begin(), allowed.end());
      const Borrowed state(*this);
      try {
        encoder_.encode_with_offsets(bytes, allowed, *state, ids);
      } catch (const MissingSymbol& missing) {
        throw MissingSymbolIn{0, missing.begin, missing.end};
      }
    }
    return py::make_tuple(as_array(std::move(ids.ids)), as_array(std::move(ids.begins)),
                          as_array(std::move(ids.ends)), as_array(std::move(ids.added)));
  }

  py::tuple encode_batch(const Buffer& data, const InputArray<std::int64_t>& offsets,
                         std::vector<std::uint32_t> allowed) {
    const std::string_view bytes = bytes_of(data);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    return ids_of_texts(
        bounds.size() - 1, bytes.size(), [&](std::size_t i) { return text_at(bytes, bounds, i); },
        std::move(allowed));
  }

  py::tuple encode_words(const Buffer& data, const InputArray<std::int64_t>& offsets) {
    const std::string_view bytes = bytes_of(data);
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
        encoder_.encode_words(bytes, bounds, *state, ids,
                              [&] { ends.push_back(static_cast<std::int64_t>(ids.size())); });
      } catch (const MissingSymbol&) {
        const std::size_t word = ends.size() - 1;
        encode_document(text_at(bytes, bounds, word), word, {}, *state, ids);  // says where
        throw;
      }
    }
    return py::make_tuple(ids_as_array(std::move(ids)), as_array(std::move(ends)));
  }

  // No other thread changes the list of the caller. An ASCII text is read without a copy; the UTF-8
  // of any other text is made when it is encoded.
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
    } catch (const LoneSurrogateIn& surrogate) {
      const py::handle text = list[surrogate.text];
      // Python's own error, which says where it is.
      (void)py::steal<py::object>(PyUnicode_AsUTF8String(text.ptr()));
      throw py::python_error();
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

  /// `text_at(i)` is the UTF-8 of text i of `texts` until the next call; it is called without the
  /// GIL. The texts have about `bytes` bytes in total.
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
    return py::make_tuple(ids_as_array(std::move(ids)), as_array(std::move(id_offsets)));
  }

  IdBuffer ids_of(const Buffer& text, std::vector<std::uint32_t> allowed) {
    const std::string_view bytes = bytes_of(text);
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

  /// A state from the pool. It returns to the pool even after an exception.
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

  // States wait in a pool, so each thread gets a warm cache, and there are at most as many states
  // as threads.
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

}  // namespace

void bind_encoding(py::module_& m) {
  using namespace py::literals;
  m.attr("MissingSymbolError") = py::steal(
      PyErr_NewException("bpe_beam._native.MissingSymbolError", PyExc_ValueError, nullptr));
  static const py::handle missing_symbol_error = py::object(m.attr("MissingSymbolError")).release();
  py::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const MissingSymbolIn& missing) {
      const py::tuple arguments = py::make_tuple(missing.document, missing.begin, missing.end);
      PyErr_SetObject(missing_symbol_error.ptr(), arguments.ptr());
    }
  });

  py::class_<PyEncoder>(m, "Encoder", "Texts to ids.")
      .def(py::init<const PyPipeline&, const PyModel&, std::size_t>(), "pipeline"_a, "model"_a,
           "cache_bytes"_a = kCacheBytes)
      .def("encode", &PyEncoder::encode, "text"_a, "allowed"_a = std::vector<std::uint32_t>{},
           "The ids of one text: uint32[n].")
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
           "The same for different words, none of them empty, that the pipeline does not split.")
      .def("encode_texts", &PyEncoder::encode_texts, "texts"_a,
           "allowed"_a = std::vector<std::uint32_t>{}, "The same for a list of str.")
      .def("clear_cache", &PyEncoder::clear_cache, py::call_guard<py::gil_scoped_release>(),
           "Frees the memory of words encoded before, except memory that other threads use now.");
}

}  // namespace bpe_beam

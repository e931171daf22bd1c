// Binds the models, which turn words into tokens.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/py_model.hpp"
#include "bind/py_tokens.hpp"
#include "bind/subjects.hpp"
#include "encode/bpe_models.hpp"
#include "encode/bpe_ranks.hpp"
#include "encode/reread_number.hpp"
#include "encode/sentencepiece_bpe.hpp"
#include "encode/sentencepiece_unigram.hpp"
#include "encode/unigram_model.hpp"
#include "encode/wordpiece_model.hpp"

namespace bpe_beam {
namespace {

std::span<const MergeRow> merge_rows(const InputArray<std::uint32_t>& merges) {
  if (merges.ndim() != 2 || merges.shape(1) != 3) {
    throw std::invalid_argument("merges must be uint32[n, 3]: left, right, joined");
  }
  return {reinterpret_cast<const MergeRow*>(merges.data()),
          static_cast<std::size_t>(merges.shape(0))};
}

/// Calls `make(span<const MergeRow>)` with merges that are a MergeIds or an array of rows.
template <class Make>
PyModel with_merge_rows(const py::object& merges, Make&& make) {
  if (py::isinstance<PyMergeIds>(merges)) return make(py::cast<const PyMergeIds&>(merges).rows);
  const auto array = py::cast<InputArray<std::uint32_t>>(merges);
  return make(merge_rows(array));
}

PyModel byte_bpe(const py::object& merges, const std::vector<std::uint32_t>& byte_ids,
                 const py::object& whole_words) {
  check_length("byte_ids", byte_ids.size(), 256);
  const TokenIds whole = byte_token_ids(whole_words);
  return with_merge_rows(merges, [&](std::span<const MergeRow> rows) -> PyModel {
    const py::gil_scoped_release release;
    return {std::make_shared<ByteBpeModel>(rows, std::span(byte_ids).first<256>(), whole)};
  });
}

PyModel char_bpe(const py::object& merges, const py::object& tokens, std::string prefix,
                 std::string suffix, std::optional<std::uint32_t> unk, bool fuse_unk,
                 bool ignore_merges, std::vector<std::uint32_t> byte_fallback) {
  if (!byte_fallback.empty()) check_length("byte_fallback", byte_fallback.size(), 256);
  CharBpeSettings settings{std::move(prefix), std::move(suffix), unk,
                           fuse_unk,          ignore_merges,     std::move(byte_fallback)};
  const TokenIds known = token_ids(tokens);
  return with_merge_rows(merges, [&](std::span<const MergeRow> rows) -> PyModel {
    const py::gil_scoped_release release;
    return {std::make_shared<CharBpeModel>(rows, known, std::move(settings))};
  });
}

/// A finite number, as `reread_number` reads its shortest text.
double reread(double number) {
  const std::unique_ptr<char, decltype(&PyMem_Free)> text(
      PyOS_double_to_string(number, 'r', 0, 0, nullptr), &PyMem_Free);
  if (!text) throw py::python_error();
  return reread_number(text.get());
}

PyModel unigram(const std::vector<std::pair<py::object, double>>& pieces,
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

PyModel sentencepiece_bpe(const InputArray<std::uint32_t>& merges,
                          const InputArray<std::uint32_t>& ranks, const py::object& symbols,
                          std::uint32_t unk, std::vector<std::uint32_t> byte_ids) {
  if (!byte_ids.empty()) check_length("byte_ids", byte_ids.size(), 256);
  return {std::make_shared<SentencePieceBpe>(TiedMerges(merge_rows(merges), span_of(ranks)),
                                             token_ids(symbols), unk, std::move(byte_ids))};
}

PyModel sentencepiece_unigram(
    const std::vector<std::tuple<py::object, std::uint32_t, float, bool>>& pieces,
    std::uint32_t unk, std::vector<std::uint32_t> byte_ids) {
  if (!byte_ids.empty()) check_length("byte_ids", byte_ids.size(), 256);
  std::vector<ScoredPiece> scored;
  for (const auto& [text, id, score, user_defined] : pieces) {
    scored.push_back({utf8_of(text.ptr()), id, score, user_defined});
  }
  const py::gil_scoped_release release;
  return {std::make_shared<SentencePieceUnigram>(std::move(scored), unk, std::move(byte_ids))};
}

/// uint32[n, 3]: the numbers of the left, the right and the merged token.
Array rank_merges(const std::vector<std::string>& tokens) {
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
  return as_array(std::move(rows), 3);
}

}  // namespace

void bind_models(py::module_& m) {
  using namespace py::literals;
  py::class_<PyModel>(m, "Model", "Turns words into tokens.");
  m.def("byte_bpe", &byte_bpe, "merges"_a, "byte_ids"_a, "whole_words"_a,
        "BPE over bytes; `merges`: MergeIds, or uint32[n, 3] by rank; `whole_words`: (bytes, id) "
        "of each, or a "
        "dict of ids by token, of which those in the byte-level alphabet count.");
  m.def("char_bpe", &char_bpe, "merges"_a, "tokens"_a, "prefix"_a, "suffix"_a, "unk"_a,
        "fuse_unk"_a, "ignore_merges"_a, "byte_fallback"_a, "BPE over characters.");
  m.def(
      "wordpiece",
      [](const py::object& tokens, const std::string& prefix, std::optional<std::uint32_t> unk,
         std::size_t max_characters) {
        return PyModel{std::make_shared<WordPieceModel>(token_ids(tokens), prefix,
                                                        unk.value_or(kNoId), max_characters)};
      },
      "tokens"_a, "prefix"_a, "unk"_a, "max_characters"_a, "Longest match first.");
  m.def(
      "word_level",
      [](const py::object& tokens, std::optional<std::uint32_t> unk) {
        return PyModel{std::make_shared<WordLevelModel>(token_ids(tokens), unk.value_or(kNoId))};
      },
      "tokens"_a, "unk"_a, "A word is a token, or unknown.");

  m.def(
      "unigram", &unigram, "pieces"_a, "unk"_a, "byte_ids"_a,
      "The pieces of the highest sum of scores; `pieces`: (str, score) by id; `byte_ids`: 256 ids "
      "of the bytes of unknown characters, or none.");

  m.def("sentencepiece_bpe", &sentencepiece_bpe, "merges"_a, "ranks"_a, "symbols"_a, "unk"_a,
        "byte_ids"_a,
        "BPE of which several merges may have one rank; `merges`: uint32[n, 3] of left, right, "
        "joined; `ranks`: uint32[n]; `symbols`: ids of characters, and of texts that never merge, "
        "the longest first; `byte_ids`: 256 ids of the bytes of unknown characters, or none.");
  m.def(
      "sentencepiece_unigram", &sentencepiece_unigram, "pieces"_a, "unk"_a, "byte_ids"_a,
      "Unigram in SentencePiece's floats; `pieces`: (str, id, score, whether it is user-defined); "
      "`byte_ids`: 256 ids of the bytes of unknown characters, or none.");

  m.def("rank_merges", &rank_merges, "tokens"_a,
        "The merges of tokens in the order of their ranks: rows of (left, right, joined).");
}

}  // namespace bpe_beam

// Normalizers and matchers from their descriptions as tuples of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "bind/binding.hpp"
#include "normalize/matcher.hpp"
#include "normalize/normalizers.hpp"

namespace bpe_beam {

/// ("literal", bytes), ("punctuation",), ("word_end",), ("space_run",) or ("regex", callable).
std::unique_ptr<Matcher> make_matcher(py::handle described);

/// A normalizer from a tuple of its "type" in tokenizer.json and its settings: ("NFC",), ("NFD",),
/// ("NFKC",), ("NFKD",), ("Lowercase",), ("StripAccents",), ("Strip", left, right),
/// ("Nmt",), ("Precompiled", bytes),
/// ("SentencePiece", bytes, dummy_prefix, remove_extra, escape, suffix, symbols),
/// ("Prepend", text), ("BertNormalizer", clean, chinese, strip_accents, lowercase),
/// ("ByteLevel",), ("Replace", matcher, text), ("Sequence", [step, ...]). Needs the GIL.
/// Throws std::invalid_argument beyond kDeepestSteps sequences within sequences.
std::unique_ptr<Normalizer> make_normalizer(py::handle described);

}  // namespace bpe_beam

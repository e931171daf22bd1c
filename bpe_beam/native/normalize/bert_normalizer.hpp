// BERT's cleaning of texts, in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "normalize/normalization.hpp"
#include "normalize/normalizers.hpp"
#include "normalize/unicode_normalization.hpp"
#include "text/ascii.hpp"
#include "text/text.hpp"
#include "text/unicode_classes.hpp"

namespace bpe_beam {

/// The steps of BERT's normalizer, in their order. Accents are stripped from the text in NFD.
struct BertSteps {
  bool clean_text;            // drop controls and U+FFFD, make every space U+0020
  bool handle_chinese_chars;  // a space before and after each ideograph
  bool strip_accents;         // NFD without nonspacing marks
  bool lowercase;
};

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertSteps& steps) : steps_(steps) {}

  void apply(const TextView& in, TextBuffer& out) const override {
    NormalizationRun run(NormalizationForm::kNfd, out.with_origins());
    for_each_character(
        in.bytes, [&](std::size_t begin, std::size_t end) { put_ascii(in, begin, end, run, out); },
        [&](std::uint32_t point, std::size_t at, std::size_t size) {
          if (point == kMalformed) {
            finish(run, out);
            out.copy(in, at, at + size);
          } else {
            const std::string_view bytes = in.bytes.substr(at, size);
            put_character(point, bytes, origin_at(in, at, out), run, out);
          }
        });
    finish(run, out);
  }

 private:
  static constexpr char kSpace = ' ';

  static bool is_ideograph(std::uint32_t point) {
    const auto in = [point](std::uint32_t first, std::uint32_t last) {
      return point - first <= last - first;
    };
    // The blocks that Hugging Face lists.
    return in(0x4E00, 0x9FFF) || in(0x3400, 0x4DBF) || in(0x20000, 0x2A6DF) ||
           in(0x2A700, 0x2B73F) || in(0x2B740, 0x2B81F) || in(0x2B920, 0x2CEAF) ||
           in(0xF900, 0xFAFF) || in(0x2F800, 0x2FA1F);
  }

  void put_ascii(const TextView& in, std::size_t begin, std::size_t end, NormalizationRun& run,
                 TextBuffer& out) const {
    const std::string_view text = in.bytes.substr(0, end);
    while (begin < end) {
      if (const std::size_t printed = steps_.clean_text ? printable_run_end(text, begin) : end;
          printed > begin) {
        finish(run, out);
        if (steps_.lowercase) {
          put_lower_ascii(in, begin, printed, out);
        } else {
          out.copy(in, begin, printed);
        }
        begin = printed;
        continue;
      }
      // A control character. It is dropped before marks are reordered, so there is no finish.
      if (const char c = text[begin]; c == '\t' || c == '\n' || c == '\r') {
        finish(run, out);
        out.put_bytewise({&kSpace, 1}, in, begin);
      }
      ++begin;
    }
  }

  void put_character(std::uint32_t point, std::string_view bytes, const Origin& origin,
                     NormalizationRun& run, TextBuffer& out) const {
    const NormalizationRecord& record = normalization_record(point);
    if (steps_.handle_chinese_chars && is_ideograph(point)) {
      finish(run, out);
      return put_ideograph(record, bytes, origin, out);
    }
    if (steps_.clean_text) {
      constexpr std::uint32_t kReplacement = 0xFFFD;
      if (point == kReplacement || (record.flags & kAssignedControl) != 0) return;
      if (char_class(point) == CharClass::kSpace) {
        finish(run, out);
        out.put(kSpace, origin);
        return;
      }
    }
    if (!steps_.strip_accents) {
      emit(point, origin, out);
    } else if ((record.flags & kInertInNfd) != 0) {
      finish(run, out);
      emit(point, origin, out);
    } else {
      run.add(point, record, origin);
    }
  }

  /// An ideograph is not a control, a space or a mark, and has no case; it may be a variant that
  /// NFD replaces by another character.
  void put_ideograph(const NormalizationRecord& record, std::string_view bytes,
                     const Origin& origin, TextBuffer& out) const {
    std::string spaced(1, kSpace);
    if (steps_.strip_accents && record.canonical_size != 0) {
      append_utf8(kDecompositions[record.canonical], spaced);
    } else {
      spaced += bytes;
    }
    spaced += kSpace;
    out.put(spaced, origin);
  }

  void emit(std::uint32_t point, const Origin& origin, TextBuffer& out) const {
    if (steps_.strip_accents && (char_bits(point) & kNonspacingMark) != 0) return;
    if (steps_.lowercase) {
      put_lower(point, origin, out);
    } else {
      out.put(point, origin);
    }
  }

  void finish(NormalizationRun& run, TextBuffer& out) const {
    run.finish([&](std::uint32_t point, const Origin& origin) { emit(point, origin, out); });
  }

  BertSteps steps_;
};

}  // namespace bpe_beam

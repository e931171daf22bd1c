// The Unicode normalization forms (UAX 15), with the origin of every character.
//
// Most text is normalized already: characters that are inert in a form are copied in runs, and only
// the characters between them are decomposed, reordered and composed. Origins follow Hugging Face's
// alignments: a replacing character has the origin of the next character of the input, an inserted
// character the origin of the character before; reordered marks count in their new order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "normalize/unicode_normalization.hpp"
#include "text/ascii.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Each form's value is the flag of the code points that are inert in it.
enum class NormalizationForm : std::uint8_t {
  kNfc = kInertInNfc,
  kNfd = kInertInNfd,
  kNfkc = kInertInNfkc,
  kNfkd = kInertInNfkd,
};

namespace hangul {
inline constexpr std::uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161,
                               kTails = 0x11A7;
inline constexpr std::uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
inline constexpr std::uint32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;
}  // namespace hangul

/// The primary composite of two code points, or 0 if there is none.
inline std::uint32_t compose(std::uint32_t first, std::uint32_t second) {
  using namespace hangul;
  // Unsigned differences: a number below a range becomes a large number.
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  }
  const std::uint32_t syllable = first - kSyllables;
  if (syllable < kSyllableCount && syllable % kTailCount == 0 &&
      second - kTails - 1 < kTailCount - 1) {
    return first + (second - kTails);
  }
  if ((normalization_record(second).flags & kComposesAsSecond) == 0) return 0;
  const auto composition =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
                       [](const Composition& row, const auto& key) {
                         return std::pair(row.first, row.second) < key;
                       });
  const bool exact = composition != std::end(kCompositions) && composition->first == first &&
                     composition->second == second;
  return exact ? composition->composed : 0;
}

/// The characters between two inert characters: takes them one by one, and returns them normalized.
class NormalizationRun {
 public:
  NormalizationRun(NormalizationForm form, bool with_origins)
      : composing_(form == NormalizationForm::kNfc || form == NormalizationForm::kNfkc),
        compatible_(form == NormalizationForm::kNfkc || form == NormalizationForm::kNfkd),
        with_origins_(with_origins) {}

  /// `record` belongs to `point`.
  void add(std::uint32_t point, const NormalizationRecord& record, const Origin& origin) {
    if (with_origins_) origins_.push_back(origin);
    if ((record.flags & kHangulSyllable) != 0) return add_syllable(point);
    const std::size_t size = compatible_ ? record.compatible_size : record.canonical_size;
    if (size == 0) return push(point, record.combining_class, 0);
    const std::size_t begin = compatible_ ? record.compatible : record.canonical;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t part = kDecompositions[begin + i];
      push(part, normalization_record(part).combining_class, i == 0 ? 0 : 1);
    }
  }

  /// Calls emit(code point, origin) for each code point of the result, and removes all characters.
  template <typename Emit>
  void finish(Emit emit) {
    if (characters_.empty()) return;
    sort_marks();
    if (composing_) compose_characters();
    std::size_t next = 0;  // the next character of the input
    for (const Character& character : characters_) {
      const std::size_t from = character.change > 0 ? next - 1 : next;
      emit(character.point, with_origins_ ? origins_[from] : Origin{});
      if (character.change <= 0) next += static_cast<std::size_t>(1 - character.change);
    }
    characters_.clear();
    origins_.clear();
    marks_begin_ = 0;
  }

 private:
  struct Character {
    std::uint32_t point;
    std::uint32_t combining_class;
    // 1: inserted; 0: replaces a character; -n: replaces one, and n that follow it are gone.
    std::int64_t change;
  };

  void push(std::uint32_t point, std::uint32_t combining_class, std::int64_t change) {
    if (combining_class == 0) {
      sort_marks();
      marks_begin_ = characters_.size() + 1;
    }
    characters_.push_back({point, combining_class, change});
  }

  void add_syllable(std::uint32_t point) {
    using namespace hangul;
    const std::uint32_t syllable = point - kSyllables;
    push(kLeads + syllable / (kVowelCount * kTailCount), 0, 0);
    push(kVowels + syllable / kTailCount % kVowelCount, 0, 1);
    if (syllable % kTailCount != 0) push(kTails + syllable % kTailCount, 0, 1);
  }

  /// Sorts the marks since the last starter by class; stable, so equal classes keep their order.
  void sort_marks() {
    if (characters_.size() < marks_begin_ + 2) return;
    const auto by_class = [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    };
    const auto begin = characters_.begin() + static_cast<std::ptrdiff_t>(marks_begin_);
    if (!std::is_sorted(begin, characters_.end(), by_class)) {
      std::stable_sort(begin, characters_.end(), by_class);
    }
  }

  void compose_characters() {
    std::size_t kept = 0, starter = 0;
    bool has_starter = false;
    std::uint32_t last_class = 0;  // of the marks kept since the starter; 0: none
    bool after_mark = false;
    for (const Character& character : characters_) {
      const bool blocked = after_mark && last_class >= character.combining_class;
      if (has_starter && !blocked) {
        if (const std::uint32_t joined = compose(characters_[starter].point, character.point)) {
          characters_[starter].point = joined;
          characters_[starter].change += character.change - 1;
          continue;
        }
      }
      after_mark = character.combining_class != 0;
      last_class = character.combining_class;
      if (!after_mark) {
        starter = kept;
        has_starter = true;
      }
      characters_[kept++] = character;
    }
    characters_.resize(kept);
  }

  bool composing_;
  bool compatible_;
  bool with_origins_;
  std::vector<Character> characters_;
  std::vector<Origin> origins_;  // of the characters added
  std::size_t marks_begin_ = 0;
};

/// Writes `in` in the form. Bytes that are not UTF-8 stay as they are.
inline void normalize(NormalizationForm form, const TextView& in, TextBuffer& out) {
  const auto inert = static_cast<std::uint8_t>(form);
  const char* const begin = in.bytes.data();
  const char* const end = begin + in.bytes.size();
  const std::size_t size = in.bytes.size();
  NormalizationRun run(form, out.with_origins());
  const auto put = [&](std::uint32_t point, const Origin& origin) { out.put(point, origin); };
  std::size_t copied = 0;  // the end of the written text
  std::size_t join = 0;    // the begin of the character that the next one could join
  for (std::size_t at = 0; at < size;) {
    if (const std::size_t ascii_end = ascii_run_end(in.bytes, at); ascii_end > at) {
      join = ascii_end - 1;
      at = ascii_end;
      continue;
    }
    CodePoint point = decode_utf8(begin + at, end);
    if (point.value == kMalformed) {
      join = at += 1;
      continue;
    }
    if ((normalization_record(point.value).flags & inert) != 0) {
      join = at;
      at += point.size;
      continue;
    }
    out.copy(in, copied, join);
    const std::size_t lively = at;
    for (at = join; at < size; at += point.size) {
      point = decode_utf8(begin + at, end);
      if (point.value == kMalformed) break;
      const NormalizationRecord& record = normalization_record(point.value);
      if (at > lively && (record.flags & inert) != 0) break;
      run.add(point.value, record, out.with_origins() ? in.origins[at] : Origin{});
    }
    run.finish(put);
    copied = join = at;
  }
  out.copy(in, copied, size);
}

}  // namespace bpe_beam

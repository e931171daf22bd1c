// The positions at which words begin in 64 bytes of text, by the rules of the named patterns: all
// at once, from the masks of the bytes' classes.
//
// A block begins where a word begins, so nothing before it matters. Whether a word begins at a byte
// follows from the classes of the byte, of the bytes before it in the block, and of a few bytes
// after it. Characters for which a rule would be difficult (wide spaces, which have several bytes;
// in some patterns marks, and bytes that are not UTF-8) end the decided part of the block; the
// scanner that reads character by character continues there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "scan/char_runs.hpp"
#include "scan/class_masks.hpp"

namespace bpe_beam {

/// Bit i of `starts`: a word begins at byte i. Right for the bytes from 1 to `decided` - 1.
struct WordStarts {
  std::uint64_t starts;
  std::size_t decided;
};

/// The maximum of `decided`: characters that begin before this byte, and the next one, are entirely
/// in the block.
inline constexpr std::size_t kMostDecided = kLastWhole;

/// Ends the decided part before the first byte of `hard`.
inline WordStarts decided_before(std::uint64_t hard, std::uint64_t starts) {
  // countr_zero is 64 if there is none.
  return {starts, std::min(kMostDecided, static_cast<std::size_t>(std::countr_zero(hard)))};
}

/// The bits from `first` to `last` - 1; `last` at most 63.
constexpr std::uint64_t bits_between(std::size_t first, std::size_t last) {
  return ((std::uint64_t{1} << last) - 1) & ~((std::uint64_t{1} << first) - 1);
}

/// Calls `use` with the position of each bit below kMostDecided, in ascending order.
template <class Use>
void for_each_decided_bit(std::uint64_t bits, Use&& use) {
  for (bits &= bits_between(0, kMostDecided); bits != 0; bits &= bits - 1) {
    use(static_cast<std::size_t>(std::countr_zero(bits)));
  }
}

/// Marks a word of `size` bytes at `at`, in which no other word begins.
inline void put_word(std::uint64_t& starts, std::size_t at, std::size_t size) {
  starts &= ~bits_between(at, at + size);
  starts |= (std::uint64_t{1} << at) | (std::uint64_t{1} << (at + size));
}

/// The patterns of gpt2_scanner.hpp. `contraction(at)` is the length of one at a byte, or 0.
template <bool kSingleNumbers, class Contraction>
WordStarts gpt2_starts(const char* at, const ClassMasks& masks, Contraction&& contraction) {
  const std::uint64_t spaces = masks.spaces;
  const std::uint64_t others = ~(masks.letters | masks.numbers | spaces);
  const auto continues = [](std::uint64_t run) { return run & (run << 1); };
  // A word of characters other than spaces begins where their class begins, unless U+0020 before it
  // belongs to the word. In a run of spaces, the first begins a word, and so does the last before
  // another character.
  std::uint64_t goes_on = continues(masks.letters) | continues(others);
  std::uint64_t starts = 0;
  if constexpr (kSingleNumbers) {
    const std::uint64_t numbers = masks.numbers;
    starts = (~(spaces | numbers) & ~goes_on & ~(masks.blanks << 1)) |
             (numbers & ~masks.continuations) |
             (spaces & ~((spaces << 1) & ((spaces | numbers) >> 1)));
  } else {
    goes_on |= continues(masks.numbers);
    starts =
        (~spaces & ~goes_on & ~(masks.blanks << 1)) | (spaces & ~((spaces << 1) & (spaces >> 1)));
  }
  for_each_decided_bit(masks.apostrophes & (starts | 1), [&](std::size_t i) {
    if (const std::size_t size = contraction(at + i)) put_word(starts, i, size);
  });
  return decided_before(masks.wide_spaces | masks.cut, starts);
}

/// The positions at which groups of numbers begin, in a block before the first byte of `hard`. If
/// groups begin at the right, a run whose end is unknown is added to `hard`.
template <NumberRule kRule>
std::uint64_t group_starts(std::uint64_t numbers, std::uint64_t& hard) {
  constexpr std::size_t kMost = kRule.most;
  std::uint64_t starts = numbers & ~(numbers << 1);
  if constexpr (kMost == 1) {
    starts = numbers;
  } else if constexpr (kRule.from_right) {
    std::uint64_t groups = numbers;  // as many numbers from here on as a group has at most
    for (std::size_t i = 1; i < kMost; ++i) groups &= numbers >> i;
    const std::uint64_t ends = numbers & ~(numbers >> 1);
    for (std::uint64_t next = (ends >> (kMost - 1)) & groups; next != 0;) {
      starts |= next;
      next = (next >> kMost) & groups;
    }
    const auto known = static_cast<std::size_t>(std::countr_zero(hard));  // kBlock if all are
    if (known == 0) return starts;
    const auto open = static_cast<std::size_t>(std::countl_one(numbers << (kBlock - known)));
    if (open > 0) hard |= std::uint64_t{1} << (known - open);
  } else {
    std::uint64_t after_most = numbers;  // as many numbers before it as a word has at most
    for (std::size_t i = 1; i <= kMost; ++i) after_most &= numbers << i;
    for (std::uint64_t next = starts; next != 0;) {
      next = (next << kMost) & after_most;
      starts |= next;
    }
  }
  return starts;
}

/// The common rules of the patterns of cl100k's and o200k's families and DeepSeek V3: numbers,
/// signs, spaces and lines.
struct LineMasks {
  std::uint64_t starts;  // of words, except words of letters
  std::uint64_t gaps;    // spaces that are not newlines
  std::uint64_t sign_starts;
  std::uint64_t opens_letters;  // a letter after one of these continues its word
  std::uint64_t absorbed;       // newlines that belong to the signs before them
  std::uint64_t hard;
};

/// `others`: signs, and all other characters that are not letters, numbers or spaces. `stops`:
/// characters before which the text is split as if it ended there.
template <NumberRule kNumbers>
[[gnu::always_inline]] inline LineMasks line_masks(const ClassMasks& masks, std::uint64_t others,
                                                   std::uint64_t stops = 0) {
  const std::uint64_t numbers = masks.numbers;
  const std::uint64_t spaces = masks.spaces;
  const std::uint64_t newlines = masks.newlines;
  LineMasks lines{};
  lines.hard = masks.wide_spaces | masks.wide_numbers | masks.malformed | masks.cut;

  const std::uint64_t number_starts = group_starts<kNumbers>(numbers, lines.hard);

  // Signs: U+0020 before them and newlines after them belong to their word. The sum carries through
  // the runs of newlines that begin after a sign, and clears them.
  const std::uint64_t sign_starts = others & ~((others | masks.blanks) << 1);
  lines.absorbed = newlines & ~(newlines + (newlines & (others << 1)));

  // Spaces that are not newlines ("gaps"). If a run of gaps ends in a newline, the word continues
  // to the last newline of the whole run of spaces; before another character, the last gap begins a
  // word.
  const std::uint64_t gaps = spaces & ~newlines;
  std::uint64_t gap_starts = gaps & (~(spaces << 1) | (lines.absorbed << 1));
  gap_starts |= gaps & (gaps << 1) & ~((spaces | stops) >> 1);
  std::uint64_t undecided = 0;
  for_each_decided_bit(gaps & ((newlines & ~lines.absorbed) << 1), [&](std::size_t i) {
    const auto end = i + static_cast<std::size_t>(std::countr_one(gaps >> i));
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (end > kLastWhole) {
      undecided |= bit;
    } else if ((newlines >> end & 1) == 0) {
      gap_starts |= bit;
    }
  });
  const std::uint64_t newline_starts = newlines & ~((spaces | others) << 1);
  lines.starts = number_starts | sign_starts | gap_starts | newline_starts;
  lines.hard |= undecided;
  lines.gaps = gaps;
  lines.sign_starts = sign_starts;

  // A single character before letters begins their word: a gap, or a sign that begins a word. For a
  // sign beyond ASCII, this property moves to its last byte.
  std::uint64_t single = sign_starts;
  if (const std::uint64_t later = masks.continuations & others; later != 0) [[unlikely]] {
    for (int i = 0; i < 3; ++i) single |= (single << 1) & later;
  }
  lines.opens_letters = gaps | single;
  return lines;
}

/// The patterns of cl100k_scanner.hpp.
template <NumberRule kNumbers>
WordStarts cl100k_starts(const char* at, const ClassMasks& masks) {
  const std::uint64_t others = ~(masks.letters | masks.numbers | masks.spaces);
  const LineMasks lines = line_masks<kNumbers>(masks, others);
  const std::uint64_t letters = masks.letters;
  std::uint64_t starts = lines.starts | (letters & ~((letters | lines.opens_letters) << 1));
  for_each_decided_bit(masks.apostrophes & (starts | 1), [&](std::size_t i) {
    const std::size_t size = any_case_contraction(at + i, at + kBlock);
    if (size > 0) put_word(starts, i, size);
  });
  return decided_before(lines.hard, starts);
}

/// The patterns of o200k_scanner.hpp; `masks.han` is 0 if Han characters are ordinary letters.
template <NumberRule kNumbers, bool kContractions, bool kSlash>
WordStarts o200k_starts(const char* at, const ClassMasks& masks) {
  const std::uint64_t han = masks.han;
  // A mark after a letter is in U and L. The sum carries through the marks after letters, and
  // clears them.
  const std::uint64_t marks = masks.marks & ~han;
  const std::uint64_t after_letters = marks & ~(marks + (marks & ((masks.letters & ~han) << 1)));
  const std::uint64_t letters = (masks.letters & ~han) | after_letters;
  const std::uint64_t both = (masks.both & ~han) | after_letters;
  const std::uint64_t others = ~(letters | masks.letters | masks.numbers | masks.spaces);
  const LineMasks lines = line_masks<kNumbers>(masks, others);
  const std::uint64_t lowers = letters & ~masks.uppers & ~both;
  std::uint64_t starts = lines.starts | (letters & ~((letters | lines.opens_letters) << 1));
  starts |= han & ~(han << 1);
  starts |= masks.uppers & (lowers << 1) & ~masks.continuations;
  // An upper-case letter after a letter of both cases depends on the following text; a slash after
  // newlines that belong to signs belongs to them too. A few Han characters are not letters.
  std::uint64_t hard = lines.hard | (masks.marks & ~after_letters) |
                       (masks.uppers & (both << 1) & ~masks.continuations) | (han & ~masks.letters);
  if constexpr (kSlash) hard |= masks.slashes & (lines.absorbed << 1);
  // A contraction belongs to the letters before it, but only one.
  std::size_t last = 0;
  for_each_decided_bit(kContractions ? masks.apostrophes & (letters << 1) : 0, [&](std::size_t i) {
    if (i == last) return;
    const std::size_t size = any_case_contraction(at + i, at + kBlock);
    if (size == 0) return;
    put_word(starts, i, size);
    starts &= ~(std::uint64_t{1} << i);
    last = i + size;
  });
  return decided_before(hard, starts);
}

/// The pattern of deepseek_scanner.hpp. `controls`: ASCII characters without one of its classes.
inline WordStarts deepseek_starts(const ClassMasks& masks, std::uint64_t controls) {
  const std::uint64_t cjk = masks.cjk;
  const std::uint64_t letters = (masks.letters | masks.marks) & ~cjk;
  const std::uint64_t signs = ~(letters | masks.numbers | masks.spaces | cjk);
  const LineMasks lines = line_masks<NumberRule{3}>(masks, signs, masks.numbers | cjk);
  const std::uint64_t ascii_letters = letters & ~masks.beyond;
  // A word of one ASCII sign and ASCII letters ends before any other letter. The sum carries
  // through the runs of letters after such a sign.
  const std::uint64_t opened = ascii_letters & ((lines.sign_starts & ~masks.beyond) << 1);
  const std::uint64_t after_opened = (ascii_letters + opened) & ~ascii_letters;
  const std::uint64_t starts =
      lines.starts | (cjk & ~(cjk << 1)) | (letters & ~((letters | lines.gaps) << 1) & ~opened);
  return decided_before(
      lines.hard | controls | masks.unknown | (opened != 0 ? after_opened & letters : 0), starts);
}

/// The pattern of gemma_scanner.hpp.
inline WordStarts gemma_starts(const ClassMasks& masks) {
  const std::uint64_t blanks = masks.blanks;
  const std::uint64_t newlines = masks.newlines;
  const std::uint64_t starts = (newlines & ~(newlines << 1)) | (blanks & ~(blanks << 1)) |
                               (~(blanks | newlines) & (newlines << 1));
  return decided_before(0, starts);
}

}  // namespace bpe_beam

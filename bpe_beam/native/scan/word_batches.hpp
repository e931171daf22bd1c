// A text's words in batches, by a scanner: 64 bytes at a time where the scanner can, else word by
// word.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "scan/class_masks.hpp"
#include "scan/scanners.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

/// The maximum number of words in a batch: enough to hide the latency of memory, few enough that
/// their data stays in the fastest cache.
inline constexpr std::size_t kBatchWords = 128;

/// Collects words, and passes on each full batch.
template <class Use>
class WordBatches {
 public:
  explicit WordBatches(Use& use) : use_(use) {}

  /// Adds a word that is not empty.
  void add(const Word& word) {
    words_[size_] = word;
    if (++size_ == kBatchWords) flush();
  }

  /// Adds the words of a block: each begins where the previous one ended. The first begins at
  /// `begin`, the others at `starts`. Returns the begin of the last word, which is not added.
  std::size_t add_block(std::size_t begin, std::uint64_t starts) {
    if (size_ > kBatchWords - kBlock) flush();
    const std::size_t block = begin;
    Word* word = words_.data() + size_;
    for (; starts != 0; starts &= starts - 1) {
      const std::size_t end = block + static_cast<std::size_t>(std::countr_zero(starts));
      *word++ = {begin, end};
      begin = end;
    }
    size_ = static_cast<std::size_t>(word - words_.data());
    return begin;
  }

  void flush() {
    if (size_ > 0) use_(std::span<const Word>(words_.data(), size_));
    size_ = 0;
  }

 private:
  Use& use_;
  std::size_t size_ = 0;
  std::array<Word, kBatchWords> words_;
};

/// Passes the words of a text in order to `batches.add(word)` and `batches.add_block(begin,
/// starts)` of a WordBatches, or of an object like it.
template <class Scanner, class Batches>
void scan_into(Scanner, std::string_view text, const BlockClasses& classes, Batches& batches) {
  std::size_t at = 0;
  // Adds words up to the first that ends at `limit` or after.
  const auto add_until = [&](std::size_t limit) {
    while (at < limit) {
      const Word word = Scanner::next(text, at);
      if (word.begin != word.end) batches.add(word);
      at = word.end;
    }
  };
  if constexpr (requires { Scanner::starts(text.data(), classes); }) {
    while (text.size() - at >= kBlock) {
      const WordStarts block = Scanner::starts(text.data() + at, classes);
      const std::size_t begin = at;
      at = batches.add_block(begin,
                             block.starts & bits_between(0, block.decided) & ~std::uint64_t{1});
      // The undecided rest, or a word that is longer than the decided part.
      if (block.decided < kMostDecided || at == begin) [[unlikely]] {
        add_until(begin + (block.decided < kMostDecided ? kMostDecided : 1));
      }
    }
  }
  add_until(text.size());
}

/// Calls `use(span<const Word>)` with the words of a text in order, at most kBatchWords at a time.
template <class Scanner, class Use>
void scan_batches(Scanner scanner, std::string_view text, const BlockClasses& classes, Use&& use) {
  WordBatches batches(use);
  scan_into(scanner, text, classes, batches);
  batches.flush();
}

/// A reference to a callable `use(span<const Word>)` of any type, so that the scanners are compiled
/// once for all users.
class WordsUse {
 public:
  template <class Use>
  explicit WordsUse(Use& use)
      : use_(&use), call_([](void* object, std::span<const Word> words) {
          (*static_cast<Use*>(object))(words);
        }) {}

  void operator()(std::span<const Word> words) const { call_(use_, words); }

 private:
  void* use_;
  void (*call_)(void* use, std::span<const Word> words);
};

/// As `scan_batches`, with a scanner of kScannerNames. Returns false if there is no such scanner.
bool scan_by_name(std::string_view scanner, std::string_view text, const BlockClasses& classes,
                  WordsUse use);

}  // namespace bpe_beam

// Words as packed symbols: the ids of a word's symbols as LEB128 varints, one after another.
//
// A part of a word is a part of its bytes, so words are split without packing them again. Seven
// bits a byte, the low ones first; an id has 32 bits and so at most five bytes. More bytes than an
// id needs are read as well, but never written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bpe_beam {

inline constexpr std::size_t kMaxPackedBytes = 5;  // of one symbol

/// Counted words: word i is data[offsets[i]:offsets[i + 1]]. The caller checks the offsets.
struct PackedWords {
  std::string_view data;
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> counts;

  [[nodiscard]] std::size_t size() const { return offsets.size() - 1; }
  /// The bytes of all words, which may be a small part of the data.
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(offsets.back() - offsets.front());
  }
  [[nodiscard]] const char* begin(std::size_t word) const { return data.data() + offsets[word]; }
  [[nodiscard]] const char* end(std::size_t word) const { return begin(word + 1); }
};

/// The same as owned columns, as kernels return them.
struct PackedColumns {
  std::string data;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> counts;

  /// Ends the word whose bytes have been appended.
  void end_word(std::int64_t count) {
    offsets.push_back(static_cast<std::int64_t>(data.size()));
    counts.push_back(count);
  }
};

/// Reads the symbol at `at` < `end` and moves past it. Returns false if it is incomplete or over 32
/// bits.
inline bool read_symbol(const char*& at, const char* end, std::uint32_t& symbol) {
  std::uint32_t byte = static_cast<unsigned char>(*at++);
  symbol = byte & 0x7F;
  for (unsigned shift = 7; byte >= 0x80; shift += 7) {
    if (at == end) return false;
    byte = static_cast<unsigned char>(*at++);
    if (shift == 28 && byte > 0x0F) return false;
    symbol |= (byte & 0x7F) << shift;
  }
  return true;
}

/// Like read_symbol, but throws std::invalid_argument, which names the word.
inline std::uint32_t symbol_of(const char*& at, const char* end, std::size_t word) {
  std::uint32_t symbol = 0;
  if (!read_symbol(at, end, symbol)) [[unlikely]] {
    throw std::invalid_argument("word " + std::to_string(word) +
                                " is not a packed word: a symbol is incomplete or over 32 bits");
  }
  return symbol;
}

/// Writes a symbol; returns where its bytes end. There must be room for kMaxPackedBytes.
inline char* write_symbol(std::uint32_t symbol, char* at) {
  while (symbol >= 0x80) {
    *at++ = static_cast<char>(symbol | 0x80);
    symbol >>= 7;
  }
  *at++ = static_cast<char>(symbol);
  return at;
}

/// Packs symbols and appends them to `data`; `scratch` avoids an allocation for each word.
inline void append_packed(std::span<const std::uint32_t> symbols, std::vector<char>& scratch,
                          std::string& data) {
  if (scratch.size() < symbols.size() * kMaxPackedBytes) {
    scratch.resize(symbols.size() * kMaxPackedBytes);
  }
  char* at = scratch.data();
  for (const std::uint32_t symbol : symbols) at = write_symbol(symbol, at);
  data.append(scratch.data(), static_cast<std::size_t>(at - scratch.data()));
}

/// Appends a packed word's symbols.
inline void unpack_word(const PackedWords& words, std::size_t word,
                        std::vector<std::uint32_t>& symbols) {
  const char* at = words.begin(word);
  const char* const end = words.end(word);
  while (at != end) symbols.push_back(symbol_of(at, end, word));
}

/// Throws std::invalid_argument if a word's count is below 1.
inline void check_count(std::int64_t count, std::size_t word) {
  if (count < 1) [[unlikely]] {
    throw std::invalid_argument("the count of word " + std::to_string(word) +
                                " must be at least 1, got " + std::to_string(count));
  }
}

}  // namespace bpe_beam

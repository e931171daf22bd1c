// Checks that text is well-formed UTF-8.
//
// With vectors, 32 bytes are checked at a time: three table look-ups by nibble detect every flaw
// of two neighbouring bytes (Keiser and Lemire, "Validating UTF-8 in less than one instruction per
// byte", 2021). If a block has a flaw, and on other processors, decode_utf8 decides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "text/utf8.hpp"
#include "text/vectors.hpp"

namespace bpe_beam {

inline std::uint64_t load_word(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#ifdef BPE_BEAM_VECTORS
/// Finds flaws in blocks of 16 bytes, which must be contiguous.
class Utf8Blocks {
 public:
  /// Checks the next block. A character that the block does not complete is checked with the next.
  BPE_BEAM_SSSE3 void add(Bytes16 block) {
    const Bytes16 first = shifted<1>(block);
    const Bytes16 flaws = bytes_at(load(kFirstHigh), first >> 4) &
                          bytes_at(load(kFirstLow), first & 0x0F) &
                          bytes_at(load(kSecondHigh), block >> 4);
    // The high bit is set if the byte must be the third or the fourth of a character.
    const Bytes16 third = saturated_difference(shifted<2>(block), Bytes16{} + (0xE0 - 0x80));
    const Bytes16 fourth = saturated_difference(shifted<3>(block), Bytes16{} + (0xF0 - 0x80));
    flaws_ |= ((third | fourth) & 0x80) ^ flaws;
    previous_ = block;
  }

  /// Checks a block of ASCII.
  void add_ascii(Bytes16 block) {
    flaws_ |= saturated_difference(previous_, load(kLastComplete));
    previous_ = block;
  }

  /// Returns whether a block had a flaw.
  [[nodiscard]] bool flawed() const { return any(flaws_); }

 private:
  using Table = std::uint8_t[16];

  // A bit for each way in which a byte may not follow another one.
  static constexpr std::uint8_t kTooShort = 1, kTooLong = 2, kOverlong3 = 4, kTooLarge = 8,
                                kSurrogate = 16, kOverlong2 = 32, kOverlong4 = 64,
                                kTooLarge1000 = 64, kTwoContinuations = 128;
  static constexpr std::uint8_t kAnyLow = kTooShort | kTooLong | kTwoContinuations;
  static constexpr std::uint8_t kLarge = kAnyLow | kTooLarge | kTooLarge1000;
  static constexpr std::uint8_t kContinuation = kTooLong | kOverlong2 | kTwoContinuations;

  alignas(16) static constexpr Table kFirstHigh = {
      kTooLong,
      kTooLong,
      kTooLong,
      kTooLong,
      kTooLong,
      kTooLong,
      kTooLong,
      kTooLong,
      kTwoContinuations,
      kTwoContinuations,
      kTwoContinuations,
      kTwoContinuations,
      kTooShort | kOverlong2,
      kTooShort,
      kTooShort | kOverlong3 | kSurrogate,
      kTooShort | kTooLarge | kTooLarge1000 | kOverlong4};
  alignas(16) static constexpr Table kFirstLow = {kAnyLow | kOverlong3 | kOverlong2 | kOverlong4,
                                                  kAnyLow | kOverlong2,
                                                  kAnyLow,
                                                  kAnyLow,
                                                  kAnyLow | kTooLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge,
                                                  kLarge | kSurrogate,
                                                  kLarge,
                                                  kLarge};
  alignas(16) static constexpr Table kSecondHigh = {
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort,
      kContinuation | kOverlong3 | kTooLarge1000 | kOverlong4,
      kContinuation | kOverlong3 | kTooLarge,
      kContinuation | kSurrogate | kTooLarge,
      kContinuation | kSurrogate | kTooLarge,
      kTooShort,
      kTooShort,
      kTooShort,
      kTooShort};
  // The largest last bytes of a block that ends with a complete character.
  alignas(16) static constexpr Table kLastComplete = {255, 255, 255, 255, 255, 255,  255,  255,
                                                      255, 255, 255, 255, 255, 0xEF, 0xDF, 0xBF};

  static Bytes16 load(const Table& table) { return load_vector<Bytes16>(table); }

  /// For each byte of a block, the byte `kBack` before it.
  template <int kBack>
  [[nodiscard, gnu::always_inline]] BPE_BEAM_SSSE3 Bytes16 shifted(Bytes16 block) const {
#if defined(__x86_64__)
    return reinterpret_cast<Bytes16>(_mm_alignr_epi8(
        reinterpret_cast<__m128i>(block), reinterpret_cast<__m128i>(previous_), 16 - kBack));
#else
    return reinterpret_cast<Bytes16>(vextq_u8(reinterpret_cast<uint8x16_t>(previous_),
                                              reinterpret_cast<uint8x16_t>(block), 16 - kBack));
#endif
  }

  Bytes16 previous_{};
  Bytes16 flaws_{};
};

/// The size of a prefix of whole characters that is well-formed UTF-8; not always the longest one.
BPE_BEAM_SSSE3 inline std::size_t utf8_blocks_prefix(std::span<const char> text) {
  constexpr std::size_t kBytes = 32;
  Utf8Blocks blocks;
  std::size_t at = 0;
  for (; text.size() - at >= kBytes; at += kBytes) {
    const auto first = load_vector<Bytes16>(text.data() + at);
    const auto second = load_vector<Bytes16>(text.data() + at + 16);
    if (has_high_bits(first | second)) {
      blocks.add(first);
      blocks.add(second);
    } else {
      blocks.add_ascii(first);
      blocks.add_ascii(second);
    }
    if (blocks.flawed()) break;
  }
  // The last character may continue after the last block; the caller checks it.
  const auto continues = [&](std::size_t i) { return (text[i] & 0xC0) == 0x80; };
  const std::size_t end = at;
  if (at > 0) --at;
  while (at > 0 && end - at < 4 && continues(at)) --at;
  return at;
}

inline std::size_t fast_utf8_prefix(std::span<const char> text) {
  return moves_bytes() && text.size() >= 64 ? utf8_blocks_prefix(text) : 0;
}
#else
inline std::size_t fast_utf8_prefix(std::span<const char>) { return 0; }
#endif

/// The length of the longest prefix of `text` that is well-formed UTF-8: no surrogates, nothing
/// overlong, nothing above U+10FFFF. Equal to `text.size()` if all of it is.
inline std::size_t valid_utf8_prefix(std::span<const char> text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  const char* at = text.data() + fast_utf8_prefix(text);
  const char* const end = text.data() + text.size();
  while (at < end) {
    while (end - at >= 32 &&
           ((load_word(at) | load_word(at + 8) | load_word(at + 16) | load_word(at + 24)) &
            kHighBits) == 0)
      at += 32;
    while (at < end && static_cast<unsigned char>(*at) < 0x80) ++at;
    // Most characters beyond ASCII have three bytes; E0 and ED restrict the second.
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(at[i]); };
    while (end - at >= 3 && byte(0) > 0xE0 && byte(0) < 0xF0 && byte(0) != 0xED &&
           ((byte(1) ^ 0x80) | (byte(2) ^ 0x80)) < 0x40)
      at += 3;
    if (at < end && byte(0) >= 0x80) {
      const CodePoint point = decode_utf8(at, end);
      if (point.value == kMalformed) return static_cast<std::size_t>(at - text.data());
      at += point.size;
    }
  }
  return text.size();
}

/// Returns whether each text data[offsets[i], offsets[i + 1]) is well-formed UTF-8. The offsets
/// ascend within the data.
inline bool texts_are_utf8(std::span<const char> data, std::span<const std::int64_t> offsets) {
  const auto first = static_cast<std::size_t>(offsets.front());
  const auto last = static_cast<std::size_t>(offsets.back());
  if (valid_utf8_prefix(data.subspan(first, last - first)) != last - first) return false;
  return std::all_of(offsets.begin(), offsets.end(), [&](std::int64_t offset) {
    const auto at = static_cast<std::size_t>(offset);
    return at == last || (data[at] & 0xC0) != 0x80;  // no character crosses it
  });
}

/// Checks records for UTF-8 in blocks that reach beyond them, so that a short record costs no call.
class Utf8Check {
 public:
  /// Records are in data[from, ..), in order. They begin and end at characters if the text around
  /// them is well-formed, because separators are UTF-8 themselves.
  Utf8Check(std::span<const char> data, std::size_t from, std::size_t block = 64 << 10)
      : data_(data), good_(from), block_(block) {}

  /// As `valid_utf8_prefix` of data[begin, end).
  std::size_t prefix(std::size_t begin, std::size_t end) {
    while (good_ < end && !flawed_) {
      const std::size_t block = std::min(block_, data_.size() - good_);
      const std::size_t valid = valid_utf8_prefix(data_.subspan(good_, block));
      good_ += valid;
      // A character may cross the block's end.
      flawed_ = valid < block && (valid + 4 <= block || good_ + block - valid == data_.size());
    }
    return end <= good_ ? end - begin : valid_utf8_prefix(data_.subspan(begin, end - begin));
  }

 private:
  std::span<const char> data_;
  std::size_t good_;  // well-formed up to here
  std::size_t block_;
  bool flawed_ = false;
};

}  // namespace bpe_beam

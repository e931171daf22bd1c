// HighwayHash with 64 bits, the keyed hash of Riegeli files, over bytes that come in parts.
//
// As in "Fast keyed hash/pseudo-random function using SIMD multiply and permute" (arXiv
// 1612.06257): four lanes of 64 bits take 32 bytes at a time. Processors with AVX2 compute the four
// at once, others one by one.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bpe_beam {

static_assert(std::endian::native == std::endian::little, "lanes are read as they are in memory");

class HighwayHash {
 public:
  using Lanes = std::array<std::uint64_t, 4>;

  /// Whether this machine's processor has what computes four lanes at once.
  static bool has_vectors() {
#if defined(__x86_64__)
    static const bool has_avx2 = [] {
      __builtin_cpu_init();
      return __builtin_cpu_supports("avx2") != 0;
    }();
    return has_avx2;
#else
    return false;
#endif
  }

  explicit HighwayHash(const Lanes& key, bool with_vectors = has_vectors())
      : mul0_(kMul0), mul1_(kMul1), with_vectors_(with_vectors) {
    for (std::size_t i = 0; i < 4; ++i) {
      v0_[i] = kMul0[i] ^ key[i];
      v1_[i] = kMul1[i] ^ std::rotl(key[i], 32);
    }
  }

  /// Appends bytes.
  void add(std::span<const std::uint8_t> bytes) {
    if (held_ > 0) {
      const std::size_t taken = std::min(kPacket - held_, bytes.size());
      std::copy_n(bytes.begin(), taken, packet_.begin() + static_cast<std::ptrdiff_t>(held_));
      held_ += taken;
      bytes = bytes.subspan(taken);
      if (held_ < kPacket) return;
      take(packet_.data(), 1);
      held_ = 0;
    }
    const std::size_t packets = bytes.size() / kPacket;
    take(bytes.data(), packets);
    bytes = bytes.subspan(packets * kPacket);
    std::copy(bytes.begin(), bytes.end(), packet_.begin());
    held_ = bytes.size();
  }

  /// The hash of all bytes so far.
  [[nodiscard]] std::uint64_t digest() const {
    HighwayHash last = *this;
    if (held_ > 0) last.take_remainder();
    for (int round = 0; round < 4; ++round) {
      const Lanes& v = last.v0_;
      const Lanes turned{std::rotl(v[2], 32), std::rotl(v[3], 32), std::rotl(v[0], 32),
                         std::rotl(v[1], 32)};
      last.take(reinterpret_cast<const std::uint8_t*>(turned.data()), 1);
    }
    return last.v0_[0] + last.v1_[0] + last.mul0_[0] + last.mul1_[0];
  }

 private:
  static constexpr std::size_t kPacket = 32;
  static constexpr Lanes kMul0{0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344,
                               0x243F6A8885A308D3};
  static constexpr Lanes kMul1{0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C,
                               0x452821E638D01377};

  /// Byte `from` of two lanes (0 to 15), as byte `to` (0 to 7) of a lane.
  template <unsigned from, unsigned to>
  static constexpr std::uint64_t moved(std::uint64_t low, std::uint64_t high) {
    constexpr std::uint64_t mask = std::uint64_t{0xFF} << (8 * to);
    constexpr unsigned at = from % 8;
    const std::uint64_t lane = from < 8 ? low : high;
    if constexpr (at >= to) {
      return (lane >> (8 * (at - to))) & mask;
    } else {
      return (lane << (8 * (to - at))) & mask;
    }
  }

  /// Adds the bytes of two lanes, in an order that mixes them, to two others.
  static void add_mixed(const Lanes& from, std::size_t pair, Lanes& to) {
    const std::uint64_t a = from[pair];
    const std::uint64_t b = from[pair + 1];
    to[pair] += moved<3, 0>(a, b) | moved<12, 1>(a, b) | moved<2, 2>(a, b) | moved<5, 3>(a, b) |
                moved<14, 4>(a, b) | moved<1, 5>(a, b) | moved<15, 6>(a, b) | moved<0, 7>(a, b);
    to[pair + 1] += moved<11, 0>(a, b) | moved<4, 1>(a, b) | moved<10, 2>(a, b) |
                    moved<13, 3>(a, b) | moved<9, 4>(a, b) | moved<6, 5>(a, b) |
                    moved<8, 6>(a, b) | moved<7, 7>(a, b);
  }

  /// Takes packets of 32 bytes.
  void take(const std::uint8_t* bytes, std::size_t packets) {
#if defined(__x86_64__)
    if (with_vectors_) {
      take_by_vectors(bytes, packets);
      return;
    }
#endif
    for (; packets > 0; --packets, bytes += kPacket) {
      Lanes lanes;
      std::memcpy(lanes.data(), bytes, kPacket);
      take_lanes(lanes);
    }
  }

#if defined(__x86_64__)
#define BPE_BEAM_HASH_AVX2 __attribute__((target("avx2")))

  BPE_BEAM_HASH_AVX2 static __m256i loaded(const void* at) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(at));
  }

  BPE_BEAM_HASH_AVX2 static void store(__m256i value, Lanes& lanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes.data()), value);
  }

  /// The same as `take_lanes` of each packet.
  BPE_BEAM_HASH_AVX2 void take_by_vectors(const std::uint8_t* bytes, std::size_t packets) {
    const __m256i mixed =
        _mm256_setr_epi8(3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7,  //
                         3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7);
    __m256i v0 = loaded(v0_.data());
    __m256i v1 = loaded(v1_.data());
    __m256i mul0 = loaded(mul0_.data());
    __m256i mul1 = loaded(mul1_.data());
    for (; packets > 0; --packets, bytes += kPacket) {
      v1 = _mm256_add_epi64(v1, _mm256_add_epi64(mul0, loaded(bytes)));
      mul0 = _mm256_xor_si256(mul0, _mm256_mul_epu32(v1, _mm256_srli_epi64(v0, 32)));
      v0 = _mm256_add_epi64(v0, mul1);
      mul1 = _mm256_xor_si256(mul1, _mm256_mul_epu32(v0, _mm256_srli_epi64(v1, 32)));
      v0 = _mm256_add_epi64(v0, _mm256_shuffle_epi8(v1, mixed));
      v1 = _mm256_add_epi64(v1, _mm256_shuffle_epi8(v0, mixed));
    }
    store(v0, v0_);
    store(v1, v1_);
    store(mul0, mul0_);
    store(mul1, mul1_);
  }
#endif

  void take_lanes(const Lanes& lanes) {
    constexpr std::uint64_t kLow = 0xFFFFFFFF;
    for (std::size_t i = 0; i < 4; ++i) {
      v1_[i] += mul0_[i] + lanes[i];
      mul0_[i] ^= (v1_[i] & kLow) * (v0_[i] >> 32);
      v0_[i] += mul1_[i];
      mul1_[i] ^= (v0_[i] & kLow) * (v1_[i] >> 32);
    }
    for (const std::size_t pair : {0, 2}) add_mixed(v1_, pair, v0_);
    for (const std::size_t pair : {0, 2}) add_mixed(v0_, pair, v1_);
  }

  /// Takes the 1 to 31 bytes behind the last whole packet; their number is mixed in, too.
  void take_remainder() {
    const std::uint64_t count = held_;
    for (std::size_t i = 0; i < 4; ++i) {
      v0_[i] += (count << 32) + count;
      const auto rotated = [&](std::uint64_t half) {
        return std::rotl(static_cast<std::uint32_t>(half), static_cast<int>(count));
      };
      v1_[i] = rotated(v1_[i]) | std::uint64_t{rotated(v1_[i] >> 32)} << 32;
    }
    std::array<std::uint8_t, kPacket> packet{};
    const std::size_t words = held_ & ~std::size_t{3};
    const std::size_t odd = held_ - words;
    std::copy_n(packet_.begin(), words, packet.begin());
    if (held_ >= 16) {
      std::copy_n(packet_.begin() + static_cast<std::ptrdiff_t>(held_ - 4), 4, packet.end() - 4);
    } else if (odd > 0) {
      packet[16] = packet_[words];
      packet[17] = packet_[words + odd / 2];
      packet[18] = packet_[held_ - 1];
    }
    take(packet.data(), 1);
  }

  Lanes v0_{};
  Lanes v1_{};
  Lanes mul0_;
  Lanes mul1_;
  bool with_vectors_;
  std::array<std::uint8_t, kPacket> packet_{};
  std::size_t held_ = 0;  // bytes of `packet_`
};

}  // namespace bpe_beam

// Sixteen bytes at once, on x86-64 and on 64-bit Arm: what the compilers' own vectors lack.
//
// The vectors have the operators of integers, lane by lane; a comparison sets all bits of a lane or
// none. Functions that move bytes need SSSE3 on x86-64, which not every processor has, and kernels
// with a form of their own for each processor need AVX2, or AVX-512; every 64-bit Arm processor has
// NEON. Other processors have no vectors.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#define BPE_BEAM_VECTORS 1
#define BPE_BEAM_SSSE3 __attribute__((target("ssse3")))
#define BPE_BEAM_AVX2 __attribute__((target("avx2")))
#define BPE_BEAM_AVX512 __attribute__((target("avx512bw")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define BPE_BEAM_VECTORS 1
#define BPE_BEAM_SSSE3
#define BPE_BEAM_AVX2
#endif

#ifdef BPE_BEAM_VECTORS

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bpe_beam {

using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
using Words4 = std::uint32_t __attribute__((vector_size(16)));

template <class Vector>
[[gnu::always_inline]] inline Vector load_vector(const void* at) {
  Vector vector;
  std::memcpy(&vector, at, sizeof vector);
  return vector;
}

template <class Vector>
[[gnu::always_inline]] inline void store_vector(const Vector& vector, void* at) {
  std::memcpy(at, &vector, sizeof vector);
}

/// A bit for each lane of a comparison. On 64-bit Arm, four bits for each byte.
[[gnu::always_inline]] inline std::uint64_t byte_bits(Bytes16 holds) {
#if defined(__x86_64__)
  return static_cast<std::uint32_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(holds)));
#else
  const uint16x8_t pairs = vreinterpretq_u16_u8(reinterpret_cast<uint8x16_t>(holds));
  return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(pairs, 4)), 0);
#endif
}

/// The first byte of a comparison that holds; `bits` are its `byte_bits`, not 0.
[[gnu::always_inline]] inline int first_byte(std::uint64_t bits) {
#if defined(__x86_64__)
  return std::countr_zero(bits);
#else
  return std::countr_zero(bits) / 4;
#endif
}

/// A bit for each of four lanes of a comparison.
[[gnu::always_inline]] inline unsigned lane_bits(Words4 holds) {
#if defined(__x86_64__)
  return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(holds)));
#else
  constexpr Words4 kBits = {1, 2, 4, 8};
  return vaddvq_u32(reinterpret_cast<uint32x4_t>(holds & kBits));
#endif
}

/// Comparisons of numbers below 2^31.
[[gnu::always_inline]] inline Words4 greater(Words4 numbers, std::int32_t than) {
  using Signed = std::int32_t __attribute__((vector_size(16)));
  return reinterpret_cast<Words4>(reinterpret_cast<Signed>(numbers) > than);
}

/// Differences, 0 in place of negative ones.
[[gnu::always_inline]] inline Bytes16 saturated_difference(Bytes16 bytes, Bytes16 less) {
#if defined(__x86_64__)
  return reinterpret_cast<Bytes16>(
      _mm_subs_epu8(reinterpret_cast<__m128i>(bytes), reinterpret_cast<__m128i>(less)));
#else
  return reinterpret_cast<Bytes16>(
      vqsubq_u8(reinterpret_cast<uint8x16_t>(bytes), reinterpret_cast<uint8x16_t>(less)));
#endif
}

/// Whether a byte is 0x80 or more.
[[gnu::always_inline]] inline bool has_high_bits(Bytes16 bytes) {
#if defined(__x86_64__)
  return byte_bits(bytes) != 0;
#else
  return vmaxvq_u8(reinterpret_cast<uint8x16_t>(bytes)) >= 0x80;
#endif
}

/// Whether a bit of the vector is set.
[[gnu::always_inline]] inline bool any(Bytes16 bytes) {
#if defined(__x86_64__)
  return byte_bits(reinterpret_cast<Bytes16>(bytes == 0)) != 0xFFFF;
#else
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(bytes)) != 0;
#endif
}

/// The bytes at these places; 0 for places from 0x80 on.
[[gnu::always_inline]] BPE_BEAM_SSSE3 inline Bytes16 bytes_at(Bytes16 bytes, Bytes16 places) {
#if defined(__x86_64__)
  return reinterpret_cast<Bytes16>(
      _mm_shuffle_epi8(reinterpret_cast<__m128i>(bytes), reinterpret_cast<__m128i>(places)));
#else
  return reinterpret_cast<Bytes16>(
      vqtbl1q_u8(reinterpret_cast<uint8x16_t>(bytes), reinterpret_cast<uint8x16_t>(places)));
#endif
}

/// Whether this machine's processor has what functions with BPE_BEAM_SSSE3 need.
inline bool moves_bytes() {
#if defined(__x86_64__)
  static const bool has_ssse3 = __builtin_cpu_supports("ssse3") != 0;
  return has_ssse3;
#else
  return true;
#endif
}

/// Whether this machine's processor has what functions with BPE_BEAM_AVX2 need.
inline bool has_wide_vectors() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return has_avx2;
#else
  return true;
#endif
}

#if defined(__x86_64__)
/// Whether this machine's processor has what functions with BPE_BEAM_AVX512 need.
inline bool has_widest_vectors() {
  static const bool has_avx512 = has_wide_vectors() && __builtin_cpu_supports("avx512bw") != 0;
  return has_avx512;
}
#endif

}  // namespace bpe_beam

#endif

// Words and their ids, in bounded memory: a table whose sets have two slots each, and a ring of
// bytes for entries that are too large for a slot.
//
// A word of at most 15 bytes is in its slot, with up to four ids, or up to seven of 16 bits each.
// The ids of other words, and the bytes of longer words, are in the ring, where new entries
// overwrite the oldest. A word that occurs again moves to the first slot of its set; a new word
// takes the second slot, or a free second slot of the set next to it. So words that occur once do
// not displace frequent words. The table starts small and grows with the words, up to its share of
// the bound.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "text/hash.hpp"
#include "text/word_key.hpp"

namespace bpe_beam {

/// A text is a whole word, or a part of a word between seams (encode/seams.hpp): a part may have
/// other ids than a word with the same bytes.
enum class WordKind : std::uint8_t { kWord, kPart };

class WordCache {
 public:
  /// The maximum number of ids in a slot: seven of 16 bits each, or four others.
  static constexpr std::size_t kMaxIds = 7;
  static constexpr std::size_t kMaxWideIds = 4;
  /// The number of ids that `Slot::write_ids` writes; only the first of them are the word's.
  static constexpr std::size_t kWrittenIds = 8;

  /// A word's key and hash, which stay valid when the cache changes.
  struct Entry {
    std::uint64_t
        low;  // the key's; without initial values, so that an array of entries costs nothing
    std::uint64_t high;
    std::uint64_t hash;

    [[nodiscard]] bool is_part() const { return (high & kPartBit) != 0; }
    /// The bytes of the word.
    [[nodiscard]] std::size_t size() const {
      const std::size_t size = high >> kSizeShift & WordKey::kMaxInline;
      return size != 0 ? size : high & kLongSizeBits;
    }
  };

  class Slot {
   public:
    [[nodiscard]] bool contains(const Entry& entry) const {
      // One branch: mispredictions of a second branch would cost more than it saves.
      return ((key_.low ^ entry.low) | ((key_.high & ~kCountBits) ^ entry.high)) == 0;
    }
    /// Returns whether the slot has the word's ids; otherwise they are in the ring.
    [[nodiscard]] bool has_ids() const { return count() != 0; }
    /// Returns whether the slot has ids, at most kMaxWideIds.
    [[nodiscard]] bool has_few_ids() const { return count() - 1 < kMaxWideIds; }
    /// Writes kMaxWideIds ids. The first `count()` are the word's if `has_few_ids()`.
    void write_few_ids(std::uint32_t* to) const { std::memcpy(to, ids_.data(), sizeof(ids_)); }
    [[nodiscard]] std::size_t count() const { return (key_.high & kCountBits) >> kCountShift; }
    /// Writes kWrittenIds ids. The first `count()` are the word's if `has_ids()`. Without a branch
    /// or a loop on their number, which is hard to predict.
    [[gnu::always_inline]] void write_ids(std::uint32_t* to) const {
      const bool is_narrow = count() > kMaxWideIds;
#if defined(__SSE2__)
      const __m128i ids = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ids_.data()));
      const __m128i low = _mm_unpacklo_epi16(ids, _mm_setzero_si128());
      const __m128i high = _mm_unpackhi_epi16(ids, _mm_setzero_si128());
      const __m128i narrow = _mm_set1_epi32(-static_cast<int>(is_narrow));
      const __m128i first = _mm_or_si128(_mm_and_si128(narrow, low), _mm_andnot_si128(narrow, ids));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), first);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + kMaxWideIds), high);
#elif defined(__aarch64__)
      const uint32x4_t ids = vld1q_u32(ids_.data());
      const uint16x8_t halves = vreinterpretq_u16_u32(ids);
      const uint32x4_t narrow = vdupq_n_u32(is_narrow ? ~0U : 0U);
      vst1q_u32(to, vbslq_u32(narrow, vmovl_u16(vget_low_u16(halves)), ids));
      vst1q_u32(to + kMaxWideIds, vmovl_high_u16(halves));
#else
      std::array<std::uint16_t, kWrittenIds> narrow;
      std::memcpy(narrow.data(), ids_.data(), sizeof(narrow));
      for (std::size_t i = 0; i < kMaxWideIds; ++i) to[i] = is_narrow ? narrow[i] : ids_[i];
      for (std::size_t i = kMaxWideIds; i < kWrittenIds; ++i) to[i] = narrow[i];
#endif
    }

   private:
    friend class WordCache;
    /// Takes the word's ids, unless they are too many or too large for a slot.
    bool put_ids(std::span<const std::uint32_t> ids) {
      if (ids.empty() || ids.size() > kMaxIds) return false;
      if (ids.size() <= kMaxWideIds) {
        std::copy(ids.begin(), ids.end(), ids_.begin());
      } else {
        std::array<std::uint16_t, kWrittenIds> narrow{};
        for (std::size_t i = 0; i < ids.size(); ++i) {
          if (ids[i] > 0xFFFF) return false;
          narrow[i] = static_cast<std::uint16_t>(ids[i]);
        }
        std::memcpy(ids_.data(), narrow.data(), sizeof(narrow));
      }
      key_.high |= static_cast<std::uint64_t>(ids.size()) << kCountShift;
      return true;
    }

    WordKey key_;  // see kPartBit and kCountBits
    std::array<std::uint32_t, kMaxWideIds> ids_{};
  };

  /// Makes entries of words and computes their sets. A copy in a local variable stays in registers,
  /// while the cache's own members would be read again for each word. Valid until `put`.
  class Finder {
   public:
    /// The entry of a short word or part, of 1 to WordKey::kMaxInline bytes; WordKey::kReadable
    /// bytes from `word` on may be read.
    [[nodiscard, gnu::always_inline]] Entry entry_of(const char* word, std::size_t size) const {
      return entry_of_key(pack_readable_word(word, size));
    }

    [[nodiscard, gnu::always_inline]] Entry entry_of_key(const WordKey& key) const {
      return {key.low, key.high, hash_key(key, seed_)};
    }

    /// Prefetches the memory of an entry's set.
    [[gnu::always_inline]] void prefetch(const Entry& entry) const {
      __builtin_prefetch(&set_of(entry));
    }

    /// The slot in which a frequent word is.
    [[nodiscard, gnu::always_inline]] const Slot& first_slot(const Entry& entry) const {
      return set_of(entry).first;
    }

   private:
    friend class WordCache;
    struct alignas(64) Set {
      Slot first;
      Slot second;
    };
    static_assert(sizeof(Set) == 64 && std::is_trivially_copyable_v<Set>);

    [[nodiscard, gnu::always_inline]] Set& set_of(const Entry& entry) const {
      return sets_[entry.hash & mask_];
    }

    /// The set next to an entry's set; of the only set, itself.
    [[nodiscard]] Set& neighbor_of(const Entry& entry) const {
      return sets_[(entry.hash ^ 1) & mask_];
    }

    Set* sets_ = nullptr;
    std::size_t mask_ = 0;
    std::uint64_t seed_ = process_seed();
  };

  /// Makes a cache whose table takes at most `table_bytes`, but has at least one set, and whose
  /// ring takes at most `ring_bytes`.
  WordCache(std::size_t table_bytes, std::size_t ring_bytes)
      : ring_bytes_(ring_bytes / kAlignment * kAlignment) {
    while (most_sets_ * 2 * sizeof(Set) <= table_bytes) most_sets_ *= 2;
    // Zeroed pages take memory and time only when they are touched. A set begins at a cache line,
    // and a large table at a huge page.
    const std::size_t bytes = most_sets_ * sizeof(Set);
    const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : sizeof(Set);
    memory_.reset(static_cast<char*>(std::calloc(bytes + alignment, 1)));
    if (memory_ == nullptr) throw std::bad_alloc();
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory_.get()) % alignment;
    finder_.sets_ = reinterpret_cast<Set*>(memory_.get() + (alignment - past) % alignment);
    finder_.mask_ = std::min(kFirstSets, most_sets_) - 1;
#if defined(MADV_HUGEPAGE)
    // With ordinary pages a quarter of the time goes into address translation, so the first page is
    // huge, too. The call may fail if the system has no huge pages; the table then uses ordinary
    // pages.
    if (alignment == kHugePage) (void)madvise(finder_.sets_, bytes, MADV_HUGEPAGE);
#endif
  }

  /// The entry of a word or part that is not empty. `readable`: how many bytes from word.data() on
  /// may be read.
  [[nodiscard, gnu::always_inline]] Entry entry_of(std::string_view word, WordKind kind,
                                                   std::size_t readable) const {
    WordKey key;
    if (word.size() <= WordKey::kMaxInline) [[likely]] {
      key = pack_word(word, readable);
    } else {
      // A short word has its size, which is not 0, in the top byte.
      key = {hash_bytes(word, finder_.seed_), word.size() & kLongSizeBits};
    }
    if (kind == WordKind::kPart) key.high |= kPartBit;
    return finder_.entry_of_key(key);
  }

  [[nodiscard]] const Finder& finder() const { return finder_; }

  /// Prefetches the memory of an entry's set.
  void prefetch(const Entry& entry) const { finder_.prefetch(entry); }

  /// The word's slot until the cache changes, or null.
  [[gnu::always_inline]] const Slot* find(const Entry& entry) {
    Set& set = finder_.set_of(entry);
    if (set.first.contains(entry)) [[likely]]
      return &set.first;
    Slot* other = &set.second;
    if (!other->contains(entry)) {
      if (other->key_.empty()) return nullptr;  // then the set was never full
      other = &finder_.neighbor_of(entry).second;
      if (!other->contains(entry)) return nullptr;
    }
    std::swap(set.first, *other);
    return &set.first;
  }

  /// Returns the ids of a word whose slot has no ids, valid until the cache changes; nullopt if
  /// they were overwritten.
  [[nodiscard]] std::optional<std::span<const std::uint32_t>> find_in_ring(
      const Slot& slot, std::string_view word) const {
    const std::uint64_t offset = slot.ids_[0] | std::uint64_t{slot.ids_[1]} << 32;
    const std::size_t count = slot.ids_[2];
    if (ring_end_ - offset > ring_bytes_) return std::nullopt;
    const char* const at = ring_.get() + offset % ring_bytes_;
    // Different long words may have one key.
    if (word.size() > WordKey::kMaxInline &&
        std::memcmp(at + count * sizeof(std::uint32_t), word.data(), word.size()) != 0) {
      return std::nullopt;
    }
    return std::span(reinterpret_cast<const std::uint32_t*>(at), count);
  }

  /// Adds a word, unless it would take over an eighth of the ring. Every call for a word must give
  /// the same ids.
  void put(const Entry& entry, std::string_view word, std::span<const std::uint32_t> ids) {
    Slot slot;
    slot.key_ = {entry.low, entry.high};
    if (word.size() > WordKey::kMaxInline || !slot.put_ids(ids)) {
      const std::optional<std::uint64_t> offset = put_in_ring(word, ids);
      if (!offset) return;
      slot.ids_ = {static_cast<std::uint32_t>(*offset), static_cast<std::uint32_t>(*offset >> 32),
                   static_cast<std::uint32_t>(ids.size()), 0};
    }
    if (used_ >= sets_count() && sets_count() < most_sets_) grow();
    put_slot(entry, slot);
  }

  /// The bytes of the table and, once it is used, of the ring.
  [[nodiscard]] std::size_t memory_bytes() const {
    return sets_count() * sizeof(Set) + (ring_ != nullptr ? ring_bytes_ : 0);
  }

 private:
  using Set = Finder::Set;

  // The lower half of a key's top byte has the size of a short word, at most 15; 0 for a long word.
  // The first bit of its upper half marks a part; the other three bits are the number of ids, or 0
  // if the ids are in the ring.
  static constexpr int kCountShift = 60;
  static constexpr std::uint64_t kCountBits = std::uint64_t{7} << kCountShift;
  static constexpr std::uint64_t kPartBit = std::uint64_t{1} << 63;
  static constexpr int kSizeShift = 56;
  static constexpr std::uint64_t kLongSizeBits = (std::uint64_t{1} << kSizeShift) - 1;
  static constexpr std::size_t kFirstSets = 1024;
  static constexpr std::size_t kAlignment = 8;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  [[nodiscard]] std::size_t sets_count() const { return finder_.mask_ + 1; }

  void put_slot(const Entry& entry, const Slot& slot) {
    Set& set = finder_.set_of(entry);
    const auto takes = [&](const Slot& taken) {
      return taken.key_.empty() || taken.contains(entry);
    };
    Slot* to = &set.first;
    if (!takes(*to)) {
      to = &set.second;
      if (!takes(*to) && takes(finder_.neighbor_of(entry).second)) {
        to = &finder_.neighbor_of(entry).second;
      }
    }
    used_ += to->key_.empty();
    *to = slot;
  }

  /// Writes the ids, and the bytes of a long word, into the ring. Returns their offset in all bytes
  /// ever written; nullopt if they would take over an eighth of the ring.
  std::optional<std::uint64_t> put_in_ring(std::string_view word,
                                           std::span<const std::uint32_t> ids) {
    const bool with_bytes = word.size() > WordKey::kMaxInline;
    const std::size_t size = ids.size_bytes() + (with_bytes ? word.size() : 0);
    if (ring_bytes_ == 0 || size > ring_bytes_ / 8) return std::nullopt;
    if (ring_ == nullptr) {
      ring_.reset(static_cast<char*>(std::malloc(ring_bytes_)));
      if (ring_ == nullptr) return std::nullopt;
    }
    const std::size_t left = ring_bytes_ - ring_end_ % ring_bytes_;
    if (left < size) ring_end_ += left;
    const std::uint64_t offset = ring_end_;
    char* const at = ring_.get() + offset % ring_bytes_;
    std::copy(ids.begin(), ids.end(), reinterpret_cast<std::uint32_t*>(at));
    if (with_bytes) std::memcpy(at + ids.size_bytes(), word.data(), word.size());
    ring_end_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  /// Enlarges the table four times, in place: only its new memory is touched for the first time.
  void grow() {
    const std::size_t old_sets = sets_count();
    finder_.mask_ = std::min(4 * old_sets, most_sets_) - 1;
    used_ = 0;
    // Neighbors are emptied together: a word goes to the other set only if its own is full.
    for (std::size_t i = 0; i < old_sets; i += 2) {
      const Set one = std::exchange(finder_.sets_[i], {});
      const Set two = std::exchange(finder_.sets_[i + 1], {});
      for (const Slot* slot : {&one.first, &two.first, &one.second, &two.second}) {
        const WordKey key = {slot->key_.low, slot->key_.high & ~kCountBits};
        if (!key.empty()) put_slot(finder_.entry_of_key(key), *slot);
      }
    }
  }

  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };

  Finder finder_;
  std::size_t most_sets_ = 1;
  std::unique_ptr<char[], Free> memory_;
  std::size_t used_ = 0;  // slots
  std::unique_ptr<char[], Free> ring_;
  std::size_t ring_bytes_;
  std::uint64_t ring_end_ = 0;  // bytes ever written, and skipped at the end of the ring
};

}  // namespace bpe_beam

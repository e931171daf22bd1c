// Words and how often they occur: open addressing, short words inside the slot, 64-bit counts.
//
// Memory: 24 bytes per slot, with at most 5/8 of the slots in use, and an arena with the bytes of
// words over 15 bytes. With positions (16 more bytes per slot) the table also has the first
// occurrence of each word.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scan/pipeline.hpp"
#include "text/hash.hpp"
#include "text/word_key.hpp"

namespace bpe_beam {

/// An occurrence of a word: its document's number, and the number of words before it in that
/// document.
struct WordPosition {
  std::uint64_t document = 0;
  std::uint64_t word = 0;
  auto operator<=>(const WordPosition&) const = default;
};

/// Words in the order of their bytes, as columns.
struct WordColumns {
  std::vector<std::int64_t> offsets{0};
  std::string bytes;
  std::vector<std::int64_t> counts;
  std::vector<std::uint64_t> documents;  // empty without positions, like `words`
  std::vector<std::uint64_t> words;
};

class WordTable {
 public:
  explicit WordTable(bool with_places = false) : with_places_(with_places) { resize(kMinSlots); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool with_places() const { return with_places_; }

  /// The bytes of the slots, the positions and the arena.
  [[nodiscard]] std::size_t memory_bytes() const { return slots_bytes() + arena_.capacity(); }

  /// Adds `count` occurrences of a word, the first one at `position`. `readable`: see pack_word.
  void add(std::string_view word, std::int64_t count, WordPosition position, std::size_t readable) {
    if (word.empty()) throw std::invalid_argument("a word must not be empty");
    if (count < 1) throw std::invalid_argument("a word's count must be at least 1");
    const std::size_t at = find_or_insert(word, readable);
    std::int64_t total = 0;
    if (__builtin_add_overflow(slots_[at].count, count, &total)) {
      throw std::overflow_error("a word's count is beyond 64 bits");
    }
    slots_[at].count = total;
    if (with_places_ && position < positions_[at]) positions_[at] = position;
  }

  /// Adds the words of one document; added tokens are left out. Returns how many words it has.
  /// `allowed`: see AddedTokens::extract. Before words that might take the table beyond
  /// `max_bytes`, even in the middle of the document, `on_full` is called; it may empty the table.
  template <typename OnFull>
  std::uint64_t add_text(std::string_view text, const Pipeline& pipeline,
                         std::span<const std::uint32_t> allowed, std::uint64_t document,
                         std::size_t max_bytes, OnFull on_full) {
    Counting<OnFull> sink{*this, WordPosition{document, 0}, max_bytes, on_full};
    pipeline.run(text, allowed, false, state_, sink);
    return sink.position.word;
  }

  /// As above, without a limit.
  std::uint64_t add_text(std::string_view text, const Pipeline& pipeline,
                         std::span<const std::uint32_t> allowed, std::uint64_t document) {
    return add_text(text, pipeline, allowed, document, SIZE_MAX, [] {});
  }

  /// Adds every word of another table.
  void add_table(const WordTable& other) {
    for (std::size_t i = 0; i < other.slots_.size(); ++i) {
      other.prefetch_word(i + 2 * kAhead);
      prefetch_slot_of(other, i + kAhead);
      if (other.slots_[i].key.empty()) continue;
      const std::string_view word = other.word_at(i);
      add(word, other.slots_[i].count, other.with_places_ ? other.positions_[i] : WordPosition{},
          word.size());
    }
  }

  /// The words of each of `partitions` partitions, sorted by their bytes.
  [[nodiscard]] std::vector<WordColumns> split(std::uint32_t partitions) const {
    if (partitions < 1) throw std::invalid_argument("partitions must be at least 1, got 0");
    std::vector<std::vector<SortKey>> members(partitions);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      prefetch_word(i + kAhead);
      if (slots_[i].key.empty()) continue;
      const std::string_view word = word_at(i);
      const std::uint32_t partition = partitions == 1 ? 0 : partition_of(word, partitions);
      members[partition].push_back({sort_prefix(word), i});
    }
    std::vector<WordColumns> result(partitions);
    for (std::uint32_t p = 0; p < partitions; ++p) {
      sort_members(members[p]);
      result[p] = columns(members[p]);
      std::vector<SortKey>().swap(members[p]);
    }
    return result;
  }

  /// All words in no particular order, without positions: in less time than sorted ones.
  [[nodiscard]] WordColumns unsorted() const {
    WordColumns result;
    result.offsets.reserve(size_ + 1);
    result.counts.reserve(size_);
    result.bytes.reserve(arena_.size() + size_ * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      prefetch_word(i + kAhead);
      if (slots_[i].key.empty()) continue;
      result.bytes.append(word_at(i));
      result.offsets.push_back(static_cast<std::int64_t>(result.bytes.size()));
      result.counts.push_back(slots_[i].count);
    }
    return result;
  }

  /// Removes all words and frees their memory.
  void clear() {
    slots_ = {};
    positions_ = {};
    std::string().swap(arena_);  // an assignment would keep its memory
    size_ = 0;
    resize(kMinSlots);
  }

 private:
  static constexpr std::size_t kMinSlots = 1024;
  /// How many slots ahead memory is fetched.
  static constexpr std::size_t kAhead = 16;
  static constexpr WordPosition kNoPosition{~std::uint64_t{0}, ~std::uint64_t{0}};

  struct Slot {
    WordKey key;
    std::int64_t count = 0;
  };

  /// A slot with the first eight bytes of its word as a big-endian number, which decides most
  /// comparisons without reading the word.
  struct SortKey {
    std::uint64_t prefix;
    std::size_t slot;
  };

  static std::uint64_t sort_prefix(std::string_view word) {
    return __builtin_bswap64(load_up_to_8(word.data(), word.size() < 8 ? word.size() : 8));
  }

  /// Takes the words of one document from a pipeline.
  template <typename OnFull>
  struct Counting {
    WordTable& table;
    WordPosition position;  // of the next word
    std::size_t max_bytes;
    OnFull& on_full;

    /// A word whose slot is being fetched from memory. Without initial values, so that an array of
    /// them costs nothing.
    struct Pending {
      std::uint64_t low;  // the key's
      std::uint64_t high;
      std::uint64_t hash;

      [[nodiscard]] WordKey key() const { return {low, high}; }
    };

    void words(const TextView& text, std::span<const Word> words) {
      const char* const data = text.bytes.data();
      const std::size_t end = text.bytes.size();
      if (table.size_ > 0 && table.bytes_with_more_words() > max_bytes) [[unlikely]]
        on_full();
      std::array<Pending, Pipeline::kWords> pending;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t size = words[i].end - words[i].begin;
        const std::string_view word{data + words[i].begin, size};
        if (size > WordKey::kMaxInline) [[unlikely]] {
          pending[i].hash = hash_bytes(word, table.seed_);
        } else {
          const WordKey key = pack_word(word, end - words[i].begin);
          pending[i] = {key.low, key.high, hash_key(key, table.seed_)};
        }
        __builtin_prefetch(&table.slots_[pending[i].hash & table.mask_]);
      }
      for (std::size_t i = 0; i < words.size(); ++i, ++position.word) {
        const std::size_t size = words[i].end - words[i].begin;
        const std::size_t at =
            size <= WordKey::kMaxInline
                ? table.find_or_insert_short(pending[i].key(), pending[i].hash)
                : table.find_or_insert_long({data + words[i].begin, size}, pending[i].hash);
        ++table.slots_[at].count;  // one at a time, 2^63 is out of reach
        if (table.with_places_ && position < table.positions_[at]) table.positions_[at] = position;
      }
    }

    void added(std::uint32_t, const TextView&) {}
  };

  /// The bytes of the table after one more call of `words`, without the bytes of long words.
  [[nodiscard]] std::size_t bytes_with_more_words() const {
    const bool grows = (size_ + Pipeline::kWords) * 8 > slots_.size() * 5;
    return memory_bytes() + (grows ? slots_bytes() : 0);
  }

  [[nodiscard]] std::size_t slots_bytes() const {
    return slots_.capacity() * sizeof(Slot) + positions_.capacity() * sizeof(WordPosition);
  }

  [[nodiscard]] std::string_view word_at(std::size_t slot) const {
    const WordKey& key = slots_[slot].key;
    return key.is_long() ? long_word(key) : key.inline_bytes();
  }

  /// Prefetches the bytes of the word in a slot, if there is one.
  void prefetch_word(std::size_t slot) const {
    if (slot < slots_.size() && slots_[slot].key.is_long()) {
      __builtin_prefetch(arena_.data() + arena_offset(slots_[slot].key));
    }
  }

  /// Prefetches the slot for the word in a slot of another table, if there is one.
  void prefetch_slot_of(const WordTable& other, std::size_t slot) const {
    if (slot >= other.slots_.size() || other.slots_[slot].key.empty()) return;
    const WordKey& key = other.slots_[slot].key;
    const std::uint64_t hash =
        key.is_long() ? hash_bytes(other.long_word(key), seed_) : hash_key(key, seed_);
    __builtin_prefetch(&slots_[hash & mask_]);
  }

  static std::size_t arena_offset(const WordKey& key) {
    return key.high & ((std::uint64_t{1} << 56) - 1);
  }

  // A long word in the arena: its size in eight bytes, then its bytes.
  [[nodiscard]] std::string_view long_word(const WordKey& key) const {
    const std::size_t offset = arena_offset(key);
    std::uint64_t size = 0;
    std::memcpy(&size, arena_.data() + offset, sizeof size);
    return {arena_.data() + offset + sizeof size, size};
  }

  std::size_t find_or_insert(std::string_view word, std::size_t readable) {
    if (word.size() > WordKey::kMaxInline) {
      return find_or_insert_long(word, hash_bytes(word, seed_));
    }
    const WordKey key = pack_word(word, readable);
    return find_or_insert_short(key, hash_key(key, seed_));
  }

  std::size_t find_or_insert_short(const WordKey& key, std::uint64_t hash) {
    std::size_t at = hash & mask_;
    while (true) {
      if (slots_[at].key == key) return at;
      if (slots_[at].key.empty()) break;
      at = (at + 1) & mask_;
    }
    return insert(at, key);
  }

  std::size_t find_or_insert_long(std::string_view word, std::uint64_t hash) {
    std::size_t at = hash & mask_;
    while (true) {
      const WordKey& key = slots_[at].key;
      if (key.empty()) break;
      if (key.low == hash && key.is_long() && long_word(key) == word) return at;
      at = (at + 1) & mask_;
    }
    const std::uint64_t offset = arena_.size();
    const std::uint64_t size = word.size();
    arena_.append(reinterpret_cast<const char*>(&size), sizeof size);
    arena_.append(word);
    return insert(at, WordKey{hash, offset | (WordKey::kLong << 56)});
  }

  /// Puts a new key into the free slot `at`; returns its slot, which may be another one.
  std::size_t insert(std::size_t at, const WordKey& key) {
    slots_[at] = Slot{key, 0};
    ++size_;
    if (size_ * 8 <= slots_.size() * 5) return at;
    resize(slots_.size() * 2);
    return find_key(key);
  }

  [[nodiscard]] std::uint64_t slot_hash(const WordKey& key) const {
    return key.is_long() ? key.low : hash_key(key, seed_);
  }

  [[nodiscard]] std::size_t find_key(const WordKey& key) const {
    std::size_t at = slot_hash(key) & mask_;
    while (slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  void resize(std::size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    std::vector<WordPosition> old_positions(with_places_ ? slots : 0, kNoPosition);
    old_positions.swap(positions_);
    mask_ = slots - 1;
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (old[i].key.empty()) continue;
      std::size_t at = slot_hash(old[i].key) & mask_;
      while (!slots_[at].key.empty()) at = (at + 1) & mask_;
      slots_[at] = old[i];
      if (with_places_) positions_[at] = old_positions[i];
    }
  }

  void sort_members(std::vector<SortKey>& members) const {
    std::sort(members.begin(), members.end(), [this](const SortKey& a, const SortKey& b) {
      if (a.prefix != b.prefix) return a.prefix < b.prefix;
      return word_at(a.slot) < word_at(b.slot);
    });
  }

  [[nodiscard]] WordColumns columns(const std::vector<SortKey>& members) const {
    WordColumns result;
    result.offsets.reserve(members.size() + 1);
    result.counts.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i + 2 * kAhead < members.size()) {
        __builtin_prefetch(&slots_[members[i + 2 * kAhead].slot]);
        prefetch_word(members[i + kAhead].slot);
      }
      const SortKey& member = members[i];
      result.bytes.append(word_at(member.slot));
      result.offsets.push_back(static_cast<std::int64_t>(result.bytes.size()));
      result.counts.push_back(slots_[member.slot].count);
      if (with_places_) {
        result.documents.push_back(positions_[member.slot].document);
        result.words.push_back(positions_[member.slot].word);
      }
    }
    return result;
  }

  bool with_places_;
  // Each table has its own seed: words from a table with the same seed would arrive in the order of
  // their slots, and collide in the first slots.
  std::uint64_t seed_ = table_seed();
  std::size_t size_ = 0;
  std::size_t mask_ = 0;
  std::vector<Slot> slots_;
  std::vector<WordPosition> positions_;
  std::string arena_;
  PipelineState state_;
};

}  // namespace bpe_beam

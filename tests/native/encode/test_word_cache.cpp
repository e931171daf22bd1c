// The cache of words: what is found is what was put last, within the bound.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/word_cache.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;

WordCache::Entry entry_of(const WordCache& cache, std::string_view word,
                          WordKind kind = WordKind::kWord) {
  const ExactCopy copy(word);
  return cache.entry_of(copy.view(), kind, word.size());
}

void put(WordCache& cache, std::string_view word, const Ids& ids) {
  cache.put(entry_of(cache, word), word, ids);
}

/// Whether the cache has the word; with other ids than these, the test fails.
bool found(WordCache& cache, std::string_view word, const Ids& ids) {
  const WordCache::Slot* const slot = cache.find(entry_of(cache, word));
  if (slot == nullptr) return false;
  if (slot->has_ids()) {
    Ids written(WordCache::kWrittenIds);
    slot->write_ids(written.data());
    written.resize(slot->count());
    CHECK(word.size() <= 15 && written == ids);
    CHECK(slot->has_few_ids() == (ids.size() <= WordCache::kMaxWideIds));
    if (slot->has_few_ids()) {
      Ids few(WordCache::kMaxWideIds);
      slot->write_few_ids(few.data());
      few.resize(slot->count());
      CHECK(few == ids);
    }
    return true;
  }
  CHECK(!slot->has_few_ids());
  const auto in_ring = cache.find_in_ring(*slot, word);
  if (in_ring) CHECK((Ids(in_ring->begin(), in_ring->end()) == ids));
  return in_ring.has_value();
}

/// Of every length, some that differ in one byte only, with few and many ids.
void words_of_every_length() {
  WordCache cache(1 << 19, 1 << 19);
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t count = 0; count <= 9; ++count) {
      for (const char byte : {'\0', 'a', '\xFF'}) {
        std::string word(size, 'b');
        word[size / 2] = byte;
        const Ids ids(count, static_cast<std::uint32_t>(size * 100 + count));
        put(cache, word, ids);
        CHECK(found(cache, word, ids));
        CHECK(cache.find(entry_of(cache, word, WordKind::kPart)) == nullptr);
        word.back() ^= 1;  // none of these was put
        CHECK(cache.find(entry_of(cache, word)) == nullptr);
      }
    }
  }
}

/// Of 16 bits and of more, as many as a slot takes and one more.
void ids_of_any_width() {
  WordCache cache(1 << 16, 1 << 16);
  for (std::size_t count = 1; count <= WordCache::kMaxIds + 1; ++count) {
    for (const std::uint32_t last : {0u, 0xFFFFu, 0x10000u, 0xFFFFFFFFu}) {
      Ids ids;
      for (std::uint32_t i = 1; i < count; ++i) ids.push_back(0xFFFF - i);
      ids.push_back(last);
      put(cache, "word", ids);
      CHECK(found(cache, "word", ids));
      const std::size_t most = last > 0xFFFF ? WordCache::kMaxWideIds : WordCache::kMaxIds;
      CHECK(cache.find(entry_of(cache, "word"))->has_ids() == (count <= most));
    }
  }
}

/// An empty cache has nothing; of one set, two words at most, and the frequent one stays.
void one_set() {
  for (const std::size_t bytes : {0, 1, 64, 100, 255}) {
    WordCache cache(bytes / 2, bytes / 2);
    CHECK(cache.memory_bytes() == 64);
    CHECK(!found(cache, "a", {}) && !found(cache, std::string(15, '\0'), {}));
    put(cache, "a", {1, 2, 3, 4});
    put(cache, "b", {0xFFFFFFFF});
    CHECK(found(cache, "a", {1, 2, 3, 4}) && found(cache, "b", {0xFFFFFFFF}));
    for (std::uint32_t i = 0; i < 10; ++i) put(cache, std::to_string(i), {i});
    CHECK(found(cache, "b", {0xFFFFFFFF}) && !found(cache, "a", {1, 2, 3, 4}));
    CHECK(found(cache, "9", {9}) && found(cache, "b", {0xFFFFFFFF}));
    put(cache, std::string(16, 'x'), {1});  // for which there is no room
    CHECK(!found(cache, std::string(16, 'x'), {1}));
    put(cache, "none", {});
  }
}

/// As the words grow in number, the table grows with them, and keeps 92 % (88 % without the sets
/// next to full ones); at the bound no more.
void grows_to_its_bound() {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  WordCache cache(kBytes / 2, kBytes / 2);
  const std::size_t first = cache.memory_bytes();
  CHECK(first < kBytes / 32);
  std::uint32_t words = 0;
  for (; words < 50'000; ++words) put(cache, std::to_string(words), {words});
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < words; ++i) kept += found(cache, std::to_string(i), {i});
  CHECK(kept > words / 100 * 92 && cache.memory_bytes() > first);
  for (; words < 500'000; ++words) put(cache, std::to_string(words), {words});
  CHECK(cache.memory_bytes() <= kBytes / 2);
  put(cache, std::string(100, 'x'), Ids(30, 5));
  CHECK(cache.memory_bytes() <= kBytes);
}

/// In a ring that is overwritten many times, with entries of all sizes.
void the_ring() {
  std::mt19937 random(9);
  for (const std::size_t bytes : {256, 1000, 4096, 100'000}) {
    WordCache cache(bytes / 2, bytes / 2);
    std::size_t hits = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t size = 1 + random() % 60;
      const std::uint32_t letter = random() % 20;
      const std::string word(size, static_cast<char>('a' + letter));
      const Ids ids((size * 7 + letter) % 12, size * 100 + letter);
      hits += found(cache, word, ids);
      put(cache, word, ids);
      if (ids.size() * sizeof(std::uint32_t) + size <= bytes / 16) CHECK(found(cache, word, ids));
    }
    CHECK(hits > 20);
  }
}

}  // namespace

int main() {
  words_of_every_length();
  ids_of_any_width();
  one_set();
  grows_to_its_bound();
  the_ring();
}

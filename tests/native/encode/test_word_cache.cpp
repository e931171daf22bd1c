// The cache of short words: what was put last is found, and nothing else.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "encode/word_cache.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;

WordKey key_of(std::string_view word) {
  const ExactCopy copy(word);
  return pack_word(copy.view(), copy.view().size());
}

bool found(WordCache& cache, std::string_view word, const Ids& ids) {
  const WordKey key = key_of(word);
  const WordCache::Slot& slot = cache.slot_of(key);
  if (!slot.holds(key)) return false;
  CHECK(slot.count() == ids.size());
  return Ids(slot.ids.begin(), slot.ids.begin() + static_cast<std::ptrdiff_t>(ids.size())) == ids;
}

void put(WordCache& cache, std::string_view word, const Ids& ids) {
  const WordKey key = key_of(word);
  cache.slot_of(key).put(key, ids);
}

/// Of every length, some that differ in one byte only, with up to four ids.
void words_of_every_length() {
  WordCache cache(1 << 20);
  for (std::size_t size = 1; size <= WordKey::kMaxInline; ++size) {
    for (std::size_t count = 0; count <= WordCache::kMaxIds; ++count) {
      for (const char byte : {'\0', 'a', '\xFF'}) {
        std::string word(size, 'b');
        word[size / 2] = byte;
        const Ids ids(count, static_cast<std::uint32_t>(size));
        put(cache, word, ids);
        CHECK(found(cache, word, ids));
        word.back() ^= 1;  // none of these was put
        CHECK(!cache.slot_of(key_of(word)).holds(key_of(word)));
      }
    }
  }
}

/// An empty cache holds nothing; of one slot, the last word.
void one_slot() {
  for (const std::size_t bytes : {0, 1, 47, 63}) {
    WordCache cache(bytes);
    CHECK(!found(cache, "a", {}) && !found(cache, std::string(15, '\0'), {}));
    put(cache, "a", {1, 2, 3, 4});
    CHECK(found(cache, "a", {1, 2, 3, 4}) && !found(cache, "b", {1, 2, 3, 4}));
    put(cache, "b", {0xFFFFFFFF});
    CHECK(found(cache, "b", {0xFFFFFFFF}) && !found(cache, "a", {1, 2, 3, 4}));
    CHECK(&cache.slot_of(key_of("a")) == &cache.slot_of(key_of("b")));
  }
}

/// As many slots as the bytes allow, and words spread over them.
void many_slots() {
  constexpr std::size_t kSlots = 4096;
  WordCache cache(kSlots * sizeof(WordCache::Slot));
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < kSlots; ++i) put(cache, std::to_string(i), {i});
  for (std::uint32_t i = 0; i < kSlots; ++i) kept += found(cache, std::to_string(i), {i});
  CHECK(kept > kSlots / 2 && kept <= kSlots);
  CHECK(sizeof(WordCache::Slot) == 32);
}

}  // namespace

int main() {
  words_of_every_length();
  one_slot();
  many_slots();
}

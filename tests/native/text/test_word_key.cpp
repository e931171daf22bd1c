// A word as two integers: the same key however it is packed, and different words, different keys.
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/word_key.hpp"

using namespace bpe_beam;

namespace {

/// Words of `size` bytes in which every byte matters: high bits, zeros, and letters.
std::string word_of(std::size_t size, int kind) {
  std::string word;
  for (std::size_t i = 0; i < size; ++i) {
    word += kind == 0 ? static_cast<char>('a' + i) : kind == 1 ? '\xFF' : '\0';
  }
  return word;
}

void packing_keeps_the_bytes_and_the_length() {
  for (std::size_t size = 1; size <= WordKey::kMaxInline; ++size) {
    for (const int kind : {0, 1, 2}) {
      const ExactCopy word(word_of(size, kind));
      const WordKey key = pack_word(word.view(), size);
      CHECK(key.inline_size() == size);
      CHECK(key.inline_bytes() == word.view());
      CHECK(!key.is_long());
      CHECK(!key.empty());
    }
  }
}

/// With 16 readable bytes there is another path, which must cut off what follows the word.
void what_follows_the_word_does_not_matter() {
  for (std::size_t size = 1; size <= WordKey::kMaxInline; ++size) {
    for (const int kind : {0, 1, 2}) {
      const std::string word = word_of(size, kind);
      const WordKey alone = pack_word(ExactCopy(word).view(), size);
      for (const char after : {'\0', 'z', '\xFF'}) {
        const ExactCopy text(word + std::string(16 - size, after));
        CHECK(pack_word(text.view().substr(0, size), 16) == alone);
        const ExactCopy longer(word + std::string(40, after));
        CHECK(pack_word(longer.view().substr(0, size), 40 + size) == alone);
      }
      // One byte short of the fast path.
      const ExactCopy shorter(word + std::string(15 - size, 'z'));
      CHECK(pack_word(shorter.view().substr(0, size), 15) == alone);
    }
  }
}

void different_words_have_different_keys() {
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  std::size_t words = 0;
  const auto add = [&](const std::string& word) {
    const WordKey key = pack_word(word, word.size());
    keys.emplace(key.low, key.high);
    ++words;
  };
  for (std::size_t size = 1; size <= WordKey::kMaxInline; ++size) {
    add(std::string(size, '\0'));  // differ in their length alone
    for (std::size_t at = 0; at < size; ++at) {
      std::string word(size, '\0');
      word[at] = '\x01';
      add(word);
      word[at] = '\xFF';
      add(word);
    }
  }
  CHECK(keys.size() == words);
}

void the_free_slot_and_the_long_word() {
  CHECK(WordKey{}.empty());
  CHECK((WordKey{123, (WordKey::kLong << 56) | 7}).is_long());
  CHECK(!(WordKey{123, (WordKey::kLong << 56) | 7}).empty());
}

void the_hash_follows_key_and_seed() {
  const WordKey word = pack_word("word", 4);
  CHECK(hash_key(word, 5) == hash_key(pack_word("word", 4), 5));
  CHECK(hash_key(word, 5) != hash_key(word, 6));
  CHECK(hash_key(word, 5) != hash_key(pack_word("ward", 4), 5));
  // Low bits choose the slot: many words must not share them.
  std::set<std::uint64_t> low_bits;
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    low_bits.insert(hash_key(pack_word(number, number.size()), 5) & 0xFFFF);
  }
  CHECK(low_bits.size() > 970);  // 7.6 collisions are expected
}

}  // namespace

int main() {
  packing_keeps_the_bytes_and_the_length();
  what_follows_the_word_does_not_matter();
  different_words_have_different_keys();
  the_free_slot_and_the_long_word();
  the_hash_follows_key_and_seed();
}

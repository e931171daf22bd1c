// BPE from bytes and from characters, against the definition.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/bpe_models.hpp"
#include "encode_word.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

Ids all_byte_ids() {
  Ids ids;
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids.push_back(byte);
  return ids;
}

/// Both encode a word, and do it alike.
Encoded alike(const WordModel& model, const NaiveModel& naive, std::string_view word) {
  const Encoded result = encoded(model, word);
  CHECK(result == encoded(naive, word));
  return result;
}

// ---- from bytes ----

ByteBpeModel model_of(const NaiveByteBpe& naive) {
  return {naive.rows, std::span<const std::uint32_t, 256>(naive.byte_ids),
          token_ids(naive.whole_words)};
}

NaiveByteBpe byte_bpe(std::vector<MergeRow> rows, Vocabulary whole_words = {}) {
  NaiveByteBpe naive;
  naive.rows = std::move(rows);
  naive.byte_ids = all_byte_ids();
  naive.whole_words = std::move(whole_words);
  return naive;
}

Encoded both(const NaiveByteBpe& naive, std::string_view word) {
  return alike(model_of(naive), naive, word);
}

/// Words of the five-word example: ug, un, hug.
void worked() {
  const NaiveByteBpe naive = byte_bpe({{'u', 'g', 256}, {'u', 'n', 257}, {'h', 256, 258}});
  CHECK((both(naive, "bug").symbols == Symbols{{'b', 1}, {256, 2}}));
  CHECK((both(naive, "hug").symbols == Symbols{{258, 3}}));
  CHECK((both(naive, "unhug").symbols == Symbols{{257, 2}, {258, 3}}));
}

/// Before any merge, and the whole word only.
void whole_words() {
  const NaiveByteBpe naive =
      byte_bpe({{'a', 'b', 256}}, {{"abc", 900}, {"z", 901}, {std::string(60, 'a'), 902}});
  CHECK((both(naive, "abc").symbols == Symbols{{900, 3}}));
  CHECK((both(naive, "abca").symbols == Symbols{{256, 2}, {'c', 1}, {'a', 1}}));
  CHECK((both(naive, "z").symbols == Symbols{{901, 1}}));
  CHECK((both(naive, std::string(60, 'a')).symbols == Symbols{{902, 60}}));
  CHECK(both(naive, std::string(61, 'a')).symbols.size() == 61);
}

void a_byte_without_an_id() {
  NaiveByteBpe naive = byte_bpe({{'a', 'b', 256}}, {{"zz", 900}});
  naive.byte_ids['z'] = kNoId;
  CHECK((both(naive, "abz") == Encoded{{}, true, 2, 3}));
  CHECK((both(naive, std::string(100, 'a') + "z") == Encoded{{}, true, 100, 101}));
  CHECK((both(naive, "zz").symbols == Symbols{{900, 2}}));  // a whole word needs no bytes
  // A byte that is missing and whose id is in a merge: kNoId is no id.
  naive.rows = {{'a', kNoId, 300}};
  CHECK((both(naive, "az") == Encoded{{}, true, 1, 2}));
}

/// Bytes may have any ids, and their merges follow.
void bytes_with_other_ids() {
  NaiveByteBpe naive;
  naive.byte_ids = all_byte_ids();
  std::reverse(naive.byte_ids.begin(), naive.byte_ids.end());
  const std::uint32_t a = 255 - 'a';
  const std::uint32_t b = 255 - 'b';
  naive.rows = {{a, b, 4'000'000'000}};
  CHECK((both(naive, "abba").symbols == Symbols{{4'000'000'000, 2}, {b, 1}, {a, 1}}));
}

void random_bytes() {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    NaiveByteBpe naive = byte_bpe({});
    Ids known = {'a', 'b', 0xFF};
    for (std::uint32_t left = random() % 12; left > 0; --left) {
      const std::uint32_t first = known[random() % known.size()];
      const std::uint32_t second = known[random() % known.size()];
      known.push_back(256 + left);
      naive.rows.push_back({first, second, known.back()});
    }
    if (round % 3 == 0) naive.whole_words = {{"ab", 900}, {"aab", 901}};
    const ByteBpeModel model = model_of(naive);
    for (int i = 0; i < 60; ++i) {
      std::string word;
      for (std::size_t left = random() % 70 + 1; left > 0; --left) word += "aab\xFF"[random() % 4];
      alike(model, naive, word.substr(0, i < 20 ? 3 : word.size()));
    }
  }
}

// ---- from characters ----

std::unique_ptr<CharBpeModel> model_of(const NaiveCharBpe& naive) {
  return std::make_unique<CharBpeModel>(naive.rows, token_ids(naive.tokens), naive.settings);
}

Encoded both(const NaiveCharBpe& naive, std::string_view word) {
  return alike(*model_of(naive), naive, word);
}

NaiveCharBpe char_bpe(Vocabulary tokens, CharBpeSettings settings,
                      std::vector<MergeRow> rows = {}) {
  NaiveCharBpe naive;
  naive.tokens = std::move(tokens);
  naive.settings = std::move(settings);
  naive.rows = std::move(rows);
  return naive;
}

CharBpeSettings affixes(std::string prefix, std::string suffix) {
  CharBpeSettings settings;
  settings.prefix = std::move(prefix);
  settings.suffix = std::move(suffix);
  return settings;
}

CharBpeSettings unknown(std::uint32_t id, bool fused) {
  CharBpeSettings settings;
  settings.unk = id;
  settings.fuse_unk = fused;
  return settings;
}

void prefix_and_suffix() {
  const Vocabulary tokens = {{"a", 1},    {"##a", 2},    {"a</w>", 3}, {"##a</w>", 4},
                             {"##é", 5},  {"é", 6},      {"##", 7},    {"</w>", 8},
                             {"##aa", 9}, {"##a##", 10}, {"", 11}};
  CHECK((both(char_bpe(tokens, {}), "aéa").symbols == Symbols{{1, 1}, {6, 2}, {1, 1}}));
  CHECK((both(char_bpe(tokens, affixes("##", "")), "aéa").symbols ==
         Symbols{{1, 1}, {5, 2}, {2, 1}}));
  CHECK((both(char_bpe(tokens, affixes("", "</w>")), "aéa").symbols ==
         Symbols{{1, 1}, {6, 2}, {3, 1}}));
  const CharBpeSettings two = affixes("##", "</w>");
  CHECK((both(char_bpe(tokens, two), "aéa").symbols == Symbols{{1, 1}, {5, 2}, {4, 1}}));
  CHECK((both(char_bpe(tokens, two), "a").symbols == Symbols{{3, 1}}));
  CHECK((both(char_bpe(tokens, two), "é") == Encoded{{}, true, 0, 2}));
  CHECK((both(char_bpe(tokens, two), "aaé") == Encoded{{}, true, 2, 4}));
  // Without them, "#" and "/" are characters as others.
  CHECK((both(char_bpe({{"#", 1}, {"##", 2}, {"###", 3}}, affixes("##", "")), "##").symbols ==
         Symbols{{1, 1}, {3, 1}}));
}

void unknown_ones() {
  const Vocabulary tokens = {{"a", 1}, {"b", 2}};
  const std::vector<MergeRow> rows = {{0, 0, 9}, {0, 2, 8}};
  CHECK((both(char_bpe(tokens, unknown(0, false)), "aéeb").symbols ==
         Symbols{{1, 1}, {0, 2}, {0, 1}, {2, 1}}));
  CHECK((both(char_bpe(tokens, unknown(0, true)), "éeaé").symbols ==
         Symbols{{0, 3}, {1, 1}, {0, 2}}));
  // Fused before merges, and merged as others are.
  CHECK(
      (both(char_bpe(tokens, unknown(0, false), rows), "éeb").symbols == Symbols{{9, 3}, {2, 1}}));
  CHECK((both(char_bpe(tokens, unknown(0, true), rows), "éeb").symbols == Symbols{{8, 4}}));
  CHECK((both(char_bpe(tokens, unknown(0, false)), "\xC3\x28").symbols == Symbols{{0, 1}, {0, 1}}));
  // An unknown token that is a character of the vocabulary is not fused with it.
  CHECK((both(char_bpe(tokens, unknown(1, true)), "xaxx").symbols ==
         Symbols{{1, 1}, {1, 1}, {1, 2}}));
}

void bytes_where_a_character_is_unknown() {
  CharBpeSettings settings = unknown(0, true);
  settings.byte_fallback = all_byte_ids();
  for (std::uint32_t& id : settings.byte_fallback) id += 1000;
  const Vocabulary tokens = {{"a", 1}};
  CHECK((both(char_bpe(tokens, settings), "aé\xFF").symbols ==
         Symbols{{1, 1}, {1000 + 0xC3, 1}, {1000 + 0xA9, 1}, {1000 + 0xFF, 1}}));
  // All of a character's bytes, or none.
  settings.byte_fallback[0xA9] = kNoId;
  const NaiveCharBpe lacking = char_bpe(tokens, settings);
  CHECK((both(lacking, "éé").symbols == Symbols{{0, 4}}));
  CHECK((both(lacking, "éèé").symbols ==
         Symbols{{0, 2}, {1000 + 0xC3, 1}, {1000 + 0xA8, 1}, {0, 2}}));
  settings.unk.reset();
  CHECK((both(char_bpe(tokens, settings), "aèé") == Encoded{{}, true, 3, 5}));
}

void a_word_that_is_a_token() {
  const Vocabulary tokens = {{"a", 1}, {"b", 2}, {"ab", 3}, {"ba", 4}, {"\xFF", 5}};
  const std::vector<MergeRow> rows = {{1, 2, 3}};
  CHECK((both(char_bpe(tokens, {}, rows), "ba").symbols == Symbols{{2, 1}, {1, 1}}));
  NaiveCharBpe ignoring = char_bpe(tokens, {}, rows);
  ignoring.settings.ignore_merges = true;
  CHECK((both(ignoring, "ba").symbols == Symbols{{4, 2}}));
  CHECK((both(ignoring, "bab").symbols == Symbols{{2, 1}, {3, 2}}));
}

/// Settings, vocabularies, merges and words of all kinds.
void random_characters() {
  std::mt19937 random(8);
  constexpr std::string_view kCharacters[] = {"a",  "b",          "é",    "#",
                                              "語", "\U0001F600", "\x80", "\xC3"};
  std::size_t missing = 0;
  std::size_t merged = 0;
  for (int round = 0; round < 3000; ++round) {
    NaiveCharBpe naive;
    if (random() % 2 == 0) naive.settings.prefix = random() % 2 == 0 ? "##" : "é";
    if (random() % 2 == 0) naive.settings.suffix = random() % 2 == 0 ? "</w>" : "#";
    if (random() % 4 != 0) naive.settings.unk = random() % 4;
    naive.settings.fuse_unk = random() % 2 == 0;
    naive.settings.ignore_merges = random() % 2 == 0;
    if (random() % 2 == 0) {
      naive.settings.byte_fallback = all_byte_ids();
      if (random() % 2 == 0) naive.settings.byte_fallback[0x80 + random() % 0x80] = kNoId;
    }
    std::uint32_t next = 1000;
    for (std::size_t i = 0; i + 2 < std::size(kCharacters); ++i) {
      for (const std::string& before : {std::string(), naive.settings.prefix}) {
        for (const std::string& after : {std::string(), naive.settings.suffix}) {
          if (random() % 3 == 0) continue;
          naive.tokens.emplace(before + std::string(kCharacters[i]) + after, next++);
        }
      }
    }
    if (random() % 2 == 0) naive.tokens.emplace("ab", next++);
    Ids known = {0, 1, 0xC3, 0xA9};
    for (const auto& token : naive.tokens) known.push_back(token.second);
    for (std::uint32_t left = random() % 12; left > 0; --left) {
      const std::uint32_t first = known[random() % known.size()];
      const std::uint32_t second = known[random() % known.size()];
      known.push_back(next++);
      naive.rows.push_back({first, second, known.back()});
    }
    const auto model = model_of(naive);
    for (int i = 0; i < 12; ++i) {
      std::string word;
      for (std::size_t left = random() % (i == 0 ? 80 : 6) + 1; left > 0; --left) {
        word += kCharacters[random() % std::size(kCharacters)];
      }
      const Encoded result = alike(*model, naive, word);
      missing += result.missing;
      merged += !result.missing && result.symbols.size() < word.size() / 2;
    }
  }
  CHECK(missing > 1000 && merged > 1000);
}

void a_million_characters() {
  const NaiveCharBpe naive = char_bpe({{"a", 1}}, unknown(0, true), {{1, 1, 2}});
  const auto model = model_of(naive);
  CHECK(encoded(*model, std::string(1'000'000, 'a')).symbols.size() == 500'000);
  CHECK(encoded(*model, std::string(1'000'000, 'b')).symbols.size() == 1);
}

}  // namespace

int main() {
  worked();
  whole_words();
  a_byte_without_an_id();
  bytes_with_other_ids();
  random_bytes();
  prefix_and_suffix();
  unknown_ones();
  bytes_where_a_character_is_unknown();
  a_word_that_is_a_token();
  random_characters();
  a_million_characters();
}

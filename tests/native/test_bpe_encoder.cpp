// The encoder: the rules one by one, and an encoder that follows the definition word for word.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bpe_encoder.hpp"
#include "check.hpp"
#include "exact_copy.hpp"
#include "naive_encoder.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<MergeRow> merges;

  [[nodiscard]] std::uint32_t id(const std::string& token) const {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    CHECK(found != tokens.end());
    return static_cast<std::uint32_t>(found - tokens.begin());
  }
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// From merges of text: ids 0-255 are the bytes, each joined token the next.
Vocabulary vocabulary_of(const Pairs& pairs) {
  Vocabulary vocabulary;
  auto& tokens = vocabulary.tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const auto& [left, right] : pairs) {
    const std::string joined = left + right;
    if (std::find(tokens.begin(), tokens.end(), joined) == tokens.end()) tokens.push_back(joined);
    vocabulary.merges.push_back({vocabulary.id(left), vocabulary.id(right), vocabulary.id(joined)});
  }
  return vocabulary;
}

Ids all_byte_ids() {
  Ids ids;
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids.push_back(byte);
  return ids;
}

std::unique_ptr<BpeModel> model_of(const std::vector<MergeRow>& merges,
                                   const Ids& byte_ids = all_byte_ids(),
                                   const Specials& specials = {}) {
  return std::make_unique<BpeModel>(merges, std::span<const std::uint32_t, 256>(byte_ids),
                                    SpecialTokens(specials));
}

Ids encode(const BpeModel& model, std::string_view text, const Ids& allowed = {},
           std::size_t cache_bytes = 1 << 12) {
  BpeEncodingState state(cache_bytes);
  const ExactCopy copy(text);
  Ids ids;
  model.encode(copy.view(), allowed, state, ids);
  // The second time the words come out of the cache.
  Ids again = {77};
  model.encode(copy.view(), allowed, state, again);
  CHECK(again[0] == 77);
  again.erase(again.begin());
  CHECK(ids == again);
  return ids;
}

/// Tokens with blanks between.
std::string tokens_of(const Vocabulary& vocabulary, std::string_view text) {
  const auto model = model_of(vocabulary.merges);
  std::string tokens;
  for (const std::uint32_t id : encode(*model, text)) {
    tokens += (tokens.empty() ? "" : " ") + vocabulary.tokens[id];
  }
  return tokens;
}

/// Words of the five-word example.
void worked() {
  const Vocabulary vocabulary = vocabulary_of({{"u", "g"}, {"u", "n"}, {"h", "ug"}});
  CHECK(tokens_of(vocabulary, "bug") == "b ug");
  CHECK(tokens_of(vocabulary, "hug") == "hug");
  CHECK(tokens_of(vocabulary, "unhug") == "un hug");
  CHECK(tokens_of(vocabulary, "") == "");
}

void the_lowest_rank_first_then_the_leftmost() {
  CHECK(tokens_of(vocabulary_of({{"b", "c"}, {"a", "b"}}), "abc") == "a bc");
  CHECK(tokens_of(vocabulary_of({{"a", "b"}, {"b", "c"}}), "abc") == "ab c");
  CHECK(tokens_of(vocabulary_of({{"a", "a"}}), "aaa") == "aa a");
  CHECK(tokens_of(vocabulary_of({{"a", "a"}}), "aaaaa") == "aa aa a");
  // Applied in the order of the list these would give aa aa: no (aa, a) stands there at first.
  std::vector<MergeRow> rows = vocabulary_of({{"a", "a"}, {"aa", "a"}}).merges;
  std::swap(rows[0], rows[1]);
  CHECK(encode(*model_of(rows), "aaaa") == (Ids{257, 'a'}));
}

void a_pair_listed_twice_has_its_last_rank() {
  CHECK(tokens_of(vocabulary_of({{"a", "b"}, {"b", "c"}, {"a", "b"}}), "abc") == "a bc");
  // And what the last row makes of it.
  const std::vector<MergeRow> rows = {{'a', 'b', 300}, {'a', 'b', 301}};
  CHECK(encode(*model_of(rows), "ab") == (Ids{301}));
}

/// The words are those of the pattern: merges do not reach across.
void merges_stay_within_words() {
  const Vocabulary vocabulary = vocabulary_of({{"a", " "}, {" ", "a"}, {"a", "'"}});
  CHECK(tokens_of(vocabulary, "a a  a") == "a  a    a");
  CHECK(tokens_of(vocabulary, "a'b") == "a ' b");
}

void words_of_every_length_equal_the_definition() {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    // Rows of any ids: pairs listed twice, ids made in many ways, tokens that become each other.
    NaiveEncoder naive;
    naive.byte_ids = all_byte_ids();
    std::vector<std::uint32_t> known = {'a', 'b', 'c'};
    for (int i = 0; i < 25; ++i) {
      const auto any = [&] { return known[random() % known.size()]; };
      std::uint32_t joined = 256 + static_cast<std::uint32_t>(i);
      if (random() % 4 == 0) joined = any();
      naive.merges.push_back({any(), any(), joined});
      known.push_back(joined);
    }
    const auto model = model_of(naive.merges);
    // Short words live in a small array, longer ones in a heap: both sides of the border.
    for (std::size_t length = 1; length <= 130; length += length < 60 ? 1 : 17) {
      std::string word;
      for (std::size_t i = 0; i < length; ++i) word += static_cast<char>('a' + random() % 3);
      CHECK(encode(*model, word) == naive.encode(word, {}));
    }
  }
}

/// A quadratic encoder would need hours.
void a_million_letters() {
  Pairs pairs;
  for (std::string token = "a"; token.size() < 1024; token += token)
    pairs.emplace_back(token, token);
  const Vocabulary vocabulary = vocabulary_of(pairs);
  const auto model = model_of(vocabulary.merges);
  const Ids ids = encode(*model, std::string(1'000'000, 'a'));
  // 976 of 1024 letters; the 576 that are left are 512 and 64.
  CHECK(ids.size() == 976 + 2);
  CHECK(vocabulary.tokens[ids[975]].size() == 1024);
  CHECK(vocabulary.tokens[ids[976]].size() == 512);
  CHECK(vocabulary.tokens[ids[977]].size() == 64);
  CHECK(encode(*model, std::string(1'000'000, '^')).size() == 1'000'000);
}

/// Words of one key each, however alike; words of more than four ids; a cache of one slot.
void the_cache_tells_words_apart() {
  const Vocabulary vocabulary = vocabulary_of({{"a", "b"}, {"ab", "ab"}});
  const auto model = model_of(vocabulary.merges);
  std::string text;
  Ids expected;
  NaiveEncoder naive{vocabulary.merges, all_byte_ids(), {}};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t length = 1; length <= 20; ++length) {
      for (const char letter : {'a', 'b', 'q'}) {
        std::string word(length, letter);
        text += word + " ";
        word[length / 2] = 'b';
        text += word + "\n" + std::string(length, '\0') + "1";
      }
    }
  }
  for (const std::size_t cache_bytes : {0, 1, 100, 1 << 20}) {
    CHECK(encode(*model, text, {}, cache_bytes) == naive.encode(text, {}));
  }
}

/// More words than are held back at once.
void a_long_text() {
  std::mt19937 random(9);
  const Vocabulary vocabulary = vocabulary_of({{"a", "b"}, {" ", "a"}, {" a", "b"}, {"ab", "ab"}});
  NaiveEncoder naive{vocabulary.merges, all_byte_ids(), {}};
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ab \n1"[random() % 5];
  CHECK(encode(*model_of(vocabulary.merges), text) == naive.encode(text, {}));
}

std::size_t missing_at(const BpeModel& model, std::string_view text, const Ids& allowed = {}) {
  BpeEncodingState state(0);
  Ids ids;
  try {
    model.encode(text, allowed, state, ids);
  } catch (const MissingByte& missing) {
    return missing.offset;
  }
  return text.size();
}

void a_byte_without_an_id() {
  Ids byte_ids = all_byte_ids();
  byte_ids['z'] = BpeModel::kNoId;
  byte_ids[' '] = BpeModel::kNoId;
  const auto model = model_of(vocabulary_of({{"a", "b"}}).merges, byte_ids, {{"<s>", 500}});
  CHECK(missing_at(*model, "z") == 0);
  CHECK(missing_at(*model, "abz") == 2);
  CHECK(missing_at(*model, "ab1ab z") == 5);
  CHECK(missing_at(*model, "ab1abyz") == 6);
  CHECK(missing_at(*model, std::string(100, 'a') + "z") == 100);  // in a long word
  CHECK(missing_at(*model, "z<s>", {500}) == 0);
  CHECK(missing_at(*model, "<s>ab<s>bz", {500}) == 9);
  CHECK(missing_at(*model, "abab") == 4);  // none
  // A byte that is missing and whose id is in a merge: kNoId is no id.
  const std::vector<MergeRow> rows = {{'a', BpeModel::kNoId, 300}};
  CHECK(missing_at(*model_of(rows, byte_ids), "az") == 1);
}

/// Bytes may have any ids, and their merges follow.
void bytes_with_other_ids() {
  Ids byte_ids = all_byte_ids();
  std::reverse(byte_ids.begin(), byte_ids.end());
  const std::uint32_t a = 255 - 'a';
  const std::uint32_t b = 255 - 'b';
  const auto model = model_of({{a, b, 4'000'000'000}}, byte_ids);
  CHECK(encode(*model, "abba") == (Ids{4'000'000'000, b, a}));
}

void special_tokens() {
  const Specials specials = {{"<s>", 500}, {"<s>>", 501}, {"><", 502}};
  const Vocabulary vocabulary =
      vocabulary_of({{"a", "<"}, {"<", "s"}, {"s", ">"}, {">", ">"}, {"a", "b"}});
  const auto model = model_of(vocabulary.merges, all_byte_ids(), specials);
  const std::uint32_t lt_s = vocabulary.id("<s");
  const std::uint32_t s_gt = vocabulary.id("s>");
  CHECK(lt_s == 257 && s_gt == 258);
  // None allowed: plain text.
  CHECK(encode(*model, "<s>") == (Ids{'<', 's', '>'}));
  CHECK(encode(*model, "<s>", {500}) == (Ids{500}));
  CHECK(encode(*model, "a<s><s>b", {500}) == (Ids{'a', 500, 500, 'b'}));
  // The longest; if it is not allowed, the shorter one that it covers stays lost.
  CHECK(encode(*model, "<s>>", {500, 501}) == (Ids{501}));
  CHECK(encode(*model, "<s>>", {500}) == encode(*model, "<s>>"));
  // The leftmost: "><" begins later, inside.
  CHECK(encode(*model, "<s><", {500, 502}) == (Ids{500, '<'}));
  CHECK(encode(*model, "<s><", {502}) == encode(*model, "<s><"));
  CHECK(encode(*model, "<s>", {501, 502}) == encode(*model, "<s>"));
}

/// A disallowed one is joined with its neighbours: the words go across its borders.
void disallowed_special_tokens_are_plain_text() {
  const Specials specials = {{"cd", 500}, {" x", 501}};
  const Vocabulary vocabulary = vocabulary_of({{"b", "c"}, {"d", "e"}, {"bc", "de"}});
  const auto model = model_of(vocabulary.merges, all_byte_ids(), specials);
  const std::uint32_t bcde = vocabulary.id("bcde");
  CHECK(encode(*model, "bcde") == (Ids{bcde}));
  CHECK(encode(*model, "bcde", {501}) == (Ids{bcde}));
  CHECK(encode(*model, "bcde xbcde", {501}) == (Ids{bcde, 501, bcde}));
  CHECK(encode(*model, "bcde", {500}) == (Ids{'b', 500, 'e'}));
  // The pattern ends at an allowed one: two blanks before it are one word, as at a text's end.
  const Vocabulary blanks = vocabulary_of({{" ", " "}});
  const auto spaced = model_of(blanks.merges, all_byte_ids(), {{"<s>", 500}});
  CHECK(encode(*spaced, "  <s>", {500}) == (Ids{256, 500}));
  CHECK(encode(*spaced, "  <s>") == (Ids{' ', ' ', '<', 's', '>'}));
}

void random_texts_with_special_tokens() {
  std::mt19937 random(21);
  const Vocabulary vocabulary =
      vocabulary_of({{"a", "b"}, {"<", "a"}, {"ab", "a"}, {" ", "<"}, {"b", "<"}});
  const Specials specials = {{"<a", 500}, {"<ab", 501}, {"b<", 502}, {" ", 503}, {"<a<", 504}};
  const NaiveEncoder naive{vocabulary.merges, all_byte_ids(), specials};
  const auto model = model_of(vocabulary.merges, all_byte_ids(), specials);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint32_t i = random() % 20; i > 0; --i) text += "ab< "[random() % 4];
    Ids allowed;
    for (std::uint32_t id = 500; id <= 504; ++id) {
      if (random() % 2 == 0) allowed.push_back(id);
    }
    CHECK(encode(*model, text, allowed) == naive.encode(text, allowed));
  }
}

}  // namespace

int main() {
  worked();
  the_lowest_rank_first_then_the_leftmost();
  a_pair_listed_twice_has_its_last_rank();
  merges_stay_within_words();
  words_of_every_length_equal_the_definition();
  a_million_letters();
  the_cache_tells_words_apart();
  a_long_text();
  a_byte_without_an_id();
  bytes_with_other_ids();
  special_tokens();
  disallowed_special_tokens_are_plain_text();
  random_texts_with_special_tokens();
}

// Live merges: words from their characters become what all merges make of their bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/live_merges.hpp"
#include "exact_copy.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

using Rows = std::vector<MergeRow>;

Ids byte_ids() {
  Ids ids;
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids.push_back(byte);
  return ids;
}

std::optional<LiveMerges> live_of(const Rows& rows, const Ids& ids = byte_ids()) {
  return LiveMerges::of(rows, std::span<const std::uint32_t, 256>(ids));
}

Symbols naively(const Rows& rows, std::string_view word) {
  NaiveByteBpe naive;
  naive.byte_ids = byte_ids();
  naive.rows = rows;
  return naive.encode(std::string(word));
}

/// Whether the word is encoded, and then is right, with and without sizes.
bool encodes(const LiveMerges& live, const Rows& rows, std::string_view word) {
  const ExactCopy copy(word);
  ModelState state;
  if (!live.encode(copy.view(), true, state)) return false;
  Symbols symbols;
  for (std::size_t i = 0; i < state.ids.size(); ++i) {
    symbols.push_back({state.ids[i], state.sizes[i]});
  }
  CHECK(symbols == naively(rows, word));
  CHECK(live.encode(copy.view(), false, state) && state.ids == ids_of(symbols));
  return true;
}

void worked() {
  const Rows rows = {{'u', 'g', 256}, {'h', 256, 257}, {256, 's', 258}};
  const auto live = live_of(rows);
  CHECK(live.has_value() && !live->has_doubtful());
  for (const char* const word : {"hugs", "ugs", "hug", "u", "xhugsx", "\xC3", "a\xE4\xB8\xAD"}) {
    CHECK(encodes(*live, rows, word));
  }
  // "hugs" becomes h-ug-s, then hug-s; 258 is "ugs".
  CHECK((live->not_made({{"hug", 257}, {"ugs", 258}, {"u", 'u'}}) == TokenIds{}));
  CHECK((live->not_made({{"hug", 256}, {"hugs", 9}, {"", 'u'}}).size() == 3));
  // Of two equal words the first counts.
  CHECK((live->not_made({{"hug", 257}, {"hug", 9}}) == TokenIds{}));
  CHECK((live->not_made({{"hug", 9}, {"hug", 257}}) == TokenIds{{"hug", 9}}));
  Ids ids = byte_ids();
  ids['x'] = kNoId;
  ModelState state;
  CHECK(!live_of(rows, ids)->encode("hugx", false, state));
}

void what_must_be_merged_by_all_merges() {
  CHECK(!live_of({{'a', 'b', 256}, {'c', 'd', 256}}));  // one id for two texts
  CHECK(!live_of({{'a', 'b', 'c'}}));                   // a byte's id
  CHECK(!live_of({{'a', 'b', 256}, {'a', 'b', 257}}));  // a pair listed twice
  CHECK(!live_of({{'a', 'b', 4'000'000'000}}));
  Ids ids = byte_ids();
  ids['b'] = 'a';
  CHECK(!live_of({}, ids));  // one id for two bytes
  Rows doubling = {{'a', 'a', 256}};
  for (std::uint32_t id = 256; id < 300; ++id) doubling.push_back({id, id, id + 1});
  CHECK(!live_of(doubling));  // huge tokens
  // The second merge is listed before its part is made: it happens as soon as "bc" is there.
  const Rows rows = {{'x', 'y', 258}, {'a', 256, 257}, {'b', 'c', 256}};
  const auto live = live_of(rows);
  CHECK(live.has_value() && live->has_doubtful());
  CHECK(encodes(*live, rows, "xyab") && !encodes(*live, rows, "abc") &&
        !encodes(*live, rows, "bc"));
  CHECK((live->not_made({{"bc", 256}, {"xy", 258}}) == TokenIds{{"bc", 256}}));
  // The first merge is listed before its part is made, and makes a token of other bytes.
  const Rows other = {{'a', 300, 301}, {'c', 'd', 301}, {'b', 'b', 300}};
  const auto doubtful = live_of(other);
  CHECK(doubtful.has_value() && doubtful->has_doubtful());
  CHECK(encodes(*doubtful, other, "cdab") && !encodes(*doubtful, other, "abb"));
}

/// A character whose bytes are merged with their neighbors' first.
void ragged_characters() {
  const Rows rows = {{0xC3, 0xA9, 256}, {'x', 0xC3, 257}, {256, 'y', 258}, {'z', 256, 259}};
  const Rows first = {{'x', 0xC3, 257}, {0xC3, 0xA9, 256}, {256, 'y', 258}, {'z', 256, 259}};
  for (const Rows& merges : {rows, first}) {
    const auto live = live_of(merges);
    for (const char* const word :
         {"x\xC3\xA9y", "z\xC3\xA9y", "\xC3\xA9", "\xC3\xA9\xC3\xA9x\xC3"}) {
      CHECK(encodes(*live, merges, word));
    }
  }
}

/// Words that are merged part by part: tokens end at any byte of a part, some are longer than a
/// part, and one is longer than all parts that are merged at once.
void long_words() {
  Rows rows = {{'b', 'c', 300}, {'c', 'a', 301}, {'a', 'b', 302}};
  std::uint32_t last = 'a';
  for (std::uint32_t id = 303; id < 312; ++id) {
    rows.push_back({last, last, id});
    last = id;
  }
  const auto live = live_of(rows);
  CHECK(live.has_value());
  for (const std::size_t size : {63, 64, 65, 95, 96, 97, 129, 300, 700}) {
    CHECK(encodes(*live, rows, std::string(size, 'a')));
    CHECK(encodes(*live, rows, "b" + std::string(size, 'a') + "bc"));
    std::string word;
    while (word.size() < size) word += "aabca";
    CHECK(encodes(*live, rows, word));
    word[size / 2] = '\xC3';
    CHECK(encodes(*live, rows, word));
  }
  Ids ids = byte_ids();
  ids['x'] = kNoId;
  ModelState state;
  CHECK(!live_of(rows, ids)->encode(std::string(100, 'a') + "x", false, state));
}

const std::string kAlphabet = "abc\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";

std::string random_word(std::mt19937& random, std::size_t most) {
  static const std::vector<std::string> parts = {
      "a", "b", "c", "\xC3\xA9", "\xE4\xB8\xAD", "\xE4\xB8\xB8", "\xF0\x9F\x98\x80"};
  std::string word;
  for (std::size_t left = random() % most + 1; left > 0; --left) {
    word += random() % 10 == 0 ? std::string(1, kAlphabet[random() % kAlphabet.size()])
                               : parts[random() % parts.size()];
  }
  return word;
}

/// Fills `rows`, and returns their tokens. Each new token is made of two known ones; in `kind` 1
/// some merges make a known token or use one that is made later; in `kind` 2 all pairs that make a
/// token, in the order of the tokens, which is any.
Vocabulary random_merges(std::mt19937& random, int kind, Rows& rows) {
  Ids known;
  for (const char byte : kAlphabet) known.push_back(static_cast<unsigned char>(byte));
  Vocabulary ids;
  std::vector<std::string> texts(256);
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    texts[byte] = static_cast<char>(byte);
    ids[texts[byte]] = byte;
  }
  for (std::uint32_t left = random() % 30; left > 0; --left) {
    const std::uint32_t a = known[random() % known.size()];
    const std::uint32_t b = known[random() % known.size()];
    const std::string text = texts[a] + texts[b];
    if (ids.contains(text) || text.size() > 40) continue;
    ids[text] = static_cast<std::uint32_t>(texts.size());
    known.push_back(static_cast<std::uint32_t>(texts.size()));
    rows.push_back({a, b, known.back()});
    texts.push_back(text);
  }
  if (kind == 1 && rows.size() > 2) std::swap(rows[random() % rows.size()], rows.back());
  if (kind == 2) {
    std::vector<std::uint32_t> order(known.begin() + static_cast<std::ptrdiff_t>(kAlphabet.size()),
                                     known.end());
    if (random() % 2 == 0) {
      std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return texts[a].size() < texts[b].size();
      });
    } else if (order.size() > 1) {
      std::swap(order[random() % order.size()], order.back());
    }
    rows.clear();
    for (const std::uint32_t id : order) {
      for (std::size_t cut = 1; cut < texts[id].size(); ++cut) {
        const auto left = ids.find(texts[id].substr(0, cut));
        const auto right = ids.find(texts[id].substr(cut));
        if (left != ids.end() && right != ids.end())
          rows.push_back({left->second, right->second, id});
      }
    }
  }
  return ids;
}

void any_merges_and_words() {
  std::mt19937 random(3);
  std::size_t encoded = 0;
  std::size_t left = 0;
  for (int round = 0; round < 450; ++round) {
    Rows rows;
    const Vocabulary tokens = random_merges(random, round % 3, rows);
    const auto live = live_of(rows);
    if (!live) continue;
    CHECK(round % 3 != 0 || !live->has_doubtful());
    for (int i = 0; i < 15; ++i) {
      const bool done = encodes(*live, rows, random_word(random, i < 3 ? 80 : 12));
      CHECK(done || live->has_doubtful());
      (done ? encoded : left) += 1;
    }
    // Tokens that their bytes become, and some more if merges are doubtful.
    for (const auto& [token, id] : tokens) {
      const bool found = live->not_made({{token, id}}).empty();
      const bool sound = ids_of(naively(rows, token)) == Ids{id};
      CHECK(found == sound || (sound && live->has_doubtful()));
    }
  }
  CHECK(encoded > 3'000 && left > 20);
}

}  // namespace

int main() {
  worked();
  what_must_be_merged_by_all_merges();
  ragged_characters();
  long_words();
  any_merges_and_words();
}

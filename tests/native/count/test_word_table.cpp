// The word table: what it counts, where words stood first, and that only its contents decide what
// comes out.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "count/word_table.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

using Counts = std::map<std::string, std::int64_t>;
using Places = std::map<std::string, WordPosition>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void add(WordTable& table, std::string_view word, std::int64_t count = 1, WordPosition place = {}) {
  const ExactCopy copy(word);
  table.add(copy.view(), count, place, copy.view().size());
}

Pipeline gpt2(std::vector<AddedToken> added = {}) {
  std::vector<std::unique_ptr<PreTokenizerStep>> steps;
  steps.push_back(std::make_unique<ScanStep>("gpt2"));
  return {AddedTokens(std::move(added)), AddedTokens(), nullptr, std::move(steps)};
}

std::uint64_t add_text(WordTable& table, std::string_view text, std::uint64_t document = 0,
                       const Pipeline& pipeline = gpt2(),
                       const std::vector<std::uint32_t>& allowed = {}) {
  const ExactCopy copy(text);
  return table.add_text(copy.view(), pipeline, allowed, document);
}

std::string word_of(const WordColumns& columns, std::size_t i) {
  const auto begin = static_cast<std::size_t>(columns.offsets[i]);
  return columns.bytes.substr(begin, static_cast<std::size_t>(columns.offsets[i + 1]) - begin);
}

/// A table's words, and a check of everything else that holds of its columns.
Counts counts_of(const WordTable& table, std::uint32_t partitions = 1) {
  Counts counts;
  const std::vector<WordColumns> parts = table.split(partitions);
  CHECK(parts.size() == partitions);
  for (std::uint32_t p = 0; p < partitions; ++p) {
    const WordColumns& part = parts[p];
    const std::size_t words = part.counts.size();
    CHECK(part.offsets.size() == words + 1);
    CHECK(part.offsets.front() == 0);
    CHECK(part.offsets.back() == static_cast<std::int64_t>(part.bytes.size()));
    CHECK(part.documents.size() == (table.with_places() ? words : 0));
    CHECK(part.words.size() == part.documents.size());
    for (std::size_t i = 0; i < words; ++i) {
      CHECK(i == 0 || word_of(part, i - 1) < word_of(part, i));
      CHECK(partition_of(word_of(part, i), partitions) == p);
      CHECK(counts.emplace(word_of(part, i), part.counts[i]).second);
    }
  }
  CHECK(counts.size() == table.size());
  return counts;
}

Places places_of(const WordTable& table) {
  const WordColumns all = table.split(1)[0];
  Places places;
  for (std::size_t i = 0; i < all.counts.size(); ++i) {
    places[word_of(all, i)] = WordPosition{all.documents[i], all.words[i]};
  }
  return places;
}

bool equal(const WordColumns& a, const WordColumns& b) {
  return a.offsets == b.offsets && a.bytes == b.bytes && a.counts == b.counts &&
         a.documents == b.documents && a.words == b.words;
}

void an_empty_table() {
  const WordTable table;
  CHECK(table.size() == 0);
  CHECK(counts_of(table, 3).empty());
}

/// Words of 1 to 40 bytes, those beyond 15 in the arena; of each length some that differ in one
/// byte only.
void words_of_every_length() {
  WordTable table;
  Counts expected;
  for (int round = 1; round <= 2; ++round) {
    for (std::size_t size = 1; size <= 40; ++size) {
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        for (const char byte : {'\0', 'b', '\xFF'}) {
          std::string word(size, 'a');
          word[at] = byte;
          add(table, word, round);
          expected[word] += round;
        }
      }
    }
    CHECK(counts_of(table) == expected);
  }
}

void words_that_differ_in_zeros() {
  WordTable table;
  Counts expected;
  for (std::size_t size = 1; size <= 20; ++size) {
    add(table, std::string(size, '\0'), static_cast<std::int64_t>(size));
    expected[std::string(size, '\0')] = static_cast<std::int64_t>(size);
  }
  CHECK(counts_of(table, 5) == expected);
}

/// What may be read after a word does not count.
void short_words_inside_a_text() {
  WordTable table;
  const std::string text = "wordfollowed by something longer than sixteen bytes";
  table.add(std::string_view(text).substr(0, 4), 2, {}, text.size());
  add(table, "word", 3);
  CHECK(counts_of(table) == (Counts{{"word", 5}}));
}

void a_very_long_word() {
  WordTable table;
  const std::string word(3'000'000, 'x');
  add(table, word);
  add(table, word + "y");
  add(table, word);
  CHECK(counts_of(table) == (Counts{{word, 2}, {word + "y", 1}}));
}

void grows() {
  WordTable table(true);
  Counts expected;
  for (std::uint64_t i = 0; i < 50000; ++i) {
    // Every third one long; all twice.
    const std::string word =
        "w" + std::to_string(i * 7919 % 25000) + (i % 3 == 0 ? "-a-long-word-a-long-word" : "");
    add(table, word, 1, WordPosition{i, 1});
    ++expected[word];
  }
  CHECK(counts_of(table, 7) == expected);
  for (const auto& [word, place] : places_of(table)) CHECK(place.document < 50000);
}

/// 24 bytes a slot (40 with places), between 5/16 and 5/8 full, and the arena.
void memory_is_what_it_says() {
  for (const bool with_places : {false, true}) {
    WordTable table(with_places);
    const std::size_t empty = table.memory_bytes();
    CHECK(empty >= 1024 * 24);
    for (int i = 0; i < 20000; ++i) add(table, std::to_string(i));
    const std::size_t slot = with_places ? 40 : 24;
    CHECK(table.memory_bytes() >= 20000 * slot * 8 / 5);
    CHECK(table.memory_bytes() <= 20000 * slot * 16 / 5 + 1024);
    const std::size_t before = table.memory_bytes();
    add(table, std::string(1'000'000, 'x'));
    CHECK(table.memory_bytes() >= before + 990'000);
  }
}

/// Who flushes a table when it is too large must find it small afterwards.
void clear_gives_the_memory_back() {
  for (const bool with_places : {false, true}) {
    WordTable table(with_places);
    const std::size_t empty = table.memory_bytes();
    for (int i = 0; i < 5000; ++i) {
      add(table, std::to_string(i) + "-a-long-word-a-long-word", 1, WordPosition{5, 5});
      add(table, std::to_string(i));
    }
    table.clear();
    CHECK(table.size() == 0);
    CHECK(counts_of(table).empty());
    CHECK(table.memory_bytes() == empty);
    add(table, "a", 3, WordPosition{9, 9});
    CHECK(counts_of(table) == (Counts{{"a", 3}}));
    if (with_places) CHECK(places_of(table) == (Places{{"a", {9, 9}}}));
  }
}

void texts() {
  WordTable table;
  CHECK(add_text(table, "") == 0);
  CHECK(add_text(table, "it's  it, it") == 6);
  CHECK(counts_of(table) == (Counts{{"it", 1}, {"'s", 1}, {" ", 1}, {" it", 2}, {",", 1}}));
  CHECK(add_text(table, "\xFF\xFF") == 1);
  CHECK(counts_of(table)["\xFF\xFF"] == 1);
}

/// More words at once than are held back, and growth between them.
void a_text_of_many_words() {
  WordTable table(true);
  std::string text;
  Counts expected;
  Places places;
  std::uint64_t words = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string word =
        " w" + std::string(static_cast<std::size_t>(i % 23), static_cast<char>('a' + i / 23 % 26)) +
        std::string(1, static_cast<char>('a' + i / 598 % 26));
    text += word;
    ++expected[word];
    places.try_emplace(word, WordPosition{4, words});
    ++words;
  }
  CHECK(add_text(table, text, 4) == words);
  CHECK(counts_of(table) == expected);
  CHECK(places_of(table) == places);
}

void added_tokens_are_cut_out() {
  const Pipeline pipeline =
      gpt2({{"<s>", 0}, {"<s>>", 1}, {.content = "x", .id = 2, .special = false}});
  WordTable table(true);
  // The words before an added token are scanned as if the text ended there.
  CHECK(add_text(table, "a  <s>'s<s>>> <s><s>x", 7, pipeline, {0, 1}) == 5);
  CHECK(counts_of(table) == (Counts{{"a", 1}, {"  ", 1}, {"'s", 1}, {">", 1}, {" ", 1}}));
  CHECK(places_of(table) ==
        (Places{{"a", {7, 0}}, {"  ", {7, 1}}, {"'s", {7, 2}}, {">", {7, 3}}, {" ", {7, 4}}}));
  WordTable only;
  CHECK(add_text(only, "<s><s>>x", 0, pipeline, {0, 1}) == 0);
  CHECK(only.size() == 0);
  CHECK(add_text(only, "<s>x", 0, pipeline) == 3);  // not allowed: "<", "s", ">"
}

/// A document with more words than fit: the table is emptied on the way, and none is lost.
void a_text_beyond_the_limit() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += " w" + std::to_string(i % 40'000);
  const ExactCopy copy(text);
  for (const bool with_places : {false, true}) {
    WordTable whole(with_places);
    CHECK(whole.add_text(copy.view(), gpt2(), {}, 3) == 50'000 * 2);
    WordTable table(with_places);
    WordTable gathered(with_places);
    constexpr std::size_t kLimit = 200'000;
    int emptied = 0;
    const auto on_full = [&] {
      CHECK(table.size() > 0);
      CHECK(table.memory_bytes() <= kLimit);
      gathered.add_table(table);
      table.clear();
      ++emptied;
    };
    CHECK(table.add_text(copy.view(), gpt2(), {}, 3, kLimit, on_full) == 50'000 * 2);
    CHECK(emptied > 5);
    CHECK(table.memory_bytes() <= kLimit);
    gathered.add_table(table);
    CHECK(counts_of(gathered) == counts_of(whole));
    CHECK(gathered.split(1)[0].words == whole.split(1)[0].words);
  }
}

/// Words are those of the pipeline, and keep their places in the document through all its parts.
void texts_that_a_pipeline_changes() {
  std::vector<std::unique_ptr<PreTokenizerStep>> steps;
  steps.push_back(std::make_unique<ScanStep>("whitespace_split"));
  steps.push_back(std::make_unique<PrependStep>("_", true));
  std::vector<AddedToken> added = {{.content = "c", .id = 1, .special = false}};
  const Pipeline pipeline(AddedTokens(), AddedTokens(std::move(added)),
                          std::make_unique<Lowercase>(), std::move(steps));
  WordTable table(true);
  CHECK(add_text(table, "A BCA a", 3, pipeline) == 4);
  CHECK(counts_of(table) == (Counts{{"_a", 1}, {"b", 1}, {"a", 2}}));
  CHECK(places_of(table) == (Places{{"_a", {3, 0}}, {"b", {3, 1}}, {"a", {3, 2}}}));
}

/// The document first, then the word in it; the order of adding does not matter.
void places_are_the_earliest() {
  const WordPosition nine{9, 0}, five_two{5, 2}, five_one{5, 1};
  std::vector<WordPosition> order = {nine, five_two, five_one};
  std::sort(order.begin(), order.end());
  do {
    for (const std::string_view word : {"short", "a word of more than fifteen bytes"}) {
      WordTable table(true);
      for (const WordPosition& place : order) add(table, word, 1, place);
      CHECK(places_of(table).begin()->second == five_one);
      CHECK(table.split(1)[0].counts[0] == 3);
    }
  } while (std::next_permutation(order.begin(), order.end()));

  WordTable texts(true);
  add_text(texts, "b a", 8);
  add_text(texts, "x a b", 3);
  add_text(texts, "b b", 8);
  CHECK(places_of(texts) == (Places{{"b", {8, 0}}, {" a", {3, 1}}, {"x", {3, 0}}, {" b", {3, 2}}}));
}

void add_table_adds() {
  for (const bool with_places : {false, true}) {
    WordTable a(with_places);
    WordTable b(with_places);
    const std::string long_word(100, 'l');
    add(a, "both", 2, WordPosition{3, 3});
    add(a, "a", 1, WordPosition{1, 1});
    add(b, "both", 5, WordPosition{2, 9});
    add(b, "b", kMost, WordPosition{7, 0});
    add(b, long_word, 4, WordPosition{8, 0});
    a.add_table(b);
    a.add_table(WordTable(with_places));
    CHECK(counts_of(a) == (Counts{{"both", 7}, {"a", 1}, {"b", kMost}, {long_word, 4}}));
    CHECK(counts_of(b) == (Counts{{"both", 5}, {"b", kMost}, {long_word, 4}}));
    if (with_places) {
      CHECK(places_of(a) ==
            (Places{{"both", {2, 9}}, {"a", {1, 1}}, {"b", {7, 0}}, {long_word, {8, 0}}}));
    }
  }
}

/// The words arrive in the order of the other table's slots, while this one grows.
void add_table_of_a_large_one() {
  WordTable from;
  WordTable into;
  char word[16];
  for (int i = 0; i < 300'000; ++i) {
    std::snprintf(word, sizeof word, "w%d", i);
    from.add(word, 1, {}, std::string_view(word).size());
    std::snprintf(word, sizeof word, "v%d", i);
    into.add(word, 1, {}, std::string_view(word).size());
  }
  into.add_table(from);
  into.add_table(from);
  CHECK(into.size() == 600'000);
  const WordColumns all = into.split(1)[0];
  for (std::size_t i = 0; i < all.counts.size(); ++i) {
    CHECK(all.counts[i] == (all.bytes[static_cast<std::size_t>(all.offsets[i])] == 'w' ? 2 : 1));
  }
}

/// Equal contents give equal columns, in whatever order and pieces they came.
void split_depends_on_the_contents_alone() {
  std::mt19937_64 random(1);
  std::vector<std::pair<std::string, WordPosition>> entries;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    std::string word = "w" + std::to_string(random() % 1500);
    if (i % 4 == 0) word += " with more than fifteen bytes";
    entries.emplace_back(word, WordPosition{random() % 50, random() % 50});
  }
  for (const std::uint32_t partitions : {1U, 2U, 32U, 5000U}) {
    std::vector<WordColumns> first;
    for (int round = 0; round < 3; ++round) {
      std::shuffle(entries.begin(), entries.end(), random);
      WordTable whole(true);
      WordTable pieces(true);
      for (const auto& [word, place] : entries) {
        add(whole, word, 3, place);
        WordTable piece(true);
        add(piece, word, 3, place);
        if (random() % 8 == 0) {
          pieces.add_table(piece);
        } else {
          add(pieces, word, 3, place);
        }
      }
      const auto columns = whole.split(partitions);
      const auto other = pieces.split(partitions);
      if (round == 0) first = columns;
      CHECK(columns.size() == partitions);
      for (std::uint32_t p = 0; p < partitions; ++p) {
        CHECK(equal(columns[p], first[p]));
        CHECK(equal(other[p], first[p]));
      }
    }
  }
}

/// By unsigned bytes, a prefix before what it begins.
void split_sorts_by_bytes() {
  WordTable table;
  const std::vector<std::string> sorted = {std::string("\0", 1),
                                           std::string("\0\0", 2),
                                           "a",
                                           std::string("a\0", 2),
                                           "aaaaaaaa",
                                           "aaaaaaaaa",
                                           "aaaaaaab",
                                           "z",
                                           "zzzzzzzzzzzzzzzz",
                                           "zzzzzzzzzzzzzzzzz",
                                           "\x80",
                                           "é",
                                           "\xFF"};
  for (auto word = sorted.rbegin(); word != sorted.rend(); ++word) add(table, *word);
  const WordColumns columns = table.split(1)[0];
  for (std::size_t i = 0; i < sorted.size(); ++i) CHECK(word_of(columns, i) == sorted[i]);
}

void unsorted_has_all_words() {
  WordTable table;
  CHECK(table.unsorted().offsets == std::vector<std::int64_t>{0});
  Counts expected;
  std::mt19937 random(5);
  for (int i = 0; i < 5'000; ++i) {
    const std::string word(1 + random() % 40, static_cast<char>('a' + random() % 26));
    const std::int64_t count = 1 + random() % 9;
    add(table, word, count);
    expected[word] += count;
  }
  const WordColumns found = table.unsorted();
  Counts all;
  for (std::size_t i = 0; i + 1 < found.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(found.offsets[i]);
    const auto size = static_cast<std::size_t>(found.offsets[i + 1]) - begin;
    all[found.bytes.substr(begin, size)] = found.counts[i];
  }
  CHECK(all == expected && found.counts.size() == expected.size());
  CHECK(found.documents.empty() && found.words.empty());
}

void counts_have_64_bits() {
  WordTable table;
  add(table, "a", (std::int64_t{1} << 31) - 1);
  add(table, "a", 2);
  add(table, "b", std::int64_t{1} << 53);
  add(table, "b", 1);
  add(table, "c", kMost - 1);
  add(table, "c", 1);
  CHECK(counts_of(table) ==
        (Counts{
            {"a", (std::int64_t{1} << 31) + 1}, {"b", (std::int64_t{1} << 53) + 1}, {"c", kMost}}));
}

/// And what was counted before stays as it was.
void counts_beyond_64_bits_are_refused() {
  for (const std::string_view word : {"a", "a word of more than fifteen bytes"}) {
    WordTable table;
    WordTable other;
    add(table, word, kMost);
    add(other, word, 1);
    CHECK_THROWS(std::overflow_error, (add(table, word, 1), 0));
    CHECK_THROWS(std::overflow_error, (table.add_table(other), 0));
    CHECK(counts_of(table) == (Counts{{std::string(word), kMost}}));
  }
}

void what_no_table_takes() {
  WordTable table;
  CHECK_THROWS(std::invalid_argument, (add(table, "", 1), 0));
  CHECK_THROWS(std::invalid_argument, (add(table, "a", 0), 0));
  CHECK_THROWS(std::invalid_argument, (add(table, "a", -1), 0));
  CHECK_THROWS(std::invalid_argument, table.split(0));
  CHECK(table.size() == 0);
}

}  // namespace

int main() {
  an_empty_table();
  words_of_every_length();
  words_that_differ_in_zeros();
  short_words_inside_a_text();
  a_very_long_word();
  grows();
  memory_is_what_it_says();
  clear_gives_the_memory_back();
  texts();
  a_text_of_many_words();
  added_tokens_are_cut_out();
  a_text_beyond_the_limit();
  texts_that_a_pipeline_changes();
  places_are_the_earliest();
  add_table_adds();
  add_table_of_a_large_one();
  split_depends_on_the_contents_alone();
  split_sorts_by_bytes();
  unsorted_has_all_words();
  counts_have_64_bits();
  counts_beyond_64_bits_are_refused();
  what_no_table_takes();
}

// How often ids occur, by row, and in counted words.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "count/id_counts.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;
using Longs = std::vector<std::int64_t>;

void counts_by_row() {
  const Ids ids{0, 2, 2, 1, 2};
  const Longs offsets{0, 2, 2, 5};  // the second document has no id
  Longs table(6);
  add_id_counts(ids, offsets, Ids{1, 0, 1}, table, 3);
  CHECK(table == Longs{0, 0, 0, 1, 1, 3});
  add_id_counts(ids, offsets, {}, table, 3);
  CHECK(table == Longs{1, 1, 3, 1, 1, 3});
}

void counts_only_the_ids_of_documents() {
  Longs table(4);
  add_id_counts(Ids{3, 1, 0, 3}, Longs{1, 3}, {}, table, 4);
  CHECK(table == Longs{1, 1, 0, 0});
}

void refuses_what_the_table_lacks() {
  Longs table(4);
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{2}, Longs{0, 1}, {}, table, 2), 0));
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{1}, Longs{0, 1}, Ids{2}, table, 2), 0));
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{0}, Longs{0, 1}, {}, {}, 0), 0));
}

void agrees_with_one_id_at_a_time() {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::size_t columns = 1 + random() % 9, height = 1 + random() % 4;
    Ids ids, rows;
    Longs offsets{0}, table(columns * height), expected(columns * height);
    for (std::size_t d = random() % 12; d > 0; --d) {
      rows.push_back(static_cast<std::uint32_t>(random() % height));
      for (std::size_t i = random() % 7; i > 0; --i) {
        ids.push_back(static_cast<std::uint32_t>(random() % columns));
        ++expected[rows.back() * columns + ids.back()];
      }
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
    }
    add_id_counts(ids, offsets, rows, table, columns);
    CHECK(table == expected);
  }
}

void counts_tokens_of_words() {
  using Counts = std::vector<std::uint64_t>;
  const std::vector<std::string_view> words{"ab", "\xC3\xA9", "c", "?"};
  const Ids ids{10, 11, 11, 10, 12};
  const Longs ends{0, 2, 3, 4, 5}, times{3, 5, 7, 2};
  const auto text_at = [&](std::size_t i) { return words[i]; };
  const auto token_of = [](std::uint32_t id) { return std::size_t{id - 10}; };
  Counts tokens{0, 1, 0}, whole(3);
  const WordAmounts found = add_word_tokens(text_at, ids, ends, times, token_of, 2, tokens, whole);
  CHECK(found.words == 17 && found.continued == 3);
  CHECK(found.bytes == 3 * 2 + 5 * 2 + 7 + 2 && found.characters == 3 * 2 + 5 + 7 + 2);
  CHECK(found.bound == 3 * 5 + 5 * 4 + 7 * 3 + 2 * 3);
  CHECK((tokens == Counts{10, 9, 2} && whole == Counts{7, 5, 0}));
  add_word_tokens(text_at, ids, ends, times, token_of, SIZE_MAX, {}, whole);
  CHECK((whole == Counts{14, 10, 2}));
  const auto outside = [](std::uint32_t) { return std::size_t{3}; };
  CHECK_THROWS(std::invalid_argument,
               (add_word_tokens(text_at, ids, ends, times, outside, 0, tokens, whole), 0));
}

void counts_words_that_are_one_token() {
  using Counts = std::vector<std::uint64_t>;
  const std::vector<std::string_view> words{"ab", "\xC3\xA9", "c", "ab"};
  const auto text_at = [&](std::size_t i) { return words[i]; };
  const auto token_of = [](std::string_view text) {
    return text == "c" ? SIZE_MAX : text == "ab" ? std::size_t{1} : std::size_t{0};
  };
  Counts whole{0, 1};
  const WordAmounts found = add_whole_words(text_at, Longs{3, 5, 7, 2}, token_of, whole);
  CHECK(found.words == 17 && found.continued == 7);
  CHECK(found.bytes == 5 * 2 + 5 * 2 + 7 && found.characters == 5 * 2 + 5 + 7);
  CHECK(found.bound == 3 * 3 + 5 * 3 + 7 * 2 + 2 * 3);
  CHECK((whole == Counts{5, 6}));
  const auto outside = [](std::string_view) { return std::size_t{2}; };
  CHECK_THROWS(std::invalid_argument, (add_whole_words(text_at, Longs{1}, outside, whole), 0));
}

void adds_the_times_that_tokens_were_made() {
  // 0 and 1 make 2; 2 and 2 make 3; 3 and 1 make 4.
  const Longs merges{0, 1, 2, 2, 2, 3, 3, 1, 4};
  Longs made{5, 6, 7, 10, 100};
  CHECK(add_times_made(merges, made));
  CHECK((made == Longs{5 + 227, 6 + 227 + 100, 7 + 2 * 110, 110, 100}));
  Longs most{INT64_MAX, 0, 1, 0, 0};
  CHECK(!add_times_made(merges, most));
  CHECK_THROWS(std::invalid_argument, (add_times_made(Longs{0, 1, 5}, made), 0));
  CHECK_THROWS(std::invalid_argument, (add_times_made(Longs{-1, 1, 2}, made), 0));
}

}  // namespace

int main() {
  adds_the_times_that_tokens_were_made();
  counts_words_that_are_one_token();
  counts_tokens_of_words();
  counts_by_row();
  counts_only_the_ids_of_documents();
  refuses_what_the_table_lacks();
  agrees_with_one_id_at_a_time();
}

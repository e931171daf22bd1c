// Packed words: every length of a symbol, and what is none.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "count/packed_words.hpp"
#include "exact_copy.hpp"
#include "naive_rounds.hpp"

using namespace bpe_beam;
using namespace std::string_view_literals;

namespace {

std::string packed_symbol(std::uint32_t symbol) {
  char bytes[kMaxPackedBytes];
  return {bytes, write_symbol(symbol, bytes)};
}

/// What a word is; throws if it is none.
Ids symbols_in(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::vector<std::int64_t> offsets = {0, static_cast<std::int64_t>(bytes.size())};
  Ids symbols;
  unpack_word({copy.view(), offsets, {}}, 0, symbols);
  return symbols;
}

void seven_bits_a_byte_the_low_ones_first() {
  CHECK(packed_symbol(0) == "\0"sv);
  CHECK(packed_symbol(127) == "\x7F");
  CHECK(packed_symbol(128) == "\x80\x01");
  CHECK(packed_symbol(300) == "\xAC\x02");
  CHECK(packed_symbol(16383) == "\xFF\x7F");
  CHECK(packed_symbol(16384) == "\x80\x80\x01");
  CHECK(packed_symbol(0xFFFFFFFF) == "\xFF\xFF\xFF\xFF\x0F");
}

void reads_what_it_writes() {
  for (int bit = 0; bit < 32; ++bit) {
    const std::uint32_t power = std::uint32_t{1} << bit;
    for (const std::uint32_t symbol : {power - 1, power, power + 1}) {
      CHECK(symbols_in(packed_symbol(symbol)) == (Ids{symbol}));
    }
  }
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    CountedWords words;
    for (std::size_t i = random() % 6; i > 0; --i) {
      Ids symbols;
      for (std::size_t left = random() % 20; left > 0; --left) {
        symbols.push_back(static_cast<std::uint32_t>(random()) >> (random() % 32));
      }
      words.push_back({symbols, static_cast<std::int64_t>(random()) + 1});
    }
    CHECK(unpacked(packed(words)) == words);
  }
}

void more_bytes_than_needed_are_read() {
  CHECK(symbols_in("\x81\x80\x00"sv) == (Ids{1}));
  CHECK(symbols_in("\x81\x80\x80\x80\x00\x05"sv) == (Ids{1, 5}));
  CHECK(symbols_in("") == Ids{});
}

void what_is_no_symbol_is_refused() {
  for (const std::string_view bytes :
       {"\x80"sv, "a\xFF\xFF"sv, "\xFF\xFF\xFF\xFF"sv, "\xFF\xFF\xFF\xFF\x1F"sv,
        "\x80\x80\x80\x80\x80\x00"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"sv}) {
    CHECK_THROWS(std::invalid_argument, symbols_in(bytes));
  }
}

void words_of_a_part_of_the_data() {
  const std::vector<std::int64_t> offsets = {1, 3, 3, 4};
  const PackedWords words{"abcdef", offsets, {}};
  CHECK(words.size() == 3 && words.bytes() == 3);
  Ids symbols;
  for (std::size_t word = 0; word < words.size(); ++word) unpack_word(words, word, symbols);
  CHECK(symbols == (Ids{'b', 'c', 'd'}));
}

void the_word_is_named() {
  const std::vector<std::int64_t> offsets = {0, 1, 2, 3};
  Ids symbols;
  try {
    // A symbol does not go on in the next word.
    unpack_word({"a\x80\x01", offsets, {}}, 1, symbols);
    CHECK(false);
  } catch (const std::invalid_argument& error) {
    CHECK(std::string_view(error.what()).starts_with("word 1 is not a packed word"));
  }
  CHECK_THROWS(std::invalid_argument, (check_count(0, 3), 0));
  CHECK_THROWS(std::invalid_argument, (check_count(-5, 3), 0));
  check_count(1, 3);
}

}  // namespace

int main() {
  seven_bits_a_byte_the_low_ones_first();
  reads_what_it_writes();
  more_bytes_than_needed_are_read();
  what_is_no_symbol_is_refused();
  words_of_a_part_of_the_data();
  the_word_is_named();
}

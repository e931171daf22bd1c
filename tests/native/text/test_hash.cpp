// The hashes: every byte counts, nothing past the end is read, and the fixed one never changes.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/hash.hpp"

using namespace bpe_beam;

namespace {

void loads_up_to_eight_bytes() {
  const std::string bytes = "\x01\x82\x03\x84\x05\x86\x07\x88";
  for (std::size_t size = 0; size <= 8; ++size) {
    const ExactCopy copy(std::string_view(bytes).substr(0, size));
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
      expected |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    CHECK(load_up_to_8(copy.view().data(), size) == expected);
  }
}

/// Lengths around every border of the loops: 0, 7/8, 15/16/17, 32/33 and more.
void every_byte_and_the_length_count() {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x123456789ABCDEF}}) {
    std::set<std::uint64_t> seen;
    std::size_t words = 0;
    for (std::size_t size = 0; size <= 50; ++size) {
      const std::string zeros(size, '\0');
      seen.insert(hash_bytes(ExactCopy(zeros).view(), seed));
      ++words;
      for (std::size_t i = 0; i < size; ++i) {
        for (const char byte : {'\x01', '\x80', 'a'}) {
          std::string changed = zeros;
          changed[i] = byte;
          seen.insert(hash_bytes(ExactCopy(changed).view(), seed));
          ++words;
        }
      }
    }
    CHECK(seen.size() == words);
  }
}

void the_seed_counts() {
  for (const std::string_view word : {"", "a", "eightby", "eightbyt", "sixteen bytes!!!", "more"}) {
    CHECK(hash_bytes(word, 1) != hash_bytes(word, 2));
  }
}

void the_process_seed_stays() { CHECK(process_seed() == process_seed()); }

/// Counts that were written once are added years later: these numbers may never change.
void the_fixed_hash_is_the_same_for_ever() {
  struct Golden {
    std::string word;
    std::uint64_t hash;
    std::uint32_t of_32;
    std::uint32_t of_1000;
  };
  const std::vector<Golden> golden = {
      {std::string("", 0), 0xE043F6651943F65B, 28, 876},
      {std::string("a", 1), 0x3ACCA73B5AAF09AF, 7, 229},
      {std::string(" the", 4), 0xD16AC00BF04AD9C3, 26, 818},
      {std::string("Hello!!", 7), 0x21A2E5DF48BC342E, 4, 131},
      {std::string(" letter8", 8), 0x65F68BD014CA293E, 12, 398},
      {std::string("ninebytes", 9), 0x321958FC3F922234, 6, 195},
      {std::string("na\303\257ve \342\200\223 \350\252\236", 14), 0x78934D5ECC91BB84, 15, 470},
      {std::string("fifteen letters", 15), 0x57BA83A4947379DE, 10, 342},
      {std::string("sixteen letters.", 16), 0x2E12068CFC9FBC80, 5, 179},
      {std::string("seventeen letters", 17), 0xE68C190B632D4617, 28, 900},
      {std::string("tttttttttttttttttttttttttttttttt", 32), 0xFFF0A84B50D3C445, 31, 999},
      {std::string("ttttttttttttttttttttttttttttttttt", 33), 0x61584ABD351F3A3B, 12, 380},
      {std::string("\000", 1), 0x1BB9329ADB8A2585, 3, 108},
      {std::string("\000\000", 2), 0xAB34B1DF77F4376E, 21, 668},
  };
  for (const Golden& row : golden) {
    const ExactCopy copy(row.word);
    CHECK(hash_bytes(copy.view(), 0) == row.hash);
    CHECK(partition_of(copy.view(), 32) == row.of_32);
    CHECK(partition_of(copy.view(), 1000) == row.of_1000);
  }
}

void partitions_stay_below_their_number_and_are_even() {
  CHECK(partition_of("word", 1) == 0);
  CHECK(partition_of("word", 0xFFFFFFFF) < 0xFFFFFFFF);
  constexpr std::uint32_t kPartitions = 32;
  constexpr std::size_t kWords = 64000;
  std::vector<std::size_t> sizes(kPartitions);
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint32_t partition = partition_of("word" + std::to_string(i), kPartitions);
    CHECK(partition < kPartitions);
    ++sizes[partition];
  }
  // 2000 each; the standard deviation of a fair one is 44.
  for (const std::size_t size : sizes) CHECK(size > 1780 && size < 2220);
}

}  // namespace

int main() {
  loads_up_to_eight_bytes();
  every_byte_and_the_length_count();
  the_seed_counts();
  the_process_seed_stays();
  the_fixed_hash_is_the_same_for_ever();
  partitions_stay_below_their_number_and_are_even();
}

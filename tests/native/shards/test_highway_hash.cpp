// HighwayHash: hashes that Riegeli files have, and parts that give the hash of the whole.
#include "shards/highway_hash.hpp"

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

constexpr HighwayHash::Lanes kKey{0x2F696C6567656952, 0x0A7364726F636572, 0x2F696C6567656952,
                                  0x0A7364726F636572};
using Bytes = std::vector<std::uint8_t>;

/// The hash, in both ways to compute it.
std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  HighwayHash hash(kKey);
  HighwayHash one_by_one(kKey, false);
  hash.add(bytes);
  one_by_one.add(bytes);
  CHECK(hash.digest() == one_by_one.digest());
  return hash.digest();
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// From files that package array_record wrote.
void test_known_hashes() {
  CHECK(hash_of({}) == 0x72C3B1E9C0139FE1);
  CHECK(hash_of(bytes_of(std::string_view("\0\1\5hello", 8))) == 0x9B3DB141E5B2D8F9);
  CHECK(hash_of(bytes_of(std::string_view("\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", 16))) ==
        0x3F4A880DD170AF83);
  Bytes longer{0, 1, 90};
  for (int i = 0; i < 30; ++i) longer.insert(longer.end(), {'a', 'b', 'c'});
  CHECK(hash_of(longer) == 0xE2C1ADC2891C4527);
}

void test_parts() {
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 200; ++size) {
    Bytes data(size);
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    for (int turn = 0; turn < 5; ++turn) {
      HighwayHash hash(kKey);
      for (std::size_t at = 0; at < size;) {
        const std::size_t count = std::min<std::size_t>(random() % 70, size - at);
        hash.add(std::span(data).subspan(at, count));
        at += count;
        CHECK(hash.digest() == hash_of(std::span(data).first(at)));
      }
    }
  }
}

void test_every_bit_and_the_size_count() {
  Bytes data(70);
  const std::uint64_t whole = hash_of(data);
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    Bytes other = data;
    other[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(hash_of(other) != whole);
  }
  for (std::size_t size = 0; size < data.size(); ++size) {
    CHECK(hash_of(std::span(data).first(size)) != whole);
  }
}

}  // namespace

int main() {
  test_known_hashes();
  test_parts();
  test_every_bit_and_the_size_count();
}

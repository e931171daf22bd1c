// Sixteen bytes at once, compared with one after another.
#include "text/vectors.hpp"

#include <array>
#include <cstdint>
#include <random>

#include "check.hpp"

#ifdef BPE_BEAM_VECTORS
using namespace bpe_beam;
#endif

int main() {
#ifdef BPE_BEAM_VECTORS
  std::mt19937 random(5);
  std::array<std::uint8_t, 16> bytes;
  std::array<std::uint8_t, 16> others;
  std::array<std::uint32_t, 4> words;
  for (int round = 0; moves_bytes() && round < 20'000; ++round) {
    const unsigned most = round % 3 == 0 ? 1 : 0xFF;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() & most);
    for (auto& byte : others) byte = static_cast<std::uint8_t>(random());
    for (auto& word : words) word = static_cast<std::uint32_t>(random() >> (1 + random() % 31));
    const auto vector = load_vector<Bytes16>(bytes.data());
    const auto other = load_vector<Bytes16>(others.data());

    int first = 16;
    bool has_any = false;
    bool has_high = false;
    for (int i = 15; i >= 0; --i) {
      if (bytes[i] == 1) first = i;
      has_any = has_any || bytes[i] != 0;
      has_high = has_high || bytes[i] >= 0x80;
    }
    const std::uint64_t bits = byte_bits(reinterpret_cast<Bytes16>(vector == 1));
    CHECK((bits == 0) == (first == 16));
    if (bits != 0) CHECK(first_byte(bits) == first);
    CHECK(any(vector) == has_any);
    CHECK(has_high_bits(vector) == has_high);

    std::array<std::uint8_t, 16> differences;
    store_vector(saturated_difference(vector, other), differences.data());
    for (int i = 0; i < 16; ++i) {
      CHECK(differences[i] == (bytes[i] > others[i] ? bytes[i] - others[i] : 0));
    }

    const auto limit = static_cast<std::int32_t>(words[random() % 4]);
    const unsigned lanes = lane_bits(greater(load_vector<Words4>(words.data()), limit));
    for (int i = 0; i < 4; ++i) {
      CHECK((lanes >> i & 1) == (words[i] > static_cast<std::uint32_t>(limit)));
    }
  }
#endif
}

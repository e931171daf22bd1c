// Expected counts: the same bits as the definition's, on every machine and number of threads.
#include "unigram/expected_counts.hpp"

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"

using namespace bpe_beam;
using namespace naive_unigram;

namespace {

std::vector<double> random_probabilities(std::mt19937& random, std::size_t size, int rare) {
  std::vector<double> probabilities;
  for (std::size_t i = 0; i < size; ++i) {
    const double mantissa = 1.0 + static_cast<double>(random()) * 0x1p-32;
    probabilities.push_back(std::ldexp(mantissa, -1 - static_cast<int>(random() % rare)));
  }
  return probabilities;
}

void equals_the_definition() {
  std::mt19937 random(1);
  std::uint64_t hash = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t longest = round % 10 == 0 ? 300 : 20;
    const std::size_t letters = random() % 6 + 1;
    const auto texts = random_texts(random, random() % 9, longest, letters);
    const auto names = random_pieces(random, texts);
    const auto pieces = pieces_of(names);
    const auto probabilities = random_probabilities(random, names.size(), round % 3 ? 64 : 4);
    const auto sums = expected_counts(pieces, probabilities, segments_of(texts), 1);
    auto expected = naive_unigram::expected(texts, by_text(names, probabilities));
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK(sums[i] == expected[names[i]]);
      hash = hash * 1000003 + static_cast<std::uint64_t>(sums[i]);
    }
  }
  CHECK(hash == 706112736701281962ULL);
}

void does_not_depend_on_threads() {
  std::mt19937 random(2);
  const auto texts = random_texts(random, 30000, 9, 6);
  const auto pieces = pieces_of(random_pieces(random, texts));
  const auto probabilities = random_probabilities(random, pieces.size(), 20);
  const auto segments = segments_of(texts);
  const auto alone = expected_counts(pieces, probabilities, segments, 1);
  CHECK(expected_counts(pieces, probabilities, segments, 4) == alone);
  CHECK(expected_counts(pieces, probabilities, joined_segments(segments), 1) == alone);
}

void counts_rare_characters() {
  std::string text;
  std::vector<std::string> names;
  for (int i = 0; i < 4096; ++i) text += "\u4e00";
  const Pieces pieces({"\u4e00"});
  const Segment segment{text.data(), static_cast<std::uint32_t>(text.size()), kNoFollower, 1};
  const auto sums = expected_counts(pieces, std::vector<double>{0x1p-66}, {&segment, 1}, 1);
  CHECK(sums[0] == Wide{4096} << kCountBits);
}

void counts_long_pieces_of_rare_characters() {
  const std::string text(300, 'a');
  const Segment segment{text.data(), 300, kNoFollower, 3};
  const Pieces whole({"a", text});
  const auto sums = expected_counts(whole, std::vector<double>{0x1p-20, 0.5}, {&segment, 1}, 1);
  CHECK(sums[0] == 0);
  CHECK(sums[1] == Wide{3} << kCountBits);

  // Of two pieces that overlap the one counts that leaves fewer characters.
  const std::string two =
      std::string(100, 'a') + "b" + std::string(100, 'c') + std::string(90, 'd');
  const Segment other{two.data(), static_cast<std::uint32_t>(two.size()), kNoFollower, 1};
  const Pieces pieces({"a", two.substr(0, 150), "b", two.substr(100), "c", "d"});
  const std::vector<double> probabilities{0x1p-20, 0.25, 0x1p-20, 0.25, 0x1p-20, 0x1p-20};
  const auto shares = expected_counts(pieces, probabilities, {&other, 1}, 1);
  CHECK(shares[0] == Wide{100} << kCountBits && shares[3] == Wide{1} << kCountBits);
  CHECK(shares[1] == 0 && shares[2] == 0 && shares[4] == 0 && shares[5] == 0);
}

void counts_large_words() {
  const Segment segment{"ab", 2, kNoFollower, INT64_MAX / 2};
  const auto sums = expected_counts(Pieces({"a", "ab", "b"}), std::vector<double>{0.5, 0.25, 0.5},
                                    {&segment, 1}, 1);
  CHECK(sums[0] == static_cast<Wide>(INT64_MAX / 2) << (kCountBits - 1));
  CHECK(sums[1] == sums[0] && sums[2] == sums[0]);
}

void refuses_unknown_characters() {
  const Segment segment{"ab", 2, kNoFollower, 1};
  CHECK_THROWS(std::invalid_argument,
               expected_counts(Pieces({"a"}), std::vector<double>{0.5}, {&segment, 1}, 1));
}

}  // namespace

int main() {
  equals_the_definition();
  does_not_depend_on_threads();
  counts_rare_characters();
  counts_long_pieces_of_rare_characters();
  counts_large_words();
  refuses_unknown_characters();
}

// Pieces, and where a text has them.
#include "unigram/pieces.hpp"

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"

using namespace bpe_beam;
using namespace naive_unigram;

namespace {

void has_its_texts() {
  const Pieces pieces({"a", "ab", "b", "\u00e9", "\u00e9\u00e9"});
  CHECK(pieces.size() == 5);
  CHECK(pieces.text(1) == "ab");
  CHECK(pieces.is_character(0) && !pieces.is_character(1) && pieces.is_character(3));
  CHECK(!pieces.is_character(4));
  const Pieces some = pieces.subset(std::vector<std::uint8_t>{0, 1, 0, 1, 0});
  CHECK(some.size() == 2 && some.text(0) == "ab" && some.text(1) == "\u00e9");
  CHECK_THROWS(std::invalid_argument, Pieces({"b", "a"}));
  CHECK_THROWS(std::invalid_argument, Pieces({"a", "a"}));
  CHECK_THROWS(std::invalid_argument, Pieces({"", "a"}));
  CHECK(Pieces({}).size() == 0);
}

void matches_equal_all_substrings() {
  std::mt19937 random(1);
  PieceMatches matches;
  for (int round = 0; round < 200; ++round) {
    const auto texts = random_texts(random, 4, 40, random() % 6 + 1);
    const auto pieces = pieces_of(random_pieces(random, texts));
    for (const Text& each : texts) {
      matches.find(pieces, each.text);
      const auto at = positions(each.text);
      CHECK(matches.size() == at.size() - 1);
      for (std::size_t i = 0; i < matches.size(); ++i) {
        CHECK(matches.begin(i) == at[i]);
        auto next = matches.at(i).begin();
        for (std::size_t j = i + 1; j < at.size(); ++j) {
          const std::string text = each.text.substr(at[i], at[j] - at[i]);
          if (pieces.trie().find(text) == kNoId) continue;
          CHECK(next->end == at[j] && pieces.text(next->piece) == text);
          ++next;
        }
        CHECK(next == matches.at(i).end());
      }
    }
  }
}

}  // namespace

int main() {
  has_its_texts();
  matches_equal_all_substrings();
}

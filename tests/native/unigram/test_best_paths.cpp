// Best paths, against all ways to cut a text.
#include "unigram/best_paths.hpp"

#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"

using namespace bpe_beam;
using namespace naive_unigram;

namespace {

void equals_all_ways() {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto texts = random_texts(random, random() % 9 + 1, 9, random() % 6 + 1);
    const auto names = random_pieces(random, texts);
    const auto pieces = pieces_of(names);
    std::vector<std::int64_t> scores;
    for (std::size_t i = 0; i < names.size(); ++i) {
      scores.push_back(-static_cast<std::int64_t>(random() % 5));
    }
    const auto by_name = by_text(names, scores);
    std::map<std::string, std::int64_t> counts;
    BestPath path(pieces, scores);
    const auto check = [&](const std::string& text, const std::string& without) {
      const auto expected = best_path(text, by_name, without);
      CHECK(path.find(text, pieces.trie().find(without)) == expected.first);
      std::vector<std::string> parts;
      path.pieces_of_path([&](std::uint32_t piece) { parts.emplace_back(pieces.text(piece)); });
      CHECK(parts == expected.second);
      return parts;
    };
    for (const Text& each : texts) {
      for (const std::string& part : check(each.text, "")) counts[part] += each.count;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!pieces.is_character(i)) check(names[i], names[i]);
    }
    const auto totals = path_counts(pieces, scores, segments_of(texts), 1);
    for (std::size_t i = 0; i < names.size(); ++i) CHECK(totals[i] == counts[names[i]]);
  }
}

void does_not_depend_on_threads() {
  std::mt19937 random(2);
  const auto texts = random_texts(random, 30000, 9, 6);
  const auto pieces = pieces_of(random_pieces(random, texts));
  std::vector<std::int64_t> scores;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    scores.push_back(-static_cast<std::int64_t>(random() % 50));
  }
  const auto segments = segments_of(texts);
  const auto alone = path_counts(pieces, scores, segments, 1);
  CHECK(path_counts(pieces, scores, segments, 4) == alone);
  CHECK(path_counts(pieces, scores, joined_segments(segments), 1) == alone);
}

void refuses_unknown_characters() {
  const std::vector<std::int64_t> scores = {1};
  const Pieces pieces({"a"});
  CHECK_THROWS(std::invalid_argument, BestPath(pieces, scores).find("ab"));
}

}  // namespace

int main() {
  equals_all_ways();
  does_not_depend_on_threads();
  refuses_unknown_characters();
}

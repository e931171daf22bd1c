// SentencePiece's BPE against merging one pair at a time by scores.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/sentencepiece_bpe.hpp"
#include "encode_word.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint32_t kUnk = 0;

/// A model of pieces that have ranks; those of one letter are its symbols.
struct Pieces {
  std::map<std::string, std::uint32_t> ids;
  std::map<std::string, std::uint32_t> ranks;  // of pieces of several letters
  std::vector<std::string> user_defined;
  std::vector<std::uint32_t> byte_ids;

  [[nodiscard]] SentencePieceBpe model() const {
    std::vector<MergeRow> rows;
    std::vector<std::uint32_t> row_ranks;
    TokenIds symbols;
    for (const auto& [piece, id] : ids) {
      if (piece.size() == 1) symbols.emplace_back(piece, id);
      for (std::size_t at = 1; at < piece.size(); ++at) {
        const auto left = ids.find(piece.substr(0, at)), right = ids.find(piece.substr(at));
        if (left == ids.end() || right == ids.end()) continue;
        rows.push_back({left->second, right->second, id});
        row_ranks.push_back(ranks.at(piece));
      }
    }
    for (std::size_t i = 0; i < user_defined.size(); ++i) {
      symbols.emplace_back(user_defined[i], 1000 + static_cast<std::uint32_t>(i));
    }
    return {TiedMerges(rows, row_ranks), symbols, kUnk, byte_ids};
  }

  /// The ids of a word of known letters.
  [[nodiscard]] std::vector<std::uint32_t> by_definition(const std::string& word) const {
    std::vector<std::string> parts;
    for (const char letter : word) parts.emplace_back(1, letter);
    while (true) {
      std::size_t best = parts.size();
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto rank = ranks.find(parts[i] + parts[i + 1]);
        if (rank == ranks.end()) continue;
        if (best == parts.size() || rank->second < ranks.at(parts[best] + parts[best + 1]))
          best = i;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<std::uint32_t> found;
    for (const std::string& part : parts) found.push_back(ids.at(part));
    return found;
  }
};

void of_one_rank_the_leftmost() {
  const Pieces pieces{{{"a", 1}, {"aa", 2}, {"aaa", 3}}, {{"aa", 5}, {"aaa", 5}}, {}, {}};
  CHECK((encoded(pieces.model(), "aaaa").symbols == Symbols{{3, 3}, {1, 1}}));
  CHECK((encoded(pieces.model(), "aaaaa").symbols == Symbols{{3, 3}, {2, 2}}));
}

void unknown_characters() {
  Pieces pieces{{{"a", 1}, {"b", 2}, {"ab", 3}}, {{"ab", 0}}, {}, {}};
  CHECK((encoded(pieces.model(), "éüabé").symbols == Symbols{{kUnk, 4}, {3, 2}, {kUnk, 2}}));
  pieces.byte_ids.assign(256, 9);
  CHECK((encoded(pieces.model(), "aéb").symbols == Symbols{{1, 1}, {9, 1}, {9, 1}, {2, 1}}));
}

void user_defined_texts() {
  const Pieces pieces{
      {{"a", 1}, {"b", 2}, {"ab", 3}, {"ba", 4}}, {{"ab", 0}, {"ba", 1}}, {"bb", "bbab"}, {}};
  CHECK((encoded(pieces.model(), "abba").symbols == Symbols{{1, 1}, {1000, 2}, {1, 1}}));
  CHECK((encoded(pieces.model(), "bbabab").symbols == Symbols{{1001, 4}, {3, 2}}));
}

void random_words() {
  std::mt19937 random(5);
  const auto any = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  for (int round = 0; round < 300; ++round) {
    Pieces pieces{{{"a", 1}, {"b", 2}}, {}, {}, {}};
    for (std::uint32_t left = any(14); left > 0; --left) {
      std::string piece;
      for (std::uint32_t size = any(5) + 2; size > 0; --size) piece += any(3) == 0 ? 'b' : 'a';
      pieces.ids.emplace(piece, 10 + left);
      pieces.ranks.emplace(piece, any(4));
    }
    const SentencePieceBpe model = pieces.model();
    for (int i = 0; i < 20; ++i) {
      std::string word;  // short ones and long ones are merged in two ways
      for (std::uint32_t size = any(2) == 0 ? any(20) : 50 + any(30); size > 0; --size) {
        word += any(3) == 0 ? 'b' : 'a';
      }
      if (word.empty()) continue;
      CHECK(ids_of(encoded(model, word).symbols) == pieces.by_definition(word));
    }
  }
}

void ranks_of_other_merges() {
  const std::vector<MergeRow> rows{{1, 2, 3}};
  CHECK_THROWS(std::invalid_argument, TiedMerges(rows, {}));
}

}  // namespace

int main() {
  of_one_rank_the_leftmost();
  unknown_characters();
  user_defined_texts();
  random_words();
  ranks_of_other_merges();
}

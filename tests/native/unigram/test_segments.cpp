// Cutting words, by examples; joining equal segments.
#include "unigram/segments.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"

using namespace bpe_beam;
using naive_unigram::joined_segments;

namespace {

/// The segments of a word, each with the character behind it; `~` is not kept.
std::string cut(const std::string& word, bool by_script = true, std::size_t longest = 4096) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t point = 0; point < kCodePoints; ++point) {
    if (point != '~') kept.push_back(point);
  }
  std::string result;
  SegmentCutter(kept, by_script, longest).cut(word, [&](std::string_view text, std::uint32_t next) {
    if (!result.empty()) result += ' ';
    result += text;
    result += '|';
    if (next < 0x80) result += static_cast<char>(next);
  });
  return result;
}

void cuts_between_scripts() {
  CHECK(cut("\u2581don't") == "\u2581don|' '|t t|");
  CHECK(cut("\u2581don't", false) == "\u2581don't|");
  CHECK(cut("\u2581ab1c") == "\u2581ab|1 1|c c|");
  CHECK(cut("\u2581\u30ab\u30fc\u6f22\u3072x") == "\u2581\u30ab\u30fc\u6f22\u3072|x x|");
  CHECK(cut("e\u0301a") == "e\u0301a|");
  CHECK(cut("\u03011") == "\u03011|");
  CHECK(cut("a?\u0301b") == "a|? ?\u0301|b b|");
  CHECK(cut("a\u25811") == "a\u2581|1 1|");
  CHECK(cut("a b") == "a b|");
  CHECK(cut("").empty());
}

void cuts_at_characters_that_are_not_kept() {
  CHECK(cut("a~b") == "a|~ b|");
  CHECK(cut("~~a~") == "a|~");
  CHECK(cut("~").empty());
  CHECK(cut("a~\u0301b") == "a|~ \u0301b|");
  CHECK(cut("a\xFF\x62") == "a| b|");
}

void cuts_long_segments() {
  CHECK(cut("aaaaaaa", true, 3) == "aaa|a aaa|a a|");
  CHECK(cut("aa1aaaa", true, 3) == "aa|1 1|a aaa|a a|");
  CHECK(cut("aaa", true, 3) == "aaa|");
}

void joins_equal_segments() {
  const std::string text = "abcabcabxabcdefghiabcdefghj";
  const auto at = [&](std::size_t begin, std::uint32_t size, std::uint32_t follower) {
    return Segment{text.data() + begin, size, follower, 3};
  };
  const auto joined = joined_segments({at(0, 3, 'x'), at(9, 9, 'x'), at(3, 3, 'x'), at(6, 2, 'x'),
                                       at(18, 9, 'x'), at(6, 2, 'y'), at(9, 3, 'x')});
  CHECK(joined.size() == 4);
  CHECK(joined[0].text() == "ab" && joined[0].count == 6 && joined[0].follower == kNoFollower);
  CHECK(joined[1].text() == "abc" && joined[1].count == 9 && joined[1].follower == 'x');
  CHECK(joined[2].text() == "abcdefghi" && joined[2].count == 3);
  CHECK(joined[3].text() == "abcdefghj");
  CHECK(joined_segments({}).empty());
}

void joins_many_segments() {
  const std::string text = "abacabadabacabaeabacabadabacaba";
  std::map<std::string_view, std::int64_t> expected;
  std::vector<Segment> segments;
  for (std::uint32_t size = 1; size <= text.size(); ++size) {
    for (std::size_t begin = 0; begin + size <= text.size(); ++begin) {
      segments.push_back({text.data() + begin, size, 'x', static_cast<std::int64_t>(size + begin)});
      expected[segments.back().text()] += segments.back().count;
    }
  }
  const auto joined = joined_segments(segments);
  CHECK(joined.size() == expected.size());
  std::size_t i = 0;
  for (const auto& [bytes, count] : expected) {
    CHECK(joined[i].text() == bytes && joined[i].count == count);
    ++i;
  }
}

void joins_more_segments_than_a_small_sort_takes() {
  std::mt19937 random(1);
  std::string text(60000, 'a');
  for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
  text += std::string(60, 'b');
  std::map<std::string_view, std::pair<std::int64_t, std::uint32_t>> expected;
  std::vector<Segment> segments;
  for (int i = 0; i < 60000; ++i) {
    const bool of_equal = random() % 2 == 0;  // many more than are sorted at once begin alike
    const std::size_t begin = of_equal ? 60000 : random() % 60000;
    const std::size_t size = of_equal ? 40 + random() % 20 : 1 + random() % 12;
    segments.push_back({text.data() + begin, static_cast<std::uint32_t>(size),
                        static_cast<std::uint32_t>('x' + random() % 2), i});
    const std::uint32_t follower = segments.back().follower;
    const auto [known, is_new] = expected.try_emplace(segments.back().text(), i, follower);
    if (is_new) continue;
    known->second.first += i;
    if (known->second.second != follower) known->second.second = kNoFollower;
  }
  const auto joined = joined_segments(segments);
  CHECK(joined.size() == expected.size());
  std::size_t i = 0;
  for (const auto& [bytes, sums] : expected) {
    CHECK(joined[i].text() == bytes && joined[i].count == sums.first);
    CHECK(joined[i].follower == sums.second);
    ++i;
  }
}

void counts_characters() {
  CharacterCounts counts;
  counts.add("a\u00e9a\xFF", 5);
  counts.add("a", 2);
  CHECK(counts.by_code_point()['a'] == 12);
  CHECK(counts.by_code_point()[0xE9] == 5);
  CHECK(counts.total() == 22);
  counts.add("a", std::numeric_limits<std::int64_t>::max() - 22);
  CHECK_THROWS(std::overflow_error, (counts.add("b", 1), 0));
}

void compares_leading_bytes() {
  CHECK(leading_bytes("a") < leading_bytes("b"));
  CHECK(leading_bytes("a") < leading_bytes("aa"));
  CHECK(leading_bytes("\x7F") < leading_bytes("\xC3"));
  CHECK(leading_bytes("12345678") == leading_bytes("123456789"));
}

}  // namespace

int main() {
  cuts_between_scripts();
  cuts_at_characters_that_are_not_kept();
  cuts_long_segments();
  joins_equal_segments();
  joins_many_segments();
  joins_more_segments_than_a_small_sort_takes();
  counts_characters();
  compares_leading_bytes();
}

// Matchers against slow ones, and on bytes that are no UTF-8.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "normalize/matcher.hpp"

using namespace bpe_beam;

namespace {

std::vector<Span> matches(const Matcher& matcher, std::string_view text) {
  const ExactCopy copy(text);
  std::vector<Span> found;
  matcher.find(copy.view(), found);
  return found;
}

std::vector<Span> found_slowly(std::string_view text, std::string_view bytes) {
  std::vector<Span> found;
  for (std::size_t at = text.find(bytes); at != text.npos; at = text.find(bytes, at)) {
    found.push_back({at, at + bytes.size()});
    at += bytes.size();
  }
  return found;
}

/// Every text of up to 8 letters of two, every literal of up to 4.
void literals() {
  const auto word = [](unsigned bits, std::size_t size) {
    std::string letters;
    for (std::size_t i = 0; i < size; ++i) letters += (bits >> i & 1) != 0 ? 'b' : 'a';
    return letters;
  };
  for (std::size_t size = 1; size <= 4; ++size) {
    for (unsigned literal = 0; literal < 1u << size; ++literal) {
      const LiteralMatcher matcher(word(literal, size));
      for (std::size_t length = 0; length <= 8; ++length) {
        for (unsigned text = 0; text < 1u << length; ++text) {
          CHECK(matches(matcher, word(text, length)) ==
                found_slowly(word(text, length), word(literal, size)));
        }
      }
    }
  }
}

void no_bytes_match_between_characters() {
  const LiteralMatcher nothing("");
  CHECK(matches(nothing, "aé\xFF") == std::vector<Span>{{0, 0}, {1, 1}, {3, 3}, {4, 4}});
  CHECK(matches(nothing, "") == std::vector<Span>{{0, 0}});
}

/// A backtracking search would take 10^12 steps.
void literals_are_found_in_linear_time() {
  const std::string text(1'000'000, 'a');
  CHECK(matches(LiteralMatcher(std::string(500'000, 'a') + "b"), text).empty());
  CHECK(matches(LiteralMatcher("b" + std::string(500'000, 'a')), text).empty());
}

void word_ends() {
  const WordEndMatcher ends;
  CHECK(matches(ends, "").empty());
  CHECK(matches(ends, " \n").empty());
  CHECK(matches(ends, "a bc  d") == std::vector<Span>{{1, 1}, {4, 4}, {7, 7}});
  CHECK(matches(ends, "é\u3000x\u00A0") == std::vector<Span>{{2, 2}, {6, 6}});
  CHECK(matches(ends, "\xFF \xE3\x80") == std::vector<Span>{{1, 1}, {4, 4}});
}

void space_runs() {
  const auto found = [](std::string_view text) { return matches(SpaceRunMatcher(), text); };
  CHECK(found("").empty() && found(" a b ").empty());
  CHECK((found("  ") == std::vector<Span>{{0, 2}}));
  CHECK((found("a   b \t  ") == std::vector<Span>{{1, 4}, {7, 9}}));
}

}  // namespace

int main() {
  space_runs();
  literals();
  no_bytes_match_between_characters();
  literals_are_found_in_linear_time();
  word_ends();
}

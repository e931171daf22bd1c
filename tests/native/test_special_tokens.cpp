// Special tokens: the leftmost match, of those the longest.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "special_tokens.hpp"

using namespace bpe_beam;

namespace {

using Tokens = std::vector<std::pair<std::string, std::uint32_t>>;

bool finds(const SpecialTokens& specials, std::string_view bytes, std::size_t from,
           std::size_t begin, std::size_t end, std::uint32_t id) {
  const ExactCopy text(bytes);
  const SpecialTokens::Match match = specials.find(text.view(), from);
  return match.begin == begin && match.end == end && match.id == id;
}

void none() {
  const SpecialTokens specials;
  CHECK(specials.empty());
  CHECK(finds(specials, "abc", 0, 3, 3, 0));
  CHECK(finds(specials, "", 0, 0, 0, 0));
}

void one() {
  const SpecialTokens specials(Tokens{{"<s>", 7}});
  CHECK(!specials.empty());
  CHECK(finds(specials, "<s>", 0, 0, 3, 7));
  CHECK(finds(specials, "ab<s>cd", 0, 2, 5, 7));
  CHECK(finds(specials, "ab<s>cd<s>", 0, 2, 5, 7));
  CHECK(finds(specials, "ab<s>cd<s>", 2, 2, 5, 7));
  CHECK(finds(specials, "ab<s>cd<s>", 3, 7, 10, 7));
  CHECK(finds(specials, "ab<s>cd<s>", 8, 10, 10, 0));
  CHECK(finds(specials, "<s", 0, 2, 2, 0));  // cut off by the text's end
  CHECK(finds(specials, "<<s>", 0, 1, 4, 7));
  CHECK(finds(specials, "<s>", 3, 3, 3, 0));  // from the end on
}

/// Whatever order they are given in.
void the_longest_of_those_that_begin_together() {
  const std::vector<Tokens> orders = {{{"<a", 1}, {"<a>", 2}, {"<a>>", 3}},
                                      {{"<a>>", 3}, {"<a", 1}, {"<a>", 2}}};
  for (const Tokens& tokens : orders) {
    const SpecialTokens specials(tokens);
    CHECK(finds(specials, "x<a>>", 0, 1, 5, 3));
    CHECK(finds(specials, "x<a>y", 0, 1, 4, 2));
    CHECK(finds(specials, "x<ay", 0, 1, 3, 1));
  }
}

/// A longer one that begins later loses, even where it overlaps.
void the_leftmost_before_the_longest() {
  const SpecialTokens specials(Tokens{{"bcdef", 1}, {"ab", 2}});
  CHECK(finds(specials, "abcdef", 0, 0, 2, 2));
  CHECK(finds(specials, "abcdef", 1, 1, 6, 1));
}

void overlaps_with_itself() {
  const SpecialTokens specials(Tokens{{"aa", 1}});
  CHECK(finds(specials, "aaa", 0, 0, 2, 1));
  CHECK(finds(specials, "aaa", 2, 3, 3, 0));
}

void any_bytes() {
  const std::string high = "\xFF\x80";
  const std::string zero(2, '\0');
  const SpecialTokens specials(Tokens{{high, 1}, {zero, 2}, {"語", 3}});
  CHECK(finds(specials, "a" + high, 0, 1, 3, 1));
  CHECK(finds(specials, "a" + zero, 0, 1, 3, 2));
  CHECK(finds(specials, "日本語", 0, 6, 9, 3));
}

void the_same_twice_has_its_first_id() {
  CHECK(finds(SpecialTokens(Tokens{{"x", 5}, {"x", 6}}), "x", 0, 0, 1, 5));
}

void an_empty_one_is_refused() {
  CHECK_THROWS(std::invalid_argument, SpecialTokens(Tokens{{"a", 0}, {"", 1}}));
}

}  // namespace

int main() {
  none();
  one();
  the_longest_of_those_that_begin_together();
  the_leftmost_before_the_longest();
  overlaps_with_itself();
  any_bytes();
  the_same_twice_has_its_first_id();
  an_empty_one_is_refused();
}

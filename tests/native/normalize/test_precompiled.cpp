// Replacements by a charsmap that the test makes, and charsmaps that are damaged.
#include <stdexcept>
#include <string>
#include <string_view>

#include "apply_step.hpp"
#include "check.hpp"
#include "made_charsmap.hpp"
#include "normalize/precompiled.hpp"

using namespace bpe_beam;

namespace {

using Places = std::vector<Placed>;

void shortest_key() {
  const Charsmap map(made_charsmap({{"ab", "X"}, {"abc", "Y"}, {"d", ""}, {"é", "e"}}));
  CHECK(map.find("ab") == "X" && map.find("abc") == "X");
  CHECK(!map.find("a") && !map.find("") && !map.find("x") && !map.find(std::string_view("\0", 1)));
  CHECK(map.find("d") == "" && map.find("é") == "e" && !map.find("\xC3"));
}

void longest_key() {
  const Charsmap map(made_charsmap({{"ab", "X"}, {"abcd", "Y"}, {"d", ""}}));
  const auto found = [&](std::string_view text, std::size_t size, std::string_view replacement) {
    const Charsmap::Match match = map.find_longest(text);
    return match.size == size && match.replacement == replacement;
  };
  CHECK(found("abc", 2, "X") && found("abcde", 4, "Y") && found("d", 1, ""));
  CHECK(found("", 0, "") && found("a", 0, "") && found(std::string_view("\0", 1), 0, ""));
  CHECK(map.begins_key("a") && map.begins_key("abc") && map.begins_key("d"));
  CHECK(!map.begins_key("b") && !map.begins_key("abcde"));
}

void whole_graphemes() {
  const Precompiled step(made_charsmap({{"e", "E"}, {"ﬁ", "fi"}, {"\r\n", " "}, {"\u0301", ""}}));
  // With its accent the letter is one grapheme, which begins with a key.
  CHECK((places_of(step, "xe\u0301y") == Places{{"x", 0, 1}, {"E", 1, 2}, {"y", 4, 5}}));
  CHECK((places_of(step, "ﬁn") == Places{{"f", 0, 3}, {"i", 0, 3}, {"n", 3, 4}}));
  CHECK((places_of(step, "a\r\nb") == Places{{"a", 0, 1}, {" ", 1, 2}, {"b", 3, 4}}));
  // Of six bytes and more: each character by itself.
  CHECK((places_of(step, "e\u0301\u0301\u0301") == Places{{"E", 0, 1}}));
  CHECK((places_of(step, "a\u0301b") == Places{{"a", 0, 1}, {"b", 3, 4}}));
}

/// What is dropped at the begin of a text moves the places behind it, as it does in Hugging Face.
void dropped_at_the_begin() {
  const Precompiled step(made_charsmap({{"d", ""}}));
  CHECK((places_of(step, "dab") == Places{{"a", 0, 1}, {"b", 1, 2}}));
  CHECK((places_of(step, "adb") == Places{{"a", 0, 1}, {"b", 2, 3}}));
  CHECK(places_of(step, "ddd").empty() && places_of(step, "").empty());
}

void damaged(std::string bytes, std::string_view problem) {
  try {
    const Charsmap map(bytes);
    CHECK(false);
  } catch (const std::invalid_argument& error) {
    CHECK(std::string_view(error.what()).find(problem) != std::string_view::npos);
  }
}

void damages() {
  const std::string whole = made_charsmap({{"a", "b"}});
  damaged("", "no size");
  damaged(whole.substr(0, 100), "cut off");
  damaged(std::string(8, '\0').substr(0, 4), "empty");
  damaged(whole + "\xFF", "not UTF-8");
  damaged(whole.substr(0, whole.size() - 2) + "\xC3", "not UTF-8");
  std::string far = whole;
  far[4 + 4 * (512 + 0)] = 100;  // where the replacement of "a" begins
  damaged(far, "no replacement");
}

}  // namespace

int main() {
  shortest_key();
  longest_key();
  whole_graphemes();
  dropped_at_the_begin();
  damages();
}

// Which characters replacements leave as they are, and which may join the one before.
#include <cstddef>
#include <string>
#include <string_view>

#include "check.hpp"
#include "made_charsmap.hpp"
#include "normalize/kept_characters.hpp"

using namespace bpe_beam;

namespace {

KeptCharacters kept_by(const std::string& map, char other = '#') {
  const Charsmap charsmap(map);
  return {&charsmap, [other](std::string_view text) { return text[0] == other; }};
}

std::size_t size_in_run(const KeptCharacters& kept, std::string_view text) {
  return kept.size_in_run(text.data(), text.data() + text.size());
}

bool joins(const KeptCharacters& kept, std::string_view text) {
  return kept.joins(text.data(), text.data() + text.size());
}

void keys() {
  const KeptCharacters kept =
      kept_by(made_charsmap({{"ﬁ", "fi"}, {"e\u0301", "é"}, {"ab", "x"}, {"か゛", "が"}}));
  CHECK(size_in_run(kept, "e") == 1 && size_in_run(kept, "é") == 2);
  CHECK(size_in_run(kept, "語") == 3 && size_in_run(kept, "か語") == 3);
  CHECK(size_in_run(kept, "ﬁ") == 0 && size_in_run(kept, "#") == 0);
  // What joins is in no run.
  for (const char* const text : {"b", "\u0301", "゛"}) {
    CHECK(joins(kept, text) && size_in_run(kept, text) == 0);
  }
  CHECK(!joins(kept, "a") && !joins(kept, "e") && !joins(kept, "語") && !joins(kept, ""));
  // What is behind the basic plane, or is no character.
  for (const char* const text :
       {"😀", "\xFF", "\xE8\xAA", "\xC1\x81", "\xE0\x81\x81", "\xED\xA0\x80"}) {
    CHECK(joins(kept, text) && size_in_run(kept, text) == 0);
    CHECK(size_in_run(kept, std::string(text) + "xyz") == 0);
  }
}

void ascii() {
  const KeptCharacters kept = kept_by(made_charsmap({{"\t", " "}}), '\0');
  const auto found = [&](std::string_view text) { return kept.ascii_in_run(text.data()); };
  CHECK(found("!~aZ09[]") == 8 && found("abc defg") == 3 && found(" bcdefgh") == 0);
  CHECK(found("abcdefg\x7F") == 7 && found("ab\u00e9cdef") == 2 && found("a\tbcdefg") == 1);
  CHECK(kept_by(made_charsmap({{"q", "Q"}})).ascii_in_run("abcdefgh") == 0);
}

/// A key that ends within a character, so that bytes of others are part of it.
void partial_keys() {
  const KeptCharacters kept = kept_by(made_charsmap({{"a\xE8", "x"}, {"\xE9", "y"}}));
  CHECK(size_in_run(kept, "a") == 0 && size_in_run(kept, "b") == 1);
  CHECK(size_in_run(kept, "語") == 3 && size_in_run(kept, "需") == 0);
}

}  // namespace

int main() {
  keys();
  ascii();
  partial_keys();
}

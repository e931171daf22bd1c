// The parts of texts: no piece crosses a boundary between them.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/piece_boundaries.hpp"

using namespace bpe_beam;

namespace {

using Texts = std::vector<std::string>;

/// The parts of a text, which are checked to be the whole text.
Texts parts_of(const Texts& pieces, const std::string& text) {
  const PieceBoundaries boundaries({pieces.begin(), pieces.end()});
  Texts parts;
  std::string joined;
  boundaries.for_each_part(text, [&](std::size_t begin, std::size_t end) {
    CHECK(begin == joined.size() && begin < end);
    parts.push_back(text.substr(begin, end - begin));
    joined += parts.back();
  });
  CHECK(joined == text);
  return parts;
}

/// Longer than what is not divided further.
const std::string kLong(PieceBoundaries::kShortPart, 'a');

void words() {
  CHECK((parts_of({"▁a", "ab"}, "▁a▁▁b▁") == Texts{"▁a", "▁▁b", "▁"}));
  CHECK((parts_of({"▁▁", "▁▁▁a"}, "▁▁▁▁") == Texts{"▁▁▁▁"}));
  CHECK((parts_of({}, "abc▁a") == Texts{"abc", "▁a"}));
  CHECK(parts_of({}, "").empty());
  // Of the bytes of a space.
  CHECK((parts_of({}, "▁\xE2▁a\xE2\x96") == Texts{"▁\xE2", "▁a\xE2\x96"}));
}

void pieces_with_spaces_inside() {
  CHECK((parts_of({"a▁b"}, "b▁a▁b") == Texts{"b▁a▁b"}));
  CHECK((parts_of({"aa", "a▁"}, kLong + "▁b") == Texts{kLong + "▁", "b"}));
}

void pairs_of_characters() {
  CHECK((parts_of({"aa", "éa"}, kLong + "éaaé") == Texts{kLong, "éaa", "é"}));
  CHECK((parts_of({"aa", "ba"}, kLong + "bb") == Texts{kLong, "b", "b"}));
  CHECK((parts_of({"aa"}, kLong + "\xFF\xFF") == Texts{kLong, "\xFF", "\xFF"}));
  // The pairs of a piece, not the piece itself.
  CHECK((parts_of({"aab", "bc"}, kLong + "bc") == Texts{kLong + "bc"}));
}

}  // namespace

int main() {
  words();
  pieces_with_spaces_inside();
  pairs_of_characters();
}

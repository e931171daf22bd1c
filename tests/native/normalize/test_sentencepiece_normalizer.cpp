// SentencePiece's rules, one by one, with a charsmap that the test makes.
#include <string>
#include <string_view>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "made_charsmap.hpp"
#include "normalize/sentencepiece_normalizer.hpp"

using namespace bpe_beam;

namespace {

using Places = std::vector<Placed>;

const std::string kMap = made_charsmap(
    {{"e", "E"}, {"e\u0301", "é"}, {"ﬁ", "f i"}, {"\t", " "}, {"q", ""}, {"ab", "  x  "}});

SentencePieceNormalizer step_of(SentencePieceRules rules, const std::string& map = kMap) {
  return {map, {{"<e>", 0}, {"<e><", 0}, {" \t", 0}}, rules};
}

void the_longest_key() {
  const SentencePieceNormalizer step = step_of({false, false, false, false});
  CHECK(text_of(step, "xe\u0301\u0301e") == "xé\u0301E");
  CHECK(text_of(step, "aabq ﬁ") == "a  x   f i");
  CHECK(text_of(step,
                "\xFF"
                "e") == "\uFFFDE");
  CHECK((places_of(step, "xﬁe\u0301") ==
         Places{{"x", 0, 1}, {"f", 1, 4}, {" ", 1, 4}, {"i", 1, 4}, {"é", 4, 7}}));
  CHECK(text_of(step_of({false, false, false, false}, ""), "e\u0301q\t") == "e\u0301q\t");
}

void symbols_stay() {
  const SentencePieceNormalizer step = step_of({false, true, true, false});
  CHECK(text_of(step, "e<e>e<e><e") == "E<e>E<e><E");
  // Its space is one like others.
  CHECK(text_of(step, "x \ty") == "x▁\ty");
}

void spaces() {
  const SentencePieceNormalizer all = step_of({true, true, true, false});
  CHECK(text_of(all, "").empty() && text_of(all, "  ").empty() && text_of(all, "\t\t").empty());
  CHECK(text_of(all, "  x   y\t\t") == "▁x▁y");
  CHECK(text_of(all, "ab") == "▁x" && text_of(all, "xabq y") == "▁x▁▁x▁▁y");
  CHECK(text_of(all, "x▁ ▁") == "▁x");
  CHECK(text_of(all, "▁").empty());
  const SentencePieceNormalizer kept = step_of({true, false, false, false});
  CHECK(text_of(kept, "  x ") == "   x ");
  CHECK(text_of(kept, "").empty());
  CHECK((places_of(kept, "x") == Places{{" ", 0, 0}, {"x", 0, 1}}));
  const SentencePieceNormalizer behind = step_of({true, true, true, true});
  CHECK((places_of(behind, " xy ") == Places{{"x", 1, 2}, {"y", 2, 3}, {"▁", 4, 4}}));
}

}  // namespace

int main() {
  the_longest_key();
  symbols_stay();
  spaces();
}

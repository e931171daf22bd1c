// Graphemes by the rules of Unicode's standard annex 29, one case a rule.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/graphemes.hpp"

using namespace bpe_beam;

namespace {

/// The graphemes of a text, each followed by a bar.
std::string barred(std::string_view text) {
  const ExactCopy copy(text);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(copy.view(), at);
    CHECK(end > at && end <= text.size());
    result += std::string(text.substr(at, end - at)) + "|";
    at = end;
  }
  return result;
}

}  // namespace

int main() {
  CHECK(barred("ab c") == "a|b| |c|");
  CHECK(barred("\r\n\n\r") == "\r\n|\n|\r|");
  CHECK(barred("\x01\u0301a\u0301\u0308b") == "\x01|\u0301|a\u0301\u0308|b|");
  CHECK(barred("a\u0903a\u200Db") == "a\u0903|a\u200D|b|");
  CHECK(barred("\u0600a\u0600\n") == "\u0600a|\u0600|\n|");
  CHECK(barred("\u1100\u1161\u11A8\u1100\uAC00\u11A8\uAC01\u1161") ==
        "\u1100\u1161\u11A8|\u1100\uAC00\u11A8|\uAC01|\u1161|");
  CHECK(barred("🇻🇳🇻🇳🇻") == "🇻🇳|🇻🇳|🇻|");
  CHECK(barred("👩\u200D👧👩\u0301\u200D👧👩\u200D\u200D👧") ==
        "👩\u200D👧|👩\u0301\u200D👧|👩\u200D\u200D|👧|");
  CHECK(barred("a\u200D👧") == "a\u200D|👧|");
  CHECK(barred("\u0915\u094D\u0937\u0915\u094D\u200D\u0937\u0915\u0301\u0937") ==
        "\u0915\u094D\u0937|\u0915\u094D\u200D\u0937|\u0915\u0301|\u0937|");
  CHECK(barred("\u0915\u094D\u200C\u0937") == "\u0915\u094D\u200C|\u0937|");
  CHECK(barred("\xFF\u0301\xC3") == "\xFF|\u0301|\xC3|");
}

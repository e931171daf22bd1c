// What models share: ids by token, and the whole word as one token.
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "encode/word_model.hpp"
#include "encode_word.hpp"

using namespace bpe_beam;

namespace {

struct OneToken : WordModel {
  void encode(std::string_view word, bool, ModelState& state) const override {
    check_size(word);
    if (word == "?") throw MissingSymbol{0, 1};
    one_token(word, 5, state);
  }
};

void tokens_by_text() {
  const TokenMap tokens({{"a", 3}, {"", 4}, {std::string("a\0b", 3), 0}, {"a", 9}});
  CHECK(tokens.find("a") == 3);  // the first of two
  CHECK(tokens.find("") == 4);
  CHECK(tokens.find(std::string_view("a\0b", 3)) == 0);
  CHECK(tokens.find("b") == kNoId && tokens.find(std::string_view("a\0", 2)) == kNoId);
  CHECK(TokenMap({}).find("") == kNoId);
}

void one_token_for_a_word() {
  CHECK((encoded(OneToken(), "word") == Encoded{{{5, 4}}}));
  CHECK((encoded(OneToken(), "?") == Encoded{{}, true, 0, 1}));
}

}  // namespace

int main() {
  tokens_by_text();
  one_token_for_a_word();
}

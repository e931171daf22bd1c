// Tokens of JSON are read whole or refused, and never beyond the end of the text.
#include "read/json_scanner.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

/// Opens the scanner to the test, over a copy whose end a sanitizer watches.
class Opened : private JsonScanner {
 public:
  explicit Opened(std::string_view text) : JsonScanner(text) {}

  bool number() { return read_number() && at_ == end_; }
  bool string() {
    JsonString ignored;
    return peek() == '"' && read_string(ignored) && at_ == end_;
  }
  /// Reads the string in one pass and in two, which must agree.
  bool copied_string() {
    const char* const begin = at_;
    Strings in_one(0), in_two(0);
    const bool copied = peek() == '"' && copy_string(in_one);
    const char* const behind = at_;
    at_ = begin;
    JsonString string;
    const bool read = peek() == '"' && read_string(string) && append_unescaped(string, in_two);
    CHECK(copied == read && in_one.bytes() == in_two.bytes());
    CHECK(behind == (copied ? at_ : begin));
    return copied;
  }
  bool key() {
    JsonString ignored;
    return read_key(ignored) && at_ == end_;
  }
  bool literal() { return read_literal("null") && at_ == end_; }
};

template <bool (Opened::*kRead)()>
bool reads(std::string_view text) {
  const ExactCopy copy(text);
  return (Opened(copy.view()).*kRead)();
}

}  // namespace

int main() {
  for (const char* const good : {"0", "-0", "12", "1.5", "-1e5", "1E+5", "0.0e-0"}) {
    CHECK(reads<&Opened::number>(good));
  }
  for (const char* const bad : {"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "1 "}) {
    CHECK(!reads<&Opened::number>(bad));
  }
  for (const char* const good : {"\"\"", "\"a b\"", "\"\\n\\u00e9\\\"\""}) {
    CHECK(reads<&Opened::string>(good));
  }
  for (const char* const bad : {"", "a", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\n\""}) {
    CHECK(!reads<&Opened::string>(bad));
  }
  for (const char* const good : {"\"\"", "\"a b\" ", "\"\\n\\u00e9\\\"\",", "\"\\ud83d\\ude00\""}) {
    CHECK(reads<&Opened::copied_string>(good));
  }
  const std::string_view letters = "\"\\ud8c0aFn\x1f\xc3\xa9";
  std::uint64_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = "\"";
    do {
      state = state * 6364136223846793005 + 1442695040888963407;
      text += letters[(state >> 33) % letters.size()];
    } while ((state >> 60) != 0);
    reads<&Opened::copied_string>(text);
  }
  CHECK(reads<&Opened::key>("\"a\" :") && !reads<&Opened::key>("\"a\"") &&
        !reads<&Opened::key>("a:"));
  CHECK(reads<&Opened::literal>("null") && !reads<&Opened::literal>("nul"));
}

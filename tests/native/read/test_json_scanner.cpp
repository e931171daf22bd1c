// Tokens of JSON are read whole or refused, and never beyond the end of the text.
#include "read/json_scanner.hpp"

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
  CHECK(reads<&Opened::key>("\"a\" :") && !reads<&Opened::key>("\"a\"") &&
        !reads<&Opened::key>("a:"));
  CHECK(reads<&Opened::literal>("null") && !reads<&Opened::literal>("nul"));
}

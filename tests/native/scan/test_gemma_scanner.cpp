// Gemma's words, case by case.
#include "scan/gemma_scanner.hpp"
#include "words.hpp"

using namespace bpe_beam;

int main() {
  CHECK(gives<Gemma>("", {}));
  CHECK(gives<Gemma>("Hello, world!  x ", {"Hello,", " world!", "  x", " "}));
  CHECK(gives<Gemma>("a\r\n\n  b\tc", {"a", "\r\n\n", "  b\tc"}));
  CHECK(gives<Gemma>("\n \n", {"\n", " ", "\n"}));
  CHECK(gives<Gemma>("語\xFF 1", {"語\xFF", " 1"}));
}

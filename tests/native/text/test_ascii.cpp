// Ends of runs: every byte at every place of a word, with nothing behind the end to read.
#include <cstddef>
#include <string>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/ascii.hpp"

using namespace bpe_beam;

namespace {

void runs_end_at_the_first_other_byte() {
  for (std::size_t size = 0; size <= 20; ++size) {
    const std::string plain(size, 'x');
    CHECK(ascii_run_end(ExactCopy(plain).view(), 0) == size);
    CHECK(printable_run_end(ExactCopy(plain).view(), 0) == size);
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text = plain;
        text[place] = static_cast<char>(byte);
        const ExactCopy copy(text);
        for (const std::size_t at : {std::size_t{0}, place, place + 1}) {
          const bool behind = at > place;
          const bool printable = byte >= ' ' && byte <= '~';
          CHECK(ascii_run_end(copy.view(), at) == (behind || byte < 0x80 ? size : place));
          CHECK(printable_run_end(copy.view(), at) == (behind || printable ? size : place));
        }
      }
    }
  }
}

void several_others() {
  CHECK(ascii_run_end("abc\x80\xFF\x80xyzabc", 0) == 3);
  CHECK(printable_run_end("abcdef\x7F\xFF\x1F", 0) == 6);
}

void lower() {
  for (int c = -128; c < 128; ++c) {
    const char expected = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    CHECK(lower_ascii(static_cast<char>(c)) == expected);
  }
}

}  // namespace

int main() {
  runs_end_at_the_first_other_byte();
  several_others();
  lower();
}

// What scanners are made of: characters, runs, contractions, numbers, spaces.
#include <cstddef>
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/char_runs.hpp"

using namespace bpe_beam;
using namespace std::string_view_literals;

namespace {

std::size_t contraction(std::string_view bytes) {
  const ExactCopy text(bytes);
  const std::string_view view = text.view();
  return any_case_contraction(view.data(), view.data() + view.size());
}

void contractions() {
  for (const auto text : {"'s"sv, "'T"sv, "'m"sv, "'D"sv, "'sx"sv}) CHECK(contraction(text) == 2);
  for (const auto text : {"'ll"sv, "'Ve"sv, "'rE"sv, "'LLx"sv, "'\u017F"sv, "'\u017Fs"sv}) {
    CHECK(contraction(text) == 3);
  }
  // Control characters become lower letters of no kind, and half a long s is none.
  for (const auto text : {""sv, "'"sv, "s"sv, "'l"sv, "'lx"sv, "'ev"sv, "'\x13"sv, "'\x0C\x0C"sv,
                          "'\xC5"sv, "'\xC5\xBE"sv, "\u2019s"sv, "'\u212A"sv}) {
    CHECK(contraction(text) == 0);
  }
}

std::size_t letters_before(char c, std::size_t letters, bool either_case) {
  std::string bytes(8, '.');
  for (std::size_t i = 0; i < letters; ++i) bytes[i] = i % 2 == 0 ? 'a' : 'z';
  if (letters < 8) bytes[letters] = c;
  const ExactCopy text(bytes);
  return either_case ? ascii_letters<true>(text.view().data())
                     : ascii_letters<false>(text.view().data());
}

void eight_letters_at_a_time() {
  for (std::size_t letters = 0; letters <= 8; ++letters) {
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const bool lower = c >= 'a' && c <= 'z';
      const bool upper = c >= 'A' && c <= 'Z';
      const std::size_t full = letters == 8 ? 0 : 1;
      CHECK(letters_before(c, letters, true) == letters + (lower || upper ? full : 0));
      CHECK(letters_before(c, letters, false) == letters + (lower ? full : 0));
    }
  }
}

std::size_t numbers(std::string_view bytes, std::size_t most) {
  const ExactCopy text(bytes);
  const char* const start = text.view().data();
  return static_cast<std::size_t>(numbers_end(start, start + bytes.size(), most) - start);
}

std::size_t spaces(std::string_view bytes) {
  const ExactCopy text(bytes);
  const char* const start = text.view().data();
  return static_cast<std::size_t>(spaces_or_lines_end(start, start + bytes.size()) - start);
}

void runs() {
  CHECK(numbers("12345", 3) == 3 && numbers("12", 3) == 2 && numbers("1a", 3) == 1);
  CHECK(numbers("½½½½", 2) == 4 && numbers("a", 1) == 0 && numbers("", 1) == 0);
  CHECK(spaces("   ") == 3 && spaces("   x") == 2 && spaces(" x") == 1);
  CHECK(spaces("\n") == 1 && spaces(" \n  ") == 2 && spaces(" \n \r x") == 4);
  CHECK(spaces("\u3000\u3000x") == 3 && spaces("\u3000\n\u3000x") == 4);
  const ExactCopy broken("\xC3");
  const CharBits bits = bits_at(broken.view().data(), broken.view().data() + 1);
  CHECK(bits.bits == 0 && bits.size == 1);
}

}  // namespace

int main() {
  contractions();
  eight_letters_at_a_time();
  runs();
}

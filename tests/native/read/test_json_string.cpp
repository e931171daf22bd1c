// Strings of JSON: every length and place of what ends a run, with no byte to spare on either side.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"
#include "read/json_string.hpp"

using namespace bpe_beam;

namespace {

void test_plain_runs() {
  for (const char stop : {'"', '\\', '\x1f', '\0'}) {
    for (std::size_t before = 0; before < 40; ++before) {
      for (std::size_t behind = 0; behind < 20; ++behind) {
        for (const char filler : {'x', ' ', '!', '\x7f', '\x80', '\xa2', '\xdc', '\xff'}) {
          std::string text(before, filler);
          text += stop;
          text.append(behind, filler);
          const ExactCopy copy(text);
          const char* const begin = copy.view().data();
          CHECK(end_of_plain(begin, begin + text.size()) == begin + before);
          CHECK(end_of_plain(begin, begin + before) == begin + before);
        }
      }
    }
  }
}

void test_copies() {
  for (const char stop : {'"', '\\', '\x1f'}) {
    for (std::size_t before = 0; before < 80; ++before) {
      for (std::size_t behind = 0; behind < 40; ++behind) {
        std::string text;
        for (std::size_t i = 0; i < before; ++i) text += static_cast<char>('a' + i % 26);
        const std::string run = text;
        if (behind > 0) text += stop + std::string(behind - 1, behind % 3 == 0 ? stop : 'x');
        const ExactCopy copy(text);
        const auto to = std::make_unique<char[]>(text.size());
        const char* const begin = copy.view().data();
        CHECK(copy_plain(begin, begin + text.size(), to.get()) == begin + before);
        CHECK(std::string_view(to.get(), before) == run);
      }
    }
  }
}

/// What copy_string makes of a string without its opening quote.
std::optional<std::string> copied(std::string_view raw) {
  const ExactCopy copy(raw);
  const auto to = std::make_unique<char[]>(raw.size());
  const char* const begin = copy.view().data();
  const auto [quote, end] = copy_string(begin, begin + raw.size(), to.get());
  if (quote == nullptr) return std::nullopt;
  CHECK(*quote == '"');
  return std::string(to.get(), end);
}

void test_escapes() {
  for (std::size_t before = 0; before < 40; ++before) {
    const std::string filler(before, '.');
    const std::string raw = filler + R"(\n\"\\\/\b\f\r\t\u0041\u00e9\u20ac\ud83d\ude00)" + filler;
    const std::string meant = filler + "\n\"\\/\b\f\r\tA\u00e9\u20ac\U0001f600" + filler;
    Strings out(4);
    out.append("x");
    const ExactCopy copy(raw);
    CHECK(append_unescaped({copy.view(), true}, out));
    CHECK(out.bytes() == "x" + meant);
    CHECK(copied(raw + '"') == meant && copied(raw + "\"behind") == meant);
    for (const std::string_view half :
         {R"(\ud83d)", R"(\ude00)", R"(\ud83d\u0041)", R"(\ud83dx)"}) {
      const std::string wrong = filler + std::string(half);
      const ExactCopy wrong_copy(wrong);
      CHECK(!append_unescaped({wrong_copy.view(), true}, out));
      CHECK(out.bytes() == "x" + meant);
      CHECK(!copied(wrong + '"'));
    }
    for (const std::string_view wrong :
         {"", "\\", "\\\"", "\\x\"", "\\u12g4\"", "\\u123", "\n\"", "\\n"}) {
      CHECK(!copied(filler + std::string(wrong)));
    }
  }
}

}  // namespace

int main() {
  test_plain_runs();
  test_copies();
  test_escapes();
}

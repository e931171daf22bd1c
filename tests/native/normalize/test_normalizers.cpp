// Each normalizer: its text, the places it gives, malformed bytes.
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "normalize/normalizers.hpp"

using namespace bpe_beam;

namespace {

std::unique_ptr<Normalizer> replace(std::string from, std::string to) {
  return std::make_unique<Replace>(std::make_unique<LiteralMatcher>(std::move(from)),
                                   std::move(to));
}

void lowercase() {
  const Lowercase step;
  CHECK(text_of(step, "") == "");
  CHECK(text_of(step, "ABCxyz [`{@") == "abcxyz [`{@");
  CHECK(text_of(step, "É\u4E00Ω") == "é\u4E00ω");
  CHECK(text_of(step, "ΑΣ") == "ασ");  // no rule for a final sigma
  CHECK(places_of(step, "Aİ") == std::vector<Placed>{{"a", 0, 1}, {"i", 1, 3}, {"\u0307", 1, 3}});
  CHECK(text_of(step, "A\xFF\xC3") == "a\xFF\xC3");
  // Longer than the buffer of one piece.
  CHECK(text_of(step, std::string(1000, 'Q')) == std::string(1000, 'q'));
}

void strip_accents() {
  const StripAccents step;
  CHECK(text_of(step, "ée\u0301\u0903\u20DDx\u0301") == "éex");
  CHECK(places_of(step, "\u0301a\u0301b") == std::vector<Placed>{{"a", 2, 3}, {"b", 5, 6}});
  CHECK(text_of(step, "\xCC") == "\xCC");
}

void strip() {
  CHECK(text_of(Strip(true, true), " \u3000\u0085a b\u2028\n") == "a b");
  CHECK(text_of(Strip(true, false), " a ") == "a ");
  CHECK(text_of(Strip(false, true), " a ") == " a");
  CHECK(text_of(Strip(false, false), " a ") == " a ");
  CHECK(text_of(Strip(true, true), " \u3000 ") == "");
  CHECK(text_of(Strip(false, true), "\u3000\u3000") == "");
  CHECK(places_of(Strip(true, true), "\u3000a ") == std::vector<Placed>{{"a", 3, 4}});
  // No spaces: a zero-width one, cut ones.
  for (const char* text : {"\u200B", "\x80\x80", "\xE3\x80", "\x80\x80\x80\x80\x80"}) {
    CHECK(text_of(Strip(true, true), text) == text);
  }
}

void prepend() {
  CHECK(text_of(Prepend("xy"), "") == "");
  CHECK(places_of(Prepend("xé"), "ab") ==
        std::vector<Placed>{{"x", 0, 1}, {"é", 0, 1}, {"a", 0, 1}, {"b", 1, 2}});
  CHECK(text_of(Prepend(""), "a") == "a");
}

void byte_level() {
  const ByteLevelText step;
  CHECK(text_of(step, "a b\n~") == "aĠbĊ~");
  CHECK(places_of(step, "é") == std::vector<Placed>{{"Ã", 0, 2}, {"©", 0, 2}});
  CHECK(text_of(step, "\x7F\xA0\xAD\xFF") == "ġłŃÿ");
}

void replaces() {
  CHECK(places_of(*replace(" ", "__"), "a b") ==
        std::vector<Placed>{{"a", 0, 1}, {"_", 1, 2}, {"_", 1, 2}, {"b", 2, 3}});
  // What replaces several characters has the place of the last of them.
  CHECK(places_of(*replace("éa", "x"), "béac") ==
        std::vector<Placed>{{"b", 0, 1}, {"x", 3, 4}, {"c", 4, 5}});
  CHECK(text_of(*replace("aa", ""), "aaaba") == "aba");
  // Empty matches: the place of the character before, at the beginning none.
  CHECK(places_of(*replace("", "-"), "é") ==
        std::vector<Placed>{{"-", 0, 0}, {"é", 0, 2}, {"-", 0, 2}});
  CHECK(text_of(*replace("", "-"), "") == "");
  const Replace word_end(std::make_unique<WordEndMatcher>(), "_");
  CHECK(text_of(word_end, "hug pug") == "hug_ pug_");
  CHECK(text_of(*replace("\xFF", "?"), "a\xFF\xFE") == "a?\xFE");
}

std::unique_ptr<Normalizer> several_steps() {
  std::vector<std::unique_ptr<Normalizer>> inner;
  inner.push_back(std::make_unique<FormNormalizer>(NormalizationForm::kNfd));
  inner.push_back(std::make_unique<StripAccents>());
  std::vector<std::unique_ptr<Normalizer>> steps;
  steps.push_back(std::make_unique<Lowercase>());
  steps.push_back(std::make_unique<NormalizerSequence>(std::move(inner)));
  steps.push_back(std::make_unique<Prepend>("_"));
  steps.push_back(replace(" ", "_"));
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

void sequences() {
  CHECK(text_of(NormalizerSequence({}), "aB") == "aB");
  const auto step = several_steps();
  CHECK(places_of(*step, "É Ab") ==
        std::vector<Placed>{{"_", 0, 2}, {"e", 0, 2}, {"_", 2, 3}, {"a", 3, 4}, {"b", 4, 5}});
  CHECK(text_of(*step, "") == "");
}

void threads_share_a_step() {
  const auto step = several_steps();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&step, t] {
      const std::string word(static_cast<std::size_t>(t + 1), 'X');
      for (int i = 0; i < 200; ++i) {
        CHECK(text_of(*step, "É " + word) == "_e_" + std::string(word.size(), 'x'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  lowercase();
  strip_accents();
  strip();
  prepend();
  byte_level();
  replaces();
  sequences();
  threads_share_a_step();
}

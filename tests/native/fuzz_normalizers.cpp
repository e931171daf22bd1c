// Every normalizer on any bytes: it ends, keeps places within the text, gives the same with and
// without them, and does to a text what it does to its parts where nothing can pass between them.
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "fuzz_input.hpp"
#include "normalize/bert_normalizer.hpp"
#include "normalize/normalizers.hpp"

using namespace bpe_beam;

namespace {

std::unique_ptr<Normalizer> literal(std::string from, std::string to) {
  return std::make_unique<Replace>(std::make_unique<LiteralMatcher>(std::move(from)),
                                   std::move(to));
}

std::unique_ptr<Normalizer> any_step(FuzzInput& input, int depth) {
  switch (input.below(depth > 3 ? 12 : 13)) {
    case 0: return std::make_unique<FormNormalizer>(NormalizationForm::kNfc);
    case 1: return std::make_unique<FormNormalizer>(NormalizationForm::kNfd);
    case 2: return std::make_unique<FormNormalizer>(NormalizationForm::kNfkc);
    case 3: return std::make_unique<FormNormalizer>(NormalizationForm::kNfkd);
    case 4: return std::make_unique<Lowercase>();
    case 5: return std::make_unique<StripAccents>();
    case 6: return std::make_unique<Strip>(input.below(2) == 0, input.below(2) == 0);
    case 7: return std::make_unique<Prepend>(input.word(input.below(3), "_a"));
    case 8: return std::make_unique<ByteLevelText>();
    case 9: return literal(input.word(input.below(4), "ab "), input.word(input.below(3), "ab"));
    case 10: return std::make_unique<Replace>(std::make_unique<WordEndMatcher>(), "_");
    case 11: {
      const std::uint32_t bits = input.below(16);
      return std::make_unique<BertNormalizer>(
          BertSteps{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0});
    }
    default: {
      std::vector<std::unique_ptr<Normalizer>> steps;
      for (std::uint32_t i = input.below(4); i > 0; --i)
        steps.push_back(any_step(input, depth + 1));
      return std::make_unique<NormalizerSequence>(std::move(steps));
    }
  }
}

std::string any_text(FuzzInput& input) {
  if (input.below(4) == 0) return std::string(input.rest());
  constexpr std::string_view kPieces[] = {
      "a",      "B",      " ",      "é",      "\u0301", "\u0323",     "\u0344",     "ﬁ",
      "가",     "\u1100", "\u1161", "\u11A8", "\xE3",   "\x80",       "abcdefgh",   "中",
      "\u302E", "\x01",   "\n",     "\uFDFA", "İ",      "\U0001D165", "\U0001D15E", "\u09C7\u09BE"};
  std::string text;
  while (!input.empty()) text += kPieces[input.below(std::size(kPieces))];
  return text;
}

/// A form normalizes pieces between ASCII letters by themselves; doing it twice changes nothing.
void check_form(NormalizationForm form, const std::string& text) {
  const FormNormalizer step(form);
  const std::string whole = text_of(step, text);
  CHECK(text_of(step, whole) == whole);
  CHECK(text_of(step, text + "\nx" + text) == whole + "\n" + text_of(step, "x" + text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto step = any_step(input, 0);
  const std::string text = any_text(input);
  places_of(*step, text);
  for (const auto form : {NormalizationForm::kNfc, NormalizationForm::kNfd,
                          NormalizationForm::kNfkc, NormalizationForm::kNfkd}) {
    check_form(form, text);
  }
  return 0;
}

// Steps of pre-tokenizers: each kind and behavior by example, and any steps against the definition.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "naive_pipeline.hpp"
#include "scan/pretokenizers.hpp"

using namespace bpe_beam;

namespace {

using Words = std::vector<std::string>;

StepSpec scan(std::string name) { return {.kind = StepSpec::kScan, .text = std::move(name)}; }

StepSpec split(std::string at, SplitBehavior behavior, bool invert = false) {
  return {.kind = StepSpec::kSplit, .text = std::move(at), .behavior = behavior, .flag = invert};
}

StepSpec prepend(std::string text, bool first_only) {
  return {.kind = StepSpec::kPrepend, .text = std::move(text), .flag = first_only};
}

StepSpec rewrite(std::uint32_t normalizer) {
  return {.kind = StepSpec::kRewrite, .text = "", .normalizer = normalizer};
}

/// What some steps leave of a text. Checks that it is the same without origins, where they are not
/// needed.
NaivePieces pieces_of(const std::vector<StepSpec>& steps, std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::vector<Origin> origins = own_places(bytes);
  Segments with, without;
  with.reset({copy.view(), origins.data()});
  without.reset({copy.view(), nullptr});
  bool needed = false;
  for (const StepSpec& spec : steps) {
    const auto step = spec.make();
    needed = needed || step->needs_origins();
    step->apply(with);
    step->apply(without);
  }
  NaivePieces pieces;
  for (const Word& span : with.spans()) pieces.push_back(NaivePiece::of(with.segment(span)));
  if (!needed) {
    CHECK(without.spans().size() == pieces.size() && without.text().origins == nullptr);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      CHECK(without.segment(without.spans()[i]).bytes == pieces[i].bytes);
    }
  }
  return pieces;
}

Words words_of(const std::vector<StepSpec>& steps, std::string_view text) {
  Words words;
  for (const NaivePiece& piece : pieces_of(steps, text)) words.push_back(piece.bytes);
  return words;
}

void no_steps() {
  CHECK(words_of({}, "a b") == Words{"a b"});
  CHECK(words_of({}, "").empty());
}

void scans() {
  CHECK(words_of({scan("gpt2")}, "a b") == (Words{"a", " b"}));
  CHECK(words_of({scan("whitespace_split")}, "  a  b ") == (Words{"a", "b"}));
  CHECK(words_of({scan("whitespace_split")}, "   ").empty());
  CHECK(words_of({scan("whitespace_split"), scan("digits")}, "a1 23") == (Words{"a", "1", "23"}));
  CHECK(ScanStep("bert").name() == "bert");
  CHECK_THROWS(std::invalid_argument, ScanStep("nonesuch"));
}

void behaviors() {
  const std::string_view text = "--a-b--c-";
  CHECK(words_of({split("-", SplitBehavior::kRemoved)}, text) == (Words{"a", "b", "c"}));
  CHECK(words_of({split("-", SplitBehavior::kIsolated)}, text) ==
        (Words{"-", "-", "a", "-", "b", "-", "-", "c", "-"}));
  CHECK(words_of({split("-", SplitBehavior::kContiguous)}, text) ==
        (Words{"--", "a", "-", "b", "--", "c", "-"}));
  CHECK(words_of({split("-", SplitBehavior::kMergedWithPrevious)}, text) ==
        (Words{"-", "-", "a-", "b-", "-", "c-"}));
  CHECK(words_of({split("-", SplitBehavior::kMergedWithNext)}, text) ==
        (Words{"-", "-a", "-b", "-", "-c", "-"}));
  // Inverted, what lies between is what matches.
  CHECK(words_of({split("-", SplitBehavior::kRemoved, true)}, "a-b--") == (Words{"-", "-", "-"}));
  CHECK(words_of({split("-", SplitBehavior::kMergedWithPrevious, true)}, "a-b") ==
        (Words{"a", "-b"}));
  CHECK(words_of({split("-", SplitBehavior::kMergedWithNext, true)}, "a-b") == (Words{"a-", "b"}));
  // Empty matches cut between characters.
  CHECK(words_of({split("", SplitBehavior::kIsolated)}, "aé") == (Words{"a", "é"}));
}

void rewrites() {
  const NaivePieces pieces = pieces_of({scan("whitespace_split"), rewrite(8)}, "ab aa ba");
  CHECK((pieces == NaivePieces{{"b", {{1, 2}}}, {"b", {{6, 7}}}}));
  CHECK(words_of({rewrite(1), rewrite(5), rewrite(1)}, "AB") == Words{"▁ab"});
}

void prepends() {
  CHECK(words_of({scan("whitespace_split"), prepend("▁", false)}, "a ▁b c") ==
        (Words{"▁a", "▁b", "▁c"}));
  CHECK(words_of({scan("whitespace_split"), prepend("▁", true)}, "a b") == (Words{"▁a", "b"}));
  CHECK(words_of({scan("whitespace_split"), prepend("▁", true)}, " a b") == (Words{"a", "b"}));
  CHECK(prepend("", true).make()->needs_origins() && !prepend("", false).make()->needs_origins());
  const NaivePieces pieces = pieces_of({prepend("_", false)}, "éa");
  CHECK((pieces == NaivePieces{{"_éa", {{0, 2}, {0, 2}, {0, 2}, {2, 3}}}}));
}

/// One object for text after text, as the pipeline uses it.
void used_again() {
  const auto step = rewrite(1).make();
  Segments pieces;
  for (const std::string_view text : {"ABC", "", "D", "EFGHIJKLMNOPQRSTUVWXYZ"}) {
    const ExactCopy copy(text);
    pieces.reset({copy.view(), nullptr});
    for (int i = 0; i < 3; ++i) step->apply(pieces);
    CHECK(pieces.spans().size() == (text.empty() ? 0 : 1));
    if (!text.empty()) CHECK(pieces.segment(pieces.spans()[0]).bytes.size() == text.size());
  }
}

void any_steps_equal_the_definition() {
  std::mt19937 random(14);
  std::size_t words = 0;
  for (int round = 0; round < 8'000; ++round) {
    std::vector<std::uint8_t> bytes(80);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    FuzzInput input(bytes.data(), bytes.size());
    PipelineSpec spec;
    for (std::uint32_t left = input.below(4) + 1; left > 0; --left) {
      spec.steps.push_back(any_step(input));
    }
    const std::string text = any_text(input, input.below(30));
    const std::vector<Event> expected = spec.run(text, {});
    const NaivePieces found = pieces_of(spec.steps, text);
    CHECK(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == expected[i].text);
    words += found.size();
  }
  CHECK(words > 8'000);
}

void a_million_pieces() {
  std::string text;
  while (text.size() < 1'000'000) text += "a-";
  for (int behavior = 0; behavior < 5; ++behavior) {
    for (const std::string_view at : {"a", "-", "aa", "a-", ""}) {
      const auto kind = static_cast<SplitBehavior>(behavior);
      const std::vector<StepSpec> steps = {split(std::string(at), kind), prepend("x", true)};
      Segments pieces;
      const std::vector<Origin> origins(text.size());
      pieces.reset({text, origins.data()});
      for (const StepSpec& step : steps) step.make()->apply(pieces);
      CHECK(pieces.spans().size() <= text.size());
    }
  }
}

}  // namespace

int main() {
  no_steps();
  scans();
  behaviors();
  rewrites();
  prepends();
  used_again();
  any_steps_equal_the_definition();
  a_million_pieces();
}

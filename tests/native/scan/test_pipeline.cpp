// The pipeline: the order of its parts by example, and any pipeline against the definition.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "collect.hpp"
#include "naive_pipeline.hpp"
#include "scan/pipeline.hpp"

using namespace bpe_beam;

namespace {

using Allowed = std::vector<std::uint32_t>;

/// Words as [word], added tokens as their ids, with their places.
std::string shown(const PipelineSpec& spec, std::string_view text, const Allowed& allowed = {}) {
  PipelineState state;
  std::string result;
  for (const Event& event : events_of(*spec.make(), text, allowed, state)) {
    const Origin place = event.text.place();
    result +=
        event.id == NaiveCut::kPlain ? "[" + event.text.bytes + "]" : std::to_string(event.id);
    result += "@" + std::to_string(place.begin) + "-" + std::to_string(place.end) + " ";
  }
  return result;
}

AddedToken plain(std::string content, std::uint32_t id) {
  return {.content = std::move(content), .id = id, .special = false};
}

StepSpec scan(std::string name) { return {.kind = StepSpec::kScan, .text = std::move(name)}; }

PipelineSpec scanning(std::string name) {
  PipelineSpec spec;
  spec.steps = {scan(std::move(name))};
  return spec;
}

void words_alone() {
  CHECK(shown(PipelineSpec(), "") == "");
  CHECK(shown(PipelineSpec(), "a b") == "[a b]@0-3 ");
  CHECK(shown(scanning("gpt2"), "é b") == "[é]@0-2 [ b]@2-4 ");
  CHECK(shown(scanning("whitespace"), "  ") == "");
  CHECK(shown(scanning("whitespace"), " a,") == "[a]@1-2 [,]@2-3 ");
}

/// Raw tokens before normalizing, normalized ones after it.
void added_tokens_before_and_after_the_normalizer() {
  PipelineSpec spec = scanning("gpt2");
  spec.normalizer = 1;  // lowercase
  spec.raw = {plain("AB", 1)};
  spec.clean = {plain("cd", 2)};
  CHECK(shown(spec, "ab AB") == "[ab]@0-2 [ ]@2-3 1@3-5 ");
  CHECK(shown(spec, "xCDy") == "[x]@0-1 2@1-3 [y]@3-4 ");
  spec.clean.push_back(plain("b", 3));
  CHECK(shown(spec, "ABB") == "1@0-2 3@2-3 ");
  // Each piece between added tokens is normalized by itself.
  spec.normalizer = 5;  // prepend
  CHECK(shown(spec, "aABa") == "[▁]@0-1 [a]@0-1 1@1-3 [▁]@3-4 [a]@3-4 ");
}

/// The words before an added token are scanned as if the text ended there.
void words_end_at_added_tokens() {
  PipelineSpec spec = scanning("gpt2");
  spec.raw = {{"<s>", 1}, {"cd", 2}};
  CHECK(shown(spec, "  <s>", {1}) == "[  ]@0-2 1@2-5 ");
  CHECK(shown(spec, "  <s>") == "[ ]@0-1 [ <]@1-3 [s]@3-4 [>]@4-5 ");
  CHECK(shown(spec, "bcde", {1}) == "[bcde]@0-4 ");
  CHECK(shown(spec, "bcde", {2}) == "[b]@0-1 2@1-3 [e]@3-4 ");
}

/// A piece stands at the text's beginning by where it comes from, with or without places asked for.
void first_only() {
  PipelineSpec spec = scanning("whitespace_split");
  spec.steps.push_back({.kind = StepSpec::kPrepend, .text = "▁", .flag = true});
  CHECK(shown(spec, "a b") == "[▁a]@0-1 [b]@2-3 ");
  CHECK(shown(spec, " a b") == "[a]@1-2 [b]@3-4 ");
  spec.raw = {plain("<s>", 1)};
  CHECK(shown(spec, "<s>a") == "1@0-3 [a]@3-4 ");
}

/// More words than a sink gets at once, by both ways.
void many_words() {
  for (const std::size_t count : {31, 32, 33, 64, 1000}) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "a ";
    PipelineSpec spec = scanning("whitespace_split");
    PipelineState state;
    CHECK(events_of(*spec.make(), text, {}, state).size() == count);
    spec.steps.push_back(scan("none"));
    CHECK(events_of(*spec.make(), text, {}, state).size() == count);
  }
}

void any_pipelines_equal_the_definition() {
  std::mt19937 random(15);
  std::size_t words = 0;
  std::size_t added = 0;
  for (int round = 0; round < 6'000; ++round) {
    std::vector<std::uint8_t> bytes(200);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    FuzzInput input(bytes.data(), bytes.size());
    const PipelineSpec spec = any_pipeline(input);
    const auto pipeline = spec.make();
    PipelineState state;
    for (int i = 0; i < 3; ++i) {
      const Allowed allowed = any_allowed(input);
      const std::string text = any_text(input, input.below(30));
      const std::vector<Event> events = events_of(*pipeline, text, allowed, state);
      CHECK(events == spec.run(text, allowed));
      for (const Event& event : events) ++(event.id == NaiveCut::kPlain ? words : added);
    }
  }
  CHECK(words > 20'000 && added > 2'000);
}

/// Every part has its turn with a million of the same; something quadratic would not end.
void hostile_texts() {
  const std::vector<std::string> repeated = {"a",    " ",  "-",  "\n", "\u0301",
                                             "\xC3", "<s", "a ", "語"};
  for (std::uint32_t normalizer = 0; normalizer < kNormalizers; ++normalizer) {
    PipelineSpec spec = scanning(std::string(kScannerNames[normalizer % kScannerNames.size()]));
    spec.normalizer = normalizer;
    spec.raw = {{"<s>", 1}, {.content = " ", .id = 2, .lstrip = true, .rstrip = true}};
    spec.clean = {{.content = "\n", .id = 3, .rstrip = true}, plain("-----", 4)};
    spec.steps.push_back({.kind = StepSpec::kSplit, .text = "a"});
    spec.steps.push_back({.kind = StepSpec::kPrepend, .text = "▁", .flag = true});
    const auto pipeline = spec.make();
    PipelineState state;
    for (const std::string& piece : repeated) {
      std::string text;
      while (text.size() < 200'000) text += piece;
      struct Ignoring {
        std::size_t count = 0;
        void words(const TextView&, std::span<const Word> words) { count += words.size(); }
        void added(std::uint32_t, const TextView&) { ++count; }
      } sink;
      const Allowed allowed = {1, 2, 3, 4};
      pipeline->run(text, allowed, false, state, sink);
      CHECK(sink.count <= 20 * text.size());
    }
  }
}

}  // namespace

int main() {
  words_alone();
  added_tokens_before_and_after_the_normalizer();
  words_end_at_added_tokens();
  first_only();
  many_words();
  any_pipelines_equal_the_definition();
  hostile_texts();
}

// The encoder: ids with and without places, the cache, what is missing and where.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "any_model.hpp"
#include "check.hpp"
#include "encode/text_encoder.hpp"
#include "encode_text.hpp"

using namespace bpe_beam;

namespace {

using Allowed = std::vector<std::uint32_t>;
using Places = std::vector<Origin>;

/// Bytes are their ids; some merges.
std::shared_ptr<NaiveByteBpe> byte_bpe(std::vector<MergeRow> rows) {
  auto naive = std::make_shared<NaiveByteBpe>();
  for (std::uint32_t byte = 0; byte < 256; ++byte) naive->byte_ids.push_back(byte);
  naive->rows = std::move(rows);
  return naive;
}

PipelineSpec gpt2() {
  PipelineSpec spec;
  spec.steps.push_back({.kind = StepSpec::kScan, .text = "gpt2"});
  return spec;
}

EncodedText both(const PipelineSpec& pipeline, const std::shared_ptr<NaiveByteBpe>& naive,
                 std::string_view text, const Allowed& allowed = {},
                 std::size_t cache_bytes = 1 << 12) {
  const auto model = std::make_shared<ByteBpeModel>(
      naive->rows, std::span<const std::uint32_t, 256>(naive->byte_ids),
      token_ids(naive->whole_words));
  EncodingState state(cache_bytes);
  const EncodedText result = encoded(TextEncoder(pipeline.make(), model), text, allowed, state);
  CHECK(result == encoded(pipeline, *naive, text, allowed));
  return result;
}

void worked() {
  const auto model = byte_bpe({{'u', 'g', 256}, {'u', 'n', 257}, {'h', 256, 258}});
  const EncodedText result = both(gpt2(), model, "hug unhug");
  CHECK(result.ids == (Ids{258, ' ', 257, 258}));
  CHECK(result.places == (Places{{0, 3}, {3, 4}, {4, 6}, {6, 9}}));
  CHECK(both(gpt2(), model, "").ids.empty());
}

/// A token covers every character that it touches, so one split over two tokens is in both.
void characters_over_two_tokens() {
  const EncodedText result = both(gpt2(), byte_bpe({{0xA9, 0xC3, 256}}), "éé");
  CHECK(result.ids == (Ids{0xC3, 256, 0xA9}));
  CHECK(result.places == (Places{{0, 2}, {0, 4}, {2, 4}}));
}

/// What the normalizer and added spaces made has the place it came from.
void places_through_normalizers() {
  PipelineSpec spec = gpt2();
  spec.normalizer = 3;  // NFKC
  spec.raw = {{"<s>", 500}};
  CHECK(both(spec, byte_bpe({{'f', 'i', 256}}), "ﬁx<s>", {500}).places ==
        (Places{{0, 3}, {3, 4}, {4, 7}}));
}

/// Words that differ in one byte or in their length; of more than four ids, or more than 15 bytes;
/// caches of all sizes.
void the_cache_tells_words_apart() {
  const auto model = byte_bpe({{'a', 'b', 256}, {256, 256, 257}});
  std::string text;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t length = 1; length <= 20; ++length) {
      for (const char letter : {'a', 'b', 'q'}) {
        std::string word(length, letter);
        text += word + " ";
        word[length / 2] = 'b';
        text += word + "\n" + std::string(length, '\0') + "1";
      }
    }
  }
  for (const std::size_t cache_bytes : {0, 1, 100, 1 << 20}) {
    both(gpt2(), model, text, {}, cache_bytes);
  }
}

/// Long words that end in a run of one byte, of which none, two or many are one token.
void words_that_end_in_runs() {
  const auto model = byte_bpe({{' ', ' ', 256}, {256, 256, 257}, {'a', 'b', 258}, {'a', 258, 259}});
  model->byte_ids['z'] = kNoId;
  for (const std::size_t cache_bytes : {0, 100, 1 << 20}) {
    std::string text;
    for (std::size_t length = 1; length <= 40; ++length) {
      for (const std::string run : {" ", "a", "b", "\n", "=", "é"}) {
        for (const std::string before : {"", "\n", "ab", "?"}) {
          text += before;
          for (std::size_t i = 0; i < length; ++i) text += run;
          text += "1\t";
        }
      }
    }
    CHECK(!both(gpt2(), model, text + text, {}, cache_bytes).missing);
    const EncodedText missing =
        both(gpt2(), model, text + std::string(30, 'b') + std::string(30, 'z'), {}, cache_bytes);
    CHECK(missing.missing && missing.missing_place.begin == text.size() + 30);
  }
}

/// The offset of a missing symbol is in the input, and the ids before it are there.
void missing_symbols() {
  const auto model = byte_bpe({{'a', 'b', 256}});
  model->byte_ids['z'] = kNoId;
  PipelineSpec spec = gpt2();
  spec.raw = {{"<s>", 500}};
  const auto missing_at = [&](std::string_view text, const Allowed& allowed = {}) {
    const EncodedText result = both(spec, model, text, allowed);
    CHECK(result.missing && result.missing_place.end > result.missing_place.begin);
    return result.missing_place.begin;
  };
  CHECK(missing_at("z") == 0 && missing_at("abz") == 2 && missing_at("ab1ab z") == 6);
  CHECK(missing_at(std::string(100, 'a') + "z") == 100);  // in a long word
  CHECK(missing_at("z<s>", {500}) == 0 && missing_at("<s>ab<s>bz", {500}) == 9);
  CHECK(both(spec, model, "ab ab z ab").ids == (Ids{256, ' ', 256}));
  CHECK(!both(spec, model, "abab").missing);
  // Of a character that became two: the whole of what it was.
  spec.normalizer = 6;  // byte-level characters
  model->byte_ids[0xC4] = kNoId;
  CHECK((both(spec, model, "a b").missing_place == Origin{1, 2}));
}

void any_encoders_equal_the_definition() {
  std::mt19937 random(16);
  std::size_t missing = 0;
  std::size_t whole = 0;
  for (int round = 0; round < 4'000; ++round) {
    std::vector<std::uint8_t> bytes(500);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    FuzzInput input(bytes.data(), bytes.size());
    const PipelineSpec pipeline = any_pipeline(input);
    const AnyModel model = any_model(input);
    const TextEncoder encoder(pipeline.make(), model.model);
    EncodingState state(input.below(8) * 100);
    for (int i = 0; i < 4; ++i) {
      const Allowed allowed = any_allowed(input);
      const std::string text = any_text(input, input.below(40));
      const EncodedText result = encoded(encoder, text, allowed, state);
      CHECK(result == encoded(pipeline, *model.naive, text, allowed));
      ++(result.missing ? missing : whole);
    }
  }
  CHECK(missing > 1'000 && whole > 5'000);
}

/// Different words, some more than a batch has parts; of a missing symbol the words before it are
/// there.
void any_words_equal_the_definition() {
  std::mt19937 random(17);
  std::size_t missing = 0, several = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::uint8_t> bytes(4'000);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    FuzzInput input(bytes.data(), bytes.size());
    const AnyModel model = any_model(input);
    const TextEncoder encoder(PipelineSpec{}.make(), model.model);
    std::string data;
    std::vector<std::int64_t> bounds{0};
    Ids expected;
    std::vector<std::size_t> expected_ends;
    bool expected_missing = false;
    for (std::uint32_t left = input.below(200); left > 0; --left) {
      const std::string word = any_text(input, 1 + input.below(left % 10 == 0 ? 40 : 6));
      if (word.empty()) continue;
      data += word;
      bounds.push_back(static_cast<std::int64_t>(data.size()));
      if (expected_missing) continue;
      try {
        for (const Symbol& symbol : model.naive->encode(word)) expected.push_back(symbol.id);
        expected_ends.push_back(expected.size());
      } catch (const MissingSymbol&) {
        expected_missing = true;
      }
    }
    const ExactCopy copy(data);
    EncodingState state(input.below(8) * 100);
    for (int again = 0; again < 2; ++again) {
      IdBuffer ids;
      std::vector<std::size_t> ends;
      bool found_missing = false;
      try {
        encoder.encode_words(copy.view(), bounds, state, ids, [&] { ends.push_back(ids.size()); });
      } catch (const MissingSymbol&) {
        found_missing = true;
        ids.cut(ends.empty() ? 0 : ends.back());
        expected.resize(expected_ends.empty() ? 0 : expected_ends.back());
      }
      CHECK(found_missing == expected_missing && ends == expected_ends);
      CHECK(Ids(ids.ids().begin(), ids.ids().end()) == expected);
    }
    missing += expected_missing;
    several += expected_ends.size() > 100;
  }
  CHECK(missing > 200 && several > 200);
}

void a_million_letters() {
  std::vector<MergeRow> rows = {{'a', 'a', 256}};
  for (std::uint32_t id = 256; id < 264; ++id) rows.push_back({id, id, id + 1});
  const auto naive = byte_bpe(rows);
  const auto model = std::make_shared<ByteBpeModel>(
      rows, std::span<const std::uint32_t, 256>(naive->byte_ids), TokenIds{});
  EncodingState state(1 << 12);
  const EncodedText result =
      encoded(TextEncoder(gpt2().make(), model), std::string(1'000'000, 'a'), {}, state);
  CHECK(result.ids.size() == 1'000'000 / 512 + 1 && result.ids.back() == 261);
  CHECK((result.places.back() == Origin{999'936, 1'000'000}));
}

}  // namespace

int main() {
  worked();
  characters_over_two_tokens();
  places_through_normalizers();
  the_cache_tells_words_apart();
  words_that_end_in_runs();
  missing_symbols();
  any_encoders_equal_the_definition();
  any_words_equal_the_definition();
  a_million_letters();
}

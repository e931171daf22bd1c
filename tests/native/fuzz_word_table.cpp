// The word table against std::map: texts, counted words, tables added, split and put together.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "count/word_table.hpp"
#include "fuzz_input.hpp"
#include "naive_pipeline.hpp"

using namespace bpe_beam;

namespace {

struct Entry {
  std::int64_t count = 0;
  WordPosition place{~std::uint64_t{0}, ~std::uint64_t{0}};
};

class Reference {
 public:
  void add(std::string_view word, std::int64_t count, WordPosition place) {
    Entry& entry = entries[std::string(word)];
    entry.count += count;
    entry.place = std::min(entry.place, place);
  }

  void add_text(std::string_view text, const PipelineSpec& pipeline,
                const std::vector<std::uint32_t>& allowed, std::uint64_t document) {
    std::uint64_t words = 0;
    for (const Event& event : pipeline.run(text, allowed)) {
      if (event.id == NaiveCut::kPlain) add(event.text.bytes, 1, {document, words++});
    }
  }

  std::map<std::string, Entry> entries;
};

void check_equal(const WordTable& table, const Reference& reference, std::uint32_t partitions) {
  CHECK(table.size() == reference.entries.size());
  const std::vector<WordColumns> parts = table.split(partitions);
  CHECK(parts.size() == partitions);
  std::size_t words = 0;
  for (std::uint32_t p = 0; p < partitions; ++p) {
    std::string last;
    for (std::size_t i = 0; i < parts[p].counts.size(); ++i, ++words) {
      const auto begin = static_cast<std::size_t>(parts[p].offsets[i]);
      const auto end = static_cast<std::size_t>(parts[p].offsets[i + 1]);
      const std::string word = parts[p].bytes.substr(begin, end - begin);
      CHECK(last < word);
      CHECK(partition_of(word, partitions) == p);
      const auto known = reference.entries.find(word);
      CHECK(known != reference.entries.end());
      CHECK(parts[p].counts[i] == known->second.count);
      if (table.with_places()) {
        CHECK((WordPosition{parts[p].documents[i], parts[p].words[i]} == known->second.place));
      }
      last = word;
    }
  }
  CHECK(words == reference.entries.size());
}

void add_columns(WordTable& table, const WordColumns& columns) {
  for (std::size_t i = 0; i < columns.counts.size(); ++i) {
    const auto begin = static_cast<std::size_t>(columns.offsets[i]);
    const auto end = static_cast<std::size_t>(columns.offsets[i + 1]);
    const WordPosition place =
        table.with_places() ? WordPosition{columns.documents[i], columns.words[i]} : WordPosition{};
    table.add(std::string_view(columns.bytes).substr(begin, end - begin), columns.counts[i], place,
              columns.bytes.size() - begin);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const bool with_places = input.below(2) == 0;
  PipelineSpec spec;
  spec.steps.push_back({.kind = StepSpec::kScan, .text = "gpt2"});
  if (input.below(2) == 0) spec.raw = {{"<s>", 0}, {"ab", 1}, {"é", 2}};
  if (input.below(4) == 0) spec = any_pipeline(input);
  const std::vector<std::uint32_t> allowed = {0, 1, 2, 5000, 5001};
  const auto pipeline = spec.make();
  WordTable table(with_places);
  Reference reference;
  while (!input.empty()) {
    switch (input.below(6)) {
      case 0: {  // a text of any bytes
        const std::string_view text = input.bytes(input.byte());
        const std::uint64_t document = input.byte();
        table.add_text(text, *pipeline, allowed, document);
        reference.add_text(text, spec, allowed, document);
        break;
      }
      case 1: {  // a text of few characters
        const std::string text = input.word(input.byte(), "ab <s>'1");
        const std::uint64_t document = input.byte();
        table.add_text(text, *pipeline, allowed, document);
        reference.add_text(text, spec, allowed, document);
        break;
      }
      case 2: {  // a word of any bytes
        const std::string_view word = input.bytes(input.below(40) + 1);
        const WordPosition place{input.byte(), input.byte()};
        const std::int64_t count = std::int64_t{1} << input.below(50);
        if (word.empty()) break;
        table.add(word, count, place, word.size());
        reference.add(word, count, place);
        break;
      }
      case 3: {  // many words, so that it grows
        const std::uint32_t words = input.byte() * 4;
        const std::string tail(input.below(20), 'x');
        for (std::uint32_t i = 0; i < words; ++i) {
          const std::string word = std::to_string(i) + tail;
          table.add(word, 1, {i, 1}, word.size());
          reference.add(word, 1, {i, 1});
        }
        break;
      }
      case 4: {  // cut in parts and put together again
        WordTable whole(with_places);
        for (const WordColumns& part : table.split(input.below(40) + 1)) {
          if (input.below(2) == 0) {
            add_columns(whole, part);
          } else {
            WordTable piece(with_places);
            add_columns(piece, part);
            whole.add_table(piece);
          }
        }
        table = std::move(whole);
        break;
      }
      case 5:
        if (input.below(8) == 0) {
          table.clear();
          reference.entries.clear();
        }
        break;
    }
  }
  check_equal(table, reference, static_cast<std::uint32_t>(size % 40) + 1);
  check_equal(table, reference, 1);
  return 0;
}

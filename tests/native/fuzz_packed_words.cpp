// Packed words of any bytes: read, counted, cut and rewritten, or refused by all alike; and
// against their definition on symbols.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "count/packed_words.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "naive_rounds.hpp"
#include "rounds/frequent_pairs.hpp"
#include "rounds/pair_table.hpp"
#include "rounds/rewriter.hpp"

using namespace bpe_beam;

namespace {

/// The words' symbols as the format says, bit by bit; nothing if a word is none.
std::optional<CountedWords> naive_unpacked(const PackedWords& packed) {
  CountedWords words;
  for (std::size_t word = 0; word < packed.size(); ++word) {
    Ids symbols;
    std::uint64_t symbol = 0;
    unsigned bytes = 0;
    for (const char* at = packed.begin(word); at != packed.end(word); ++at) {
      if (bytes == kMaxPackedBytes) return std::nullopt;
      const auto byte = static_cast<unsigned char>(*at);
      symbol |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * bytes++);
      if (symbol > 0xFFFFFFFF) return std::nullopt;
      if (byte >= 0x80) continue;
      symbols.push_back(static_cast<std::uint32_t>(symbol));
      symbol = 0;
      bytes = 0;
    }
    if (bytes > 0) return std::nullopt;
    words.push_back({symbols, packed.counts[word]});
  }
  return words;
}

template <typename Function>
bool is_refused(Function function) {
  try {
    function();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

std::map<SymbolPair, std::int64_t> pairs_in(const PairTable& table, std::uint32_t shards) {
  std::map<SymbolPair, std::int64_t> pairs;
  for (const PairColumns& part : table.split(shards)) {
    for (std::size_t i = 0; i < part.counts.size(); ++i) {
      CHECK(pairs.emplace(SymbolPair{part.lefts[i], part.rights[i]}, part.counts[i]).second);
    }
  }
  return pairs;
}

std::uint32_t any_symbol(FuzzInput& input, const CountedWords& words) {
  if (!words.empty() && input.below(8) != 0) {
    const Ids& symbols = words[input.byte() % words.size()].symbols;
    if (!symbols.empty()) return symbols[input.byte() % symbols.size()];
  }
  return static_cast<std::uint32_t>(input.byte()) << input.below(25);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::string_view choices = input.bytes(input.below(64));
  FuzzInput choice(reinterpret_cast<const std::uint8_t*>(choices.data()), choices.size());
  const ExactCopy bytes(input.rest());
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> counts;
  const auto end = static_cast<std::int64_t>(bytes.view().size());
  while (offsets.back() < end) {
    offsets.push_back(std::min<std::int64_t>(end, offsets.back() + choice.below(9) * 7 + 1));
    counts.push_back(choice.byte() + 1);
  }
  const PackedWords words{bytes.view(), offsets, counts};
  const std::optional<CountedWords> symbols = naive_unpacked(words);

  Ids read;
  CHECK(symbols.has_value() != is_refused([&] {
          for (std::size_t word = 0; word < words.size(); ++word) unpack_word(words, word, read);
        }));
  PairTable table;
  CHECK(symbols.has_value() != is_refused([&] { table.add_words(words); }));
  Rewriter none;
  CHECK(symbols.has_value() != is_refused([&] { static_cast<void>(none.rewrite(words)); }));
  const FrequentPairs cold({}, {});
  CHECK(symbols.has_value() != is_refused([&] { static_cast<void>(cold.segments(words, true)); }));
  if (!symbols) return 0;

  CHECK(pairs_in(table, choice.below(9) + 1) == naive_pairs(*symbols));
  std::set<SymbolPair> hot;
  for (std::uint32_t left = choice.below(6); left > 0; --left) {
    const std::uint32_t first = any_symbol(choice, *symbols);
    hot.insert({first, any_symbol(choice, *symbols)});
  }
  const PairLists lists(hot);
  const FrequentPairs pairs(lists.lefts, lists.rights);
  const bool singles = choice.below(2) == 0;
  CHECK(unpacked(pairs.segments(words, singles)) == naive_segments(*symbols, hot, singles));
  std::vector<std::vector<MergeRow>> batches(choice.below(3));
  Rewriter rewriter;
  for (auto& batch : batches) {
    for (std::uint32_t left = choice.below(5); left > 0; --left) {
      const std::uint32_t first = any_symbol(choice, *symbols);
      batch.push_back(
          {first, any_symbol(choice, *symbols), std::min(any_symbol(choice, *symbols), kNoId - 1)});
    }
    rewriter.add_batch(batch);
  }
  CHECK(unpacked(rewriter.rewrite(words)) == naive_rewrite(*symbols, batches));
  return 0;
}

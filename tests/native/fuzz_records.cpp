// Records of text, separators and UTF-8 against plain searches; whole and in windows.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "read/records.hpp"

using namespace bpe_beam;

namespace {

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;
constexpr std::size_t kMaxBytes = 100;

/// The text of each record and where it begins; flaws instead of texts that are none.
using Seen = std::vector<std::pair<std::size_t, std::string>>;

std::size_t naive_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    if (point.value == kMalformed) break;
    at += point.size;
  }
  return at;
}

Seen naive_records(std::string_view text, std::string_view separator) {
  Seen seen;
  for (std::size_t begin = 0; begin < text.size() || (separator.empty() && seen.empty());) {
    const std::size_t found = separator.empty() ? text.npos : text.find(separator, begin);
    const std::size_t end = found == text.npos ? text.size() : found;
    std::string_view record = text.substr(begin, end - begin);
    if (separator == "\n" && found != text.npos && record.ends_with('\r')) record.remove_suffix(1);
    if (record.size() > kMaxBytes) {
      seen.emplace_back(begin, "too long");
    } else if (naive_utf8_prefix(record) < record.size()) {
      seen.emplace_back(begin, "no UTF-8 at " + std::to_string(naive_utf8_prefix(record)));
    } else {
      seen.emplace_back(begin, "=" + std::string(record));
    }
    begin = end + separator.size();
    if (found == text.npos) break;
  }
  return seen;
}

/// As a reader does it: windows of a file, each from the first record that is not whole yet.
Seen records_in_windows(std::string_view text, std::string_view separator, std::size_t step,
                        std::size_t max_records) {
  Seen seen;
  std::size_t base = 0;
  std::size_t end = std::min(step, text.size());
  std::size_t search = 0;
  while (true) {
    const ExactCopy window(text.substr(base, end - base));
    const bool final = end == text.size();
    Cut cut{0, search, kFar, final, max_records, kMaxBytes};
    while (true) {
      const Records records = text_records(window.view(), separator, cut, "f:", base);
      std::size_t good = 0;
      std::size_t bad = 0;
      for (std::size_t i = 0; i < records.reached.records; ++i) {
        if (bad < records.bad.size() && records.bad[bad].index == static_cast<std::int64_t>(i)) {
          const BadRecord& flaw = records.bad[bad++];
          const bool long_one = flaw.flaw == static_cast<std::int64_t>(Flaw::kTooLong);
          CHECK(flaw.position == 0 || !long_one);
          seen.emplace_back(base + static_cast<std::size_t>(flaw.begin),
                            long_one ? "too long" : "no UTF-8 at " + std::to_string(flaw.position));
          continue;
        }
        const std::size_t begin = base + static_cast<std::size_t>(records.starts[good]);
        const auto text_at = [&](const Strings& strings) {
          const auto from = static_cast<std::size_t>(strings.offsets()[good]);
          const auto to = static_cast<std::size_t>(strings.offsets()[good + 1]);
          return std::string(strings.bytes().substr(from, to - from));
        };
        CHECK(text_at(records.ids) == "f:" + std::to_string(begin));
        seen.emplace_back(begin, "=" + text_at(records.text));
        ++good;
      }
      CHECK(good == records.starts.size() && bad == records.bad.size());
      cut.start = records.reached.start;
      cut.search = records.reached.search;
      // Without a separator the one record is taken as often as it is asked for.
      if (records.reached.records < max_records || separator.empty()) break;
    }
    if (final) return seen;
    base += cut.start;
    search = cut.search - cut.start;
    end = std::min(end + step, text.size());
  }
}

void check_separators(std::string_view text, std::string_view separator, std::size_t at_least) {
  const SeparatorEnd found = first_separator_end(text, separator, 0, at_least);
  std::size_t end = 0;
  while (true) {
    const std::size_t hit = text.find(separator, end);
    end = hit == text.npos ? kNotFound : hit + separator.size();
    if (end == kNotFound || end >= at_least) break;
  }
  CHECK(found.end == end);
  if (separator.size() < 2) return;
  // The last place with |separator| - 1 places before it at which none begins.
  std::size_t gap = kNotFound;
  for (std::size_t q = separator.size() - 1; q + separator.size() <= text.size() + 1; ++q) {
    bool free = true;
    for (std::size_t at = q + 1 - separator.size(); at < q; ++at) {
      free = free && text.substr(at, separator.size()) != separator;
    }
    if (free) gap = q;
  }
  CHECK(last_gap(text, separator) == gap);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 3000) return 0;
  FuzzInput input(data, size);
  const std::size_t step = input.below(64) + 1;
  const std::size_t max_records = input.below(4) + 1;
  const std::size_t at_least = input.byte();
  const bool any_bytes = input.below(3) == 0;
  std::string separator = input.below(3) == 0 ? "\n" : input.word(input.below(5), "a\n\r");
  if (any_bytes && input.below(2) == 0) {
    // Separators are text: a stray byte of one could cut a character in two.
    const std::string_view bytes = input.bytes(input.below(3));
    separator = std::string(bytes.substr(0, naive_utf8_prefix(bytes)));
  }
  const std::string text =
      any_bytes ? std::string(input.rest()) : input.word(size, "aab\n\n\r\xC3\xA9");
  CHECK(valid_utf8_prefix(ExactCopy(text).view()) == naive_utf8_prefix(text));
  const Seen expected = naive_records(text, separator);
  CHECK(records_in_windows(text, separator, text.size() + 1, 1000) == expected);
  CHECK(records_in_windows(text, separator, step, max_records) == expected);
  if (!separator.empty()) check_separators(text, separator, at_least);
  return 0;
}

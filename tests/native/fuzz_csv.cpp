// CSV of anything: cut in windows or whole it gives the same, and every byte is accounted for.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "read/csv.hpp"

using namespace bpe_beam;

namespace {

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;

struct Seen {
  std::string text, ids, sources;
  std::vector<std::size_t> starts;
  std::vector<std::vector<std::int64_t>> bad;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view data, std::size_t step, std::size_t max_records) {
  Seen seen;
  std::size_t base = 0, end = std::min(step, data.size());
  for (;;) {
    const ExactCopy window(data.substr(base, end - base));
    const bool final = end == data.size();
    const Records records = csv_records(window.view(), Cut{0, 0, kFar, final, max_records, 1000},
                                        CsvColumns{',', 2, {1, 0, 0}, "-"});
    CHECK(valid_utf8_prefix(records.text.bytes()) == records.text.bytes().size());
    CHECK(valid_utf8_prefix(records.ids.bytes()) == records.ids.bytes().size());
    CHECK(records.text.offsets().size() == records.starts.size() + 1);
    CHECK(records.sources.offsets().size() == records.starts.size() + 1);
    seen.text += records.text.bytes();
    seen.ids += records.ids.bytes();
    seen.sources += records.sources.bytes();
    for (const auto at : records.starts) seen.starts.push_back(base + static_cast<std::size_t>(at));
    for (const BadRecord& bad : records.bad) {
      const auto from = static_cast<std::int64_t>(base);
      CHECK(bad.begin < bad.end && bad.position >= 0);
      seen.bad.push_back({bad.begin + from, bad.end + from, bad.flaw, bad.position});
    }
    base += records.reached.start;
    CHECK(base <= end);
    if (records.reached.records == max_records) continue;
    if (final) {
      CHECK(base == data.size());
      return seen;
    }
    end = std::min(end + step, data.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::size_t step = 1 + input.below(64);
  const std::size_t max_records = 1 + input.below(3);
  const bool of_csv = input.below(2) == 0;
  const std::string text =
      of_csv ? input.word(size, "\"\"\"\",,,\n\n\r\nab\xc3\xa9") : std::string(input.rest());
  const std::size_t start = text.empty() ? 0 : input.below(text.size());
  const ExactCopy copy(text);
  const std::size_t guess = find_csv_record(copy.view(), start, step % 2 == 0, ',', 2);
  CHECK(guess == kNotFound || (guess > start && text[guess - 1] == '\n'));
  CHECK(read(text, step, max_records) == read(text, text.size() + 1, 1000));
  return 0;
}

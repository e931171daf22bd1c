// Lines of anything: cut in windows or whole they give the same, and what is taken is UTF-8.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "read/jsonl.hpp"

using namespace bpe_beam;

namespace {

const std::vector<std::string> kText = {"t"}, kId = {"i", "t"}, kSource = {"i", "t", "i"};

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;

struct Seen {
  std::string text, ids, sources;
  std::vector<std::size_t> starts;
  std::vector<std::vector<std::int64_t>> bad;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view data, std::size_t step, std::size_t max_records) {
  Seen seen;
  std::size_t base = 0, end = std::min(step, data.size()), start = 0, search = 0;
  std::int64_t index = 0;
  for (;;) {
    const ExactCopy window(data.substr(base, end - base));
    const bool final = end == data.size();
    const Cut cut{start - base, search - base, kFar, final, max_records, 1000};
    const Records records = jsonl_records(window.view(), cut, {kText, kId, kSource, "-"});
    CHECK(valid_utf8_prefix(records.text.bytes()) == records.text.bytes().size());
    CHECK(valid_utf8_prefix(records.ids.bytes()) == records.ids.bytes().size());
    CHECK(valid_utf8_prefix(records.sources.bytes()) == records.sources.bytes().size());
    CHECK(records.sources.offsets().size() == records.starts.size() + 1);
    CHECK(records.text.offsets().size() == records.starts.size() + 1);
    CHECK(records.ids.offsets().size() == records.starts.size() + 1);
    CHECK(records.has_id.size() == records.starts.size());
    seen.text += records.text.bytes();
    seen.ids += records.ids.bytes();
    seen.sources += records.sources.bytes();
    for (const auto at : records.starts) seen.starts.push_back(base + static_cast<std::size_t>(at));
    for (const BadRecord& bad : records.bad) {
      const auto from = static_cast<std::int64_t>(base);
      CHECK(bad.position >= 0 && bad.position <= bad.end - bad.begin);
      seen.bad.push_back(
          {bad.begin + from, bad.end + from, bad.flaw, bad.position, bad.index + index});
    }
    index += static_cast<std::int64_t>(records.reached.records);
    start = base + records.reached.start;
    search = base + records.reached.search;
    if (records.reached.records == max_records) continue;
    if (final) return seen;
    base = start;
    end = std::min(end + step, data.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::size_t step = 1 + input.below(64);
  const std::size_t max_records = 1 + input.below(3);
  // Half of the time letters of which JSON is made, so that whole values come about.
  const bool of_json = input.below(2) == 0;
  const std::string text =
      of_json ? input.word(size, "{}[]\":,ti\\u0d8c\n -.e\xc3\xa9") : std::string(input.rest());
  CHECK(read(text, step, max_records) == read(text, text.size() + 1, 1000));
  return 0;
}

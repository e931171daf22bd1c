// CSV: what is taken of records at each place where the data can end. The tests of the readers
// compare with Python's `csv`; here it is memory that is watched.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "read/csv.hpp"

using namespace bpe_beam;

namespace {

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;

struct Seen {
  std::string texts, ids, sources;
  std::vector<std::string> bad;
  bool operator==(const Seen&) const = default;
};

/// Reads in windows that grow by `step` bytes.
Seen read(std::string_view data, std::size_t step, std::size_t columns = 3) {
  Seen seen;
  std::size_t base = 0, end = std::min(step, data.size());
  for (;;) {
    const ExactCopy window(data.substr(base, end - base));
    const bool final = end == data.size();
    const Records records = csv_records(window.view(), Cut{0, 0, kFar, final, 2, 50},
                                        CsvColumns{',', columns, {1, 0, 2}, "none"});
    std::int64_t at = 0;
    for (const std::int64_t stop : records.text.offsets().subspan(1)) {
      seen.texts += records.text.bytes().substr(static_cast<std::size_t>(at),
                                                static_cast<std::size_t>(stop - at));
      seen.texts += '|';
      at = stop;
    }
    seen.ids += records.ids.bytes();
    seen.sources += records.sources.bytes();
    for (const BadRecord& bad : records.bad) {
      seen.bad.push_back(std::string(kFlawNames[static_cast<std::size_t>(bad.flaw)]) + ": " +
                         std::string(data.substr(base + static_cast<std::size_t>(bad.begin),
                                                 static_cast<std::size_t>(bad.end - bad.begin))));
    }
    base += records.reached.start;
    if (records.reached.records == 2) continue;
    if (final) return seen;
    end = std::min(end + step, data.size());
  }
}

Seen read_all(std::string_view data) {
  const Seen whole = read(data, kFar);
  for (std::size_t step = 1; step < data.size(); ++step) CHECK(read(data, step) == whole);
  return whole;
}

void test_fields() {
  const Seen seen = read_all(
      "1,a,x\n\n2,\"b\"\"c,\r\n\",\"\"\r\n\r\n,,\n3,d\"e,\"y\"\"\"\n4,\"\"\"\"\"\",\" z\"");
  CHECK(seen.texts == "a|b\"c,\r\n||d\"e|\"\"|");
  CHECK(seen.ids == "1234");
  CHECK(seen.sources == "xnonenoney\" z");
  CHECK(seen.bad.empty());
}

void test_flaws() {
  using namespace std::string_literals;
  using namespace std::string_view_literals;
  const std::string longest(60, 'a');
  const Seen seen = read_all("1,a,x\n2,b\n3,c,x,y\n4,\xff,x\n6,\"e\"f,x\n\"7\"x,g\n7,g,x\n0," +
                             longest + ",x\n8,\"h\n9,i,x\n");
  CHECK(seen.texts == "a|g|i|");
  CHECK((seen.bad == std::vector<std::string>{
                         "wrong number of columns: 2,b", "wrong number of columns: 3,c,x,y",
                         "invalid UTF-8: 4,\xff,x", "text after a closing quote: 6,\"e\"f,x",
                         "text after a closing quote: \"7\"x,g",
                         "record too long: 0," + longest + ",x", "unclosed quote: 8,\"h"}));
  const Seen nul = read_all("1,\0,x\n2,\"b\"\n\"\n3,c,\"x\"\"\n4,d,x\n"sv);
  CHECK(nul.texts == "d|");
  CHECK((nul.bad == std::vector<std::string>{
                        "NUL byte: 1,\0,x"s, "wrong number of columns: 2,\"b\"",
                        "text after a closing quote: \"", "unclosed quote: 3,c,\"x\"\""}));
}

void test_guess() {
  const std::string_view text = "x,y\nz\"\n\n1,\"a\nb,c\n\"\"d\"\n2,e\n";
  const ExactCopy copy(text);
  const auto guess = [&](std::size_t start, bool final) {
    return find_csv_record(copy.view(), start, final, ',', 2);
  };
  CHECK(guess(0, true) == 7);
  CHECK(guess(7, true) == 8);
  CHECK(guess(8, true) == 22);  // not within the quotes
  CHECK(guess(22, true) == 26);
  CHECK(guess(26, true) == kNotFound);
  CHECK(guess(0, false) == kNotFound);
  std::string many;
  for (std::size_t i = 0; i < kCsvTriedRecords + 1; ++i) many += "a,b\n";
  CHECK(find_csv_record(many, 0, false, ',', 2) == kNotFound);
  many += "a,b\n";
  CHECK(find_csv_record(many, 0, false, ',', 2) == 4);
}

}  // namespace

int main() {
  test_guess();
  test_fields();
  test_flaws();
}

// Records: cut in one piece or in windows, they are those of a plain left-to-right search.
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "read/records.hpp"

using namespace bpe_beam;

namespace {

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;
using Pairs = std::vector<std::pair<std::size_t, std::string>>;

void test_strings() {
  Strings strings(0);
  strings.finish();
  strings.append("abc");
  strings.append("");
  strings.append_decimal(18446744073709551615u);
  strings.finish();
  strings.append("lost");
  strings.abandon();
  strings.append(std::string(1000, 'x'));
  strings.finish();
  CHECK(strings.bytes() == "abc18446744073709551615" + std::string(1000, 'x'));
  const std::vector<std::int64_t> ends(strings.offsets().begin(), strings.offsets().end());
  CHECK(ends == std::vector<std::int64_t>{0, 0, 23, 1023});
}

void test_search() {
  CHECK(find_bytes(std::string_view("abcab"), std::string_view("ab"), 0) == 0);
  CHECK(find_bytes(std::string_view("abcab"), std::string_view("ab"), 1) == 3);
  CHECK(find_bytes(std::string_view("abcab"), std::string_view("ab"), 4) == kNotFound);
  CHECK(find_bytes(std::string_view("abcab"), std::string_view("b"), 5) == kNotFound);
  CHECK(find_bytes(std::string_view("a"), std::string_view("ab"), 0) == kNotFound);
  CHECK(find_bytes(std::string_view(), std::string_view("a"), 0) == kNotFound);

  const std::string_view run("aaaaab");
  CHECK(first_separator_end(run, std::string_view("aa"), 0, 3).end == 4);
  CHECK(first_separator_end(run, std::string_view("aa"), 1, 3).end == 3);
  const SeparatorEnd none = first_separator_end(run, std::string_view("aa"), 0, 5);
  CHECK(none.end == kNotFound && none.search == 5);
}

// The gap that is found lies across no occurrence, and is the last such place that can be judged.
void test_last_gap() {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string data(random() % 12, 'a');
    std::string separator(2 + random() % 3, 'a');
    for (char& c : data) c = random() % 4 == 0 ? 'b' : 'a';
    for (char& c : separator) c = random() % 4 == 0 ? 'b' : 'a';
    std::size_t expected = kNotFound;
    const std::size_t length = separator.size();
    for (std::size_t q = length - 1; q + length - 1 <= data.size(); ++q) {
      bool crossed = false;
      for (std::size_t at = q + 1 - length; at < q; ++at) {
        crossed |= data.compare(at, length, separator) == 0;
      }
      if (!crossed) expected = q;
    }
    const ExactCopy copy(data);
    CHECK(last_gap(copy.view(), separator) == expected);
  }
  CHECK(last_gap(std::string_view("abc"), std::string_view("a")) == kNotFound);
}

Pairs naive(std::string_view data, std::string_view separator) {
  Pairs records;
  std::size_t start = 0;
  while (start < data.size() || (separator.empty() && records.empty())) {
    const std::size_t hit =
        separator.empty() ? std::string_view::npos : data.find(separator, start);
    if (hit == std::string_view::npos) {
      records.emplace_back(start, data.substr(start));
      break;
    }
    records.emplace_back(start, data.substr(start, hit - start));
    start = hit + separator.size();
  }
  return records;
}

// Windows that grow and move by `step`, as the readers' do.
Pairs windowed(std::string_view data, std::string_view separator, std::size_t step,
               std::size_t max_records) {
  Pairs records;
  std::size_t base = 0, end = std::min(step, data.size()), start = 0, search = 0;
  for (;;) {
    const ExactCopy window(data.substr(base, end - base));
    const bool final = end == data.size();
    const Cut cut{start - base, search - base, kFar, final, max_records, kFar};
    const Reached reached =
        for_each_record(window.view(), separator, cut, [&](std::size_t from, std::size_t to) {
          records.emplace_back(base + from, window.view().substr(from, to - from));
        });
    start = base + reached.start;
    search = base + reached.search;
    if (separator.empty() && reached.records > 0) return records;
    if (reached.records == max_records) continue;
    if (final) return records;
    base = start;
    end = std::min(end + step, data.size());
  }
}

void test_windows() {
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    std::string data(random() % 20, 'a');
    std::string separator(random() % 4, 'a');
    for (char& c : data) c = random() % 3 == 0 ? 'b' : 'a';
    for (char& c : separator) c = random() % 3 == 0 ? 'b' : 'a';
    const Pairs expected = naive(data, separator);
    CHECK(windowed(data, separator, 1 + random() % 9, 1 + random() % 3) == expected);
    CHECK(windowed(data, separator, 100, 100) == expected);
  }
}

void test_stop() {
  const std::string_view data("a\nb\nc\n");
  std::string seen;
  const auto take = [&](std::size_t begin, std::size_t end) {
    seen += data.substr(begin, end - begin);
  };
  const Reached reached =
      for_each_record(data, std::string_view("\n"), Cut{0, 0, 4, true, 100, kFar}, take);
  CHECK(seen == "ab");
  CHECK(reached.start == 4 && reached.records == 2);
}

void test_text() {
  const std::string_view data("skip\none\r\n\r\n\xff\r\ntoo long\nlast\r");
  const Records records =
      text_records(data, std::string_view("\n"), Cut{5, 5, kFar, true, 100, 5}, "f:", 1000);
  CHECK(records.text.bytes() == "onelast\r");
  CHECK(records.ids.bytes() == "f:1005f:1010f:1024");
  CHECK((records.starts == std::vector<std::int64_t>{5, 10, 24}));
  CHECK(records.bad.size() == 2);
  const BadRecord& utf8 = records.bad[0];
  CHECK(utf8.begin == 12 && utf8.end == 13 && utf8.position == 0 && utf8.index == 2);
  CHECK(utf8.flaw == static_cast<std::int64_t>(Flaw::kUtf8));
  const BadRecord& longer = records.bad[1];
  CHECK(longer.begin == 15 && longer.end == 23 && longer.index == 3);
  CHECK(longer.flaw == static_cast<std::int64_t>(Flaw::kTooLong));
  CHECK(records.reached.records == 5);
  CHECK(kFlawNames[static_cast<std::size_t>(Flaw::kDepth)] == "nested too deeply");
}

}  // namespace

int main() {
  test_strings();
  test_search();
  test_last_gap();
  test_windows();
  test_stop();
  test_text();
}

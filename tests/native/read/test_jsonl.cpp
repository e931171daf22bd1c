// JSON Lines: what is taken of a line, and why one is not. The tests of the readers compare with
// Python's `json`; here it is memory that is watched, at each place where a line can end.
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "read/jsonl.hpp"

using namespace bpe_beam;

namespace {

constexpr std::size_t kFar = static_cast<std::size_t>(1) << 62;

const std::vector<std::string> kText = {"text"}, kId = {"id"};

Records read(std::string_view data) {
  const ExactCopy copy(data);
  return jsonl_records(copy.view(), Cut{0, 0, kFar, true, 100, kFar}, {kText, kId, {}, {}});
}

Flaw flaw_of(std::string_view line) {
  const Records records = read(line);
  CHECK(records.bad.size() + records.starts.size() <= 1);
  return records.bad.empty() ? Flaw::kNone : static_cast<Flaw>(records.bad[0].flaw);
}

std::string text_of(std::string_view line) {
  const Records records = read(line);
  CHECK(records.starts.size() == 1);
  return std::string(records.text.bytes());
}

void test_texts() {
  CHECK(text_of(R"({"text": "a"})") == "a");
  CHECK(text_of(R"({"text": "\"\\\/\b\f\n\r\t"})") == "\"\\/\b\f\n\r\t");
  CHECK(text_of(R"({"text": "\u007f\u0080\u07FF\u0800\uffff"})") == "\x7f\u0080\u07ff\u0800\uffff");
  CHECK(text_of(R"({"text": "\ud800\udc00\uDBFF\uDFFF"})") == "\U00010000\U0010ffff");
  CHECK(text_of(R"({"text": 1, "\u0074ext": "last"})") == "last");
  CHECK(text_of(R"({"text": "first", "text": "last"})") == "last");
  CHECK(text_of(R"({"text": "\ud800", "text": "last"})") == "last");
  CHECK(flaw_of(R"({"text": "first", "text": 1})") == Flaw::kNotString);
  CHECK(flaw_of(R"({"text": "first", "text": "\ud800"})") == Flaw::kSurrogate);
  const Records left = read("{\"text\": \"a\", 1}\n{\"text\": \"b\"}\n{\"text\": \"c\"} x");
  CHECK(left.text.bytes() == "b" && left.bad.size() == 2);
  CHECK(text_of(R"({"x": [{"text": "inner"}], "text": "outer"})") == "outer");
}

void test_ids() {
  const Records records = read(
      "{\"text\": \"a\", \"id\": \"\\u00e9\"}\n{\"text\": \"b\", \"id\": -1.50}\n"
      "{\"text\": \"\\ud800\", \"id\": \"taken back\"}\n\n{\"text\": \"c\"}");
  CHECK(records.ids.bytes() == "\u00e9-1.50");
  CHECK((records.has_id == std::vector<std::uint8_t>{1, 1, 0}));
  CHECK(records.text.bytes() == "abc");
  CHECK(records.bad.size() == 1 && records.bad[0].index == 2);
  CHECK(records.reached.records == 5);
}

void test_flaws() {
  CHECK(flaw_of("") == Flaw::kNone);
  CHECK(flaw_of(" \t\r") == Flaw::kNone);
  CHECK(flaw_of("[1]") == Flaw::kNotObject);
  CHECK(flaw_of("{}") == Flaw::kMissing);
  CHECK(flaw_of(R"({"text": null})") == Flaw::kNotString);
  CHECK(flaw_of(R"({"text": "\udc00"})") == Flaw::kSurrogate);
  CHECK(flaw_of(R"({"text": "\ud800\u0041"})") == Flaw::kSurrogate);
  CHECK(flaw_of("{\"text\": \"\xff\"}") == Flaw::kUtf8);
  CHECK(flaw_of(R"({"text": NaN})") == Flaw::kJson);
  CHECK(flaw_of(std::string(kMaxJsonDepth, '[')) == Flaw::kJson);
  CHECK(flaw_of(std::string(kMaxJsonDepth + 1, '[')) == Flaw::kDepth);
  CHECK(flaw_of(std::string(1'000'000, '[')) == Flaw::kDepth);
}

// The last of equal keys counts at every level, and only objects are entered.
void test_paths() {
  const std::vector<std::string> text = {"m", "t"}, id = {"m", "n", "i"}, source = {"s.x"};
  const auto read = [&](std::string_view data) {
    const ExactCopy copy(data);
    return jsonl_records(copy.view(), Cut{0, 0, kFar, true, 100, kFar}, {text, id, source, "none"});
  };
  const Records all =
      read(R"({"m": {"t": "a", "n": {"i": 5}, "t": "b"}, "t": "c", "s.x": "one"})"
           "\n"
           R"({"m": {"n": {"i": 5}}, "m": {"t": "c", "n": {"i": ["i"]}}, "s.x": ""})"
           "\n"
           R"({"s.x": "\ud800", "m": {"t": "x", "n": {"i": "gone"}}})"
           "\n"
           R"({"m": {"t": "\ud800", "n": {"i": "gone"}}, "s.x": "gone"})"
           "\n"
           R"({"\u006d": {"t": "d"}, "s.x": {"s.x": "x"}, "s": {"x": "y"}})"
           "\n"
           R"({"m": {"t": "d"}, "s.x": -1e5})");
  CHECK(all.text.bytes() == "bcdd");
  CHECK(all.ids.bytes() == "5");
  CHECK((all.has_id == std::vector<std::uint8_t>{1, 0, 0, 0}));
  CHECK(all.sources.bytes() == "onenonenone-1e5");
  CHECK(all.sources.offsets().size() == 5);
  CHECK(all.bad.size() == 2);
  for (const std::string_view line :
       {R"({"m": {"t": "x"}, "m": 1})", R"({"m": {"t": "x"}, "m": {}})", R"({"m": [{"t": "x"}]})",
        R"({"m.t": "x"})", R"({"t": {"m": "x"}})", R"({"m": "t"})",
        R"({"n": {"m": {"t": "x"}}})"}) {
    const Records none = read(line);
    CHECK(none.bad.size() == 1 && none.bad[0].flaw == static_cast<std::int64_t>(Flaw::kMissing));
  }
  const std::string_view whole = R"({"m": {"t": "x", "n": {"i": "y"}, "m": {"t": 1}}, "s.x": 1})";
  CHECK(read(whole).bad.empty());
  for (std::size_t size = 1; size < whole.size(); ++size)
    CHECK(read(whole.substr(0, size)).bad.size() == 1);
  // depth is counted alike on a path and beside it
  for (const std::string_view key : {"m", "x"}) {
    const auto nested = [&](std::size_t depth) {
      return "{\"" + std::string(key) + "\": {\"n\": " + std::string(depth, '[') +
             std::string(depth, ']') + "}, \"m\": {\"t\": \"\"}}";
    };
    CHECK(read(nested(kMaxJsonDepth - 2)).bad.empty());
    CHECK(read(nested(kMaxJsonDepth - 1)).bad.size() == 1);
  }
}

// A line that ends anywhere is broken, and nothing behind its end is read.
void test_every_end() {
  const std::string_view line =
      R"( {"a": [1, -2.5e+3, true, false, null, {"b": {}, "c": []}], "t\u00e9": "\ud83d\ude00\n",)"
      R"( "text": "some text\\", "id": 12} )";
  CHECK(text_of(line) == "some text\\");
  for (std::size_t size = 2; size + 1 < line.size(); ++size) {
    CHECK(flaw_of(line.substr(0, size)) == Flaw::kJson);
  }
}

}  // namespace

int main() {
  test_texts();
  test_ids();
  test_flaws();
  test_paths();
  test_every_end();
}

// JSON read value by value: what is written back is what stood there, and what is no JSON is
// refused.
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"
#include "read/json_reader.hpp"
#include "written_json.hpp"

using namespace bpe_beam;

namespace {

void taken() {
  CHECK(written(R"({"a": [1, -2.5e+3, true, false, null], "b\u00e9": {"": []}, "c": {}})") ==
        R"({"a":[1,-2.5e+3,true,false,null],"b\u00e9":{"":[]},"c":{}})");
  for (const char* const text : {"0", "-0", "1e5", "\"\"", "\"a\\n\\\\\\\"\"", "[]", "{}", "[[[]]]",
                                 " \t\r\n null \n", "[1,[2,{\"k\":[3]}],4]", "true"}) {
    CHECK(written(text) != "");
  }
  const std::size_t most = JsonReader<WrittenJson>::kMaxDepth;
  const std::string deep = std::string(most, '[') + std::string(most, ']');
  CHECK(written(deep) == deep);
}

void refused() {
  for (const char* const text : {"",
                                 " ",
                                 "[",
                                 "]",
                                 "{",
                                 "}",
                                 "[1",
                                 "[1,",
                                 "[1,]",
                                 "[,1]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{1:2}",
                                 "[1 2]",
                                 "[1]]",
                                 "nul",
                                 "nulll",
                                 "True",
                                 "NaN",
                                 "Infinity",
                                 "-",
                                 "+1",
                                 "01",
                                 "1.",
                                 ".5",
                                 "1e",
                                 "1e+",
                                 "0x1",
                                 "\"",
                                 "\"a",
                                 "\"\\\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\u12g4\"",
                                 "\"\n\"",
                                 "'a'",
                                 "[1}",
                                 "{\"a\":1]",
                                 "\xef\xbb\xbf{}",
                                 "1 1",
                                 "/**/1"}) {
    CHECK(written(text) == "");
  }
  CHECK(written(std::string("[\"a\0\"]", 6)) == "");
  CHECK(written(std::string("1\0", 2)) == "");
  const std::size_t more = JsonReader<WrittenJson>::kMaxDepth + 1;
  CHECK(written(std::string(more, '[') + std::string(more, ']')) == "");
}

void handlers_can_refuse() {
  struct NoNull : WrittenJson {
    bool literal(char first) { return first != 'n' && WrittenJson::literal(first); }
  };
  for (const auto& [text, fine] : {std::pair{"[true]", true}, std::pair{"[null]", false}}) {
    NoNull handler;
    JsonReader<NoNull> reader(text, handler);
    CHECK(reader.read() == fine);
  }
}

void prefixes_are_no_json() {
  const std::string_view text = R"({"a": ["b\u0041", {"c": null}], "d": "e"})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const ExactCopy copy(text.substr(0, size));
    CHECK(written(std::string_view(copy.view().data(), size)) == "");
  }
  CHECK(written(text) != "");
}

}  // namespace

int main() {
  taken();
  refused();
  handlers_can_refuse();
  prefixes_are_no_json();
}

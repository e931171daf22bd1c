// Text with origins: what is written, and the places it has.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

using namespace bpe_beam;

namespace {

/// Every scalar value is written as it is read.
void code_points() {
  std::string bytes;
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    bytes.clear();
    const std::size_t size = append_utf8(point, bytes);
    const ExactCopy copy(bytes);
    const CodePoint read = decode_utf8(copy.view().data(), copy.view().data() + bytes.size());
    CHECK(size == bytes.size() && read.value == point && read.size == size);
  }
}

bool holds(const TextBuffer& buffer, std::string_view bytes, const std::vector<Origin>& origins) {
  const TextView view = buffer.view();
  CHECK(buffer.size() == bytes.size() && buffer.memory_bytes() >= bytes.size());
  if (view.bytes != bytes) return false;
  if (!buffer.with_origins()) return view.origins == nullptr;
  return std::vector<Origin>(view.origins, view.origins + view.bytes.size()) == origins;
}

void what_is_written() {
  const std::vector<Origin> origins = {{0, 1}, {1, 3}, {1, 3}, {3, 4}};
  const ExactCopy copy("a\xC3\xA9z");
  for (const bool with_origins : {true, false, true}) {
    const TextView in{copy.view(), with_origins ? origins.data() : nullptr};
    TextBuffer out;
    out.clear(with_origins);
    CHECK(holds(out, "", {}));
    out.copy(in, 1, 4);
    CHECK(holds(out, "\xC3\xA9z", {{1, 3}, {1, 3}, {3, 4}}));
    out.put(0x20AC, in, 1);  // three bytes for one character
    CHECK(holds(out, "\xC3\xA9z€", {{1, 3}, {1, 3}, {3, 4}, {1, 3}, {1, 3}, {1, 3}}));
    out.clear(with_origins);
    out.put('b', Origin{7, 9});
    out.put(std::string_view("xy"), Origin{2, 2});
    CHECK(holds(out, "bxy", {{7, 9}, {2, 2}, {2, 2}}));
    out.put_bytewise("AB", in, 2);
    CHECK(holds(out, "bxyAB", {{7, 9}, {2, 2}, {2, 2}, {1, 3}, {3, 4}}));
    out.cut(2);
    CHECK(holds(out, "bx", {{7, 9}, {2, 2}}));
  }
}

void parts() {
  const std::vector<Origin> origins = {{0, 1}, {1, 2}, {2, 3}};
  const TextView text{"abc", origins.data()};
  CHECK(text.sub(1, 3).bytes == "bc" && text.sub(1, 3).origins[0] == (Origin{1, 2}));
  CHECK(text.sub(3, 3).bytes.empty());
  CHECK((TextView{"abc", nullptr}.sub(1, 2).origins == nullptr));
}

}  // namespace

int main() {
  code_points();
  what_is_written();
  parts();
}

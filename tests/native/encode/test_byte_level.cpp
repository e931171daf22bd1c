// The byte-level alphabet: 256 characters, there and back.
#include <set>
#include <string>

#include "check.hpp"
#include "encode/byte_level.hpp"
#include "text/text.hpp"

using namespace bpe_beam;

int main() {
  const ByteLevelAlphabet alphabet;
  std::set<std::uint32_t> points;
  std::string every, bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const std::uint32_t point = alphabet.point_of(static_cast<std::uint8_t>(byte));
    points.insert(point);
    append_utf8(point, every);
    bytes += static_cast<char>(byte);
  }
  CHECK(points.size() == 256);
  CHECK(alphabet.point_of('a') == 'a' && alphabet.point_of(' ') == 0x120);
  CHECK(alphabet.point_of(0xA1) == 0xA1 && alphabet.point_of(0xAD) == 0x143);
  std::string text = every;
  CHECK(alphabet.to_bytes(text) && text == bytes);
  for (std::string other : {" ", "a b", "\xc4\x84\xc5\x84", "\xe4\xb8\xad", "a\xff", "\xc5\x84"}) {
    const std::string before = other;
    CHECK(!alphabet.to_bytes(other) && other == before);
  }
  std::string empty;
  CHECK(alphabet.to_bytes(empty) && empty.empty());
}

// The table of scripts: characters whose script no Unicode version will change.
// tests/native/scan/test_scanners.py compares every code point with the `regex` package.
#include "check.hpp"
#include "text/unicode_scripts.hpp"

using namespace bpe_beam;

int main() {
  CHECK(script_of('a') == script_of(0xE9) && script_of('a') != script_of(0x436));
  CHECK(script_of(0x8A9E) == script_of(0x3042) && script_of(0x8A9E) == script_of(0x30FC));
  CHECK(script_of('1') == script_of('!') && script_of('1') == script_of('\n'));
  CHECK(script_of(' ') == 0 && script_of(0x378) == 0 && script_of(0x10FFFF) == 0);
  CHECK(script_of('1') != 0 && script_of(0x301) != script_of('1'));
}

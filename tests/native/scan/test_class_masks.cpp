// The masks of a block against the classes of its characters, for every function that this
// machine's processor can run.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/class_masks.hpp"

using namespace bpe_beam;

namespace {

std::vector<BlockClasses> all_classes() {
  std::vector<BlockClasses> all = {BlockClasses{}, BlockClasses::best()};
#ifdef BPE_BEAM_VECTORS
  if (has_wide_vectors()) {  // also where there are wider ones
    all.push_back({VectorClasses::ascii, VectorClasses::leads, VectorClasses::cases,
                   VectorClasses::controls});
  }
#endif
  return all;
}

bool bit(std::uint64_t mask, std::size_t i) { return (mask >> i & 1) != 0; }

void check_ascii(std::string_view block, const BlockClasses& classes) {
  const ExactCopy copy(block);
  ClassMasks masks;
  classes.ascii(copy.view().data(), masks);
  LeadMasks leads;
  classes.leads(copy.view().data(), leads);
  const std::uint64_t controls = classes.controls(copy.view().data());
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto byte = static_cast<unsigned char>(block[i]);
    const bool ascii = byte < 0x80;
    const std::uint16_t bits = ascii ? char_bits(byte) : 0;
    const auto kind = static_cast<CharClass>(bits & kClassBits);
    CHECK(bit(masks.beyond, i) == !ascii);
    CHECK(bit(masks.letters, i) == (kind == CharClass::kLetter));
    CHECK(bit(masks.numbers, i) == (kind == CharClass::kNumber));
    CHECK(bit(masks.spaces, i) == (kind == CharClass::kSpace));
    CHECK(bit(masks.uppers, i) == ((bits & kUpperLike) != 0));
    CHECK(bit(masks.blanks, i) == (byte == ' '));
    CHECK(bit(masks.newlines, i) == (byte == '\n' || byte == '\r'));
    CHECK(bit(masks.apostrophes, i) == (byte == '\''));
    CHECK(bit(masks.slashes, i) == (byte == '/'));
    CHECK(bit(leads.continuations, i) == ((byte & 0xC0) == 0x80));
    const auto next = static_cast<unsigned char>(i + 1 < kBlock ? block[i + 1] : 0);
    CHECK(bit(leads.two, i) == ((byte >= 0xC4 && byte <= 0xCA) || byte == 0xD0 || byte == 0xD1 ||
                                (byte == 0xC3 && next != 0x97 && next != 0xB7)));
    CHECK(bit(leads.han, i) == (byte >= 0xE5 && byte <= 0xE8));
    CHECK(bit(leads.last_han, i) == (byte == 0xE9));
    CHECK(bit(leads.hangul, i) == (byte == 0xEB || byte == 0xEC));
    const bool control = kind == CharClass::kOther && (bits & kSign) == 0;
    CHECK(bit(controls, i) == (ascii && control));
  }
}

/// Every byte at every place of a block, among others.
void every_byte() {
  std::mt19937 random(1);
  for (const BlockClasses& classes : all_classes()) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string block(kBlock, static_cast<char>(byte));
      check_ascii(block, classes);
      for (char& other : block) other = static_cast<char>(random());
      block[static_cast<std::size_t>(byte) % kBlock] = static_cast<char>(byte);
      check_ascii(block, classes);
    }
  }
}

template <MaskKinds kKinds>
void check_block(std::string_view block, const BlockClasses& classes) {
  const ExactCopy copy(block);
  const ClassMasks masks = class_masks<kKinds>(copy.view().data(), classes);
  for (std::size_t at = 0; at < kBlock;) {
    const CodePoint point = decode_utf8(block.data() + at, block.data() + kBlock);
    if (at > kLastWhole) {
      const bool ascii = point.value < 0x80;
      CHECK(ascii || bit(masks.cut | masks.letters, at));
      at += point.size;
      continue;
    }
    const bool malformed = point.value == kMalformed;
    const std::uint16_t bits = malformed ? std::uint16_t{0} : char_bits(point.value);
    const auto kind = static_cast<CharClass>(bits & kClassBits);
    const bool upper = (bits & kUpperLike) != 0 && kind == CharClass::kLetter;
    const bool lower = (bits & kLowerLike) != 0 && kind == CharClass::kLetter;
    const bool wide = point.size > 1;
    for (std::size_t i = at; i < at + point.size; ++i) {
      CHECK(bit(masks.letters, i) == (kind == CharClass::kLetter));
      CHECK(bit(masks.numbers, i) == (kind == CharClass::kNumber));
      CHECK(bit(masks.spaces, i) == (kind == CharClass::kSpace));
      CHECK(bit(masks.wide_spaces, i) == (wide && kind == CharClass::kSpace));
      CHECK(bit(masks.wide_numbers, i) == (wide && kind == CharClass::kNumber));
      CHECK(bit(masks.marks, i) == ((bits & kMark) != 0));
      CHECK(bit(masks.malformed, i) == malformed);
      if (!malformed && i > at) CHECK(bit(masks.continuations, i));
      if (kKinds.cased) CHECK(bit(masks.uppers, i) == (upper && !lower));
      if (kKinds.cased) CHECK(bit(masks.both, i) == (upper && lower));
      if (kKinds.han) CHECK(bit(masks.han, i) == ((bits & kHan) != 0));
      if (kKinds.cjk) {
        const bool cjk = !malformed && is_cjk(point.value);
        const bool unknown = kind == CharClass::kOther && (bits & (kMark | kSign)) == 0;
        CHECK(bit(masks.cjk, i) == cjk);
        CHECK(bit(masks.unknown, i) == (wide && unknown && !cjk));
      }
    }
    if (!malformed) CHECK(!bit(masks.continuations, at));
    at += point.size;
  }
}

void check_kinds(std::string_view block, const BlockClasses& classes) {
  check_block<MaskKinds{}>(block, classes);
  check_block<MaskKinds{.cased = true}>(block, classes);
  check_block<MaskKinds{.cased = true, .han = true}>(block, classes);
  check_block<MaskKinds{.cjk = true}>(block, classes);
}

void append(std::uint32_t point, std::string& text) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xC0 | (point >> 6));
    text += static_cast<char>(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    text += static_cast<char>(0xE0 | (point >> 12));
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (point >> 18));
    text += static_cast<char>(0x80 | (point >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
}

/// All code points in order: the classes that leads decide are those of the tables.
void every_code_point() {
  std::string text;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0x30000 && point < 0xE0000) continue;  // none is assigned, or private use
    append(point, text);
  }
  for (const BlockClasses& classes : all_classes()) {
    for (std::size_t at = 0; at + kBlock <= text.size();) {
      check_kinds(std::string_view(text).substr(at, kBlock), classes);
      at += kLastWhole;
      while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    }
  }
}

/// Bytes of all kinds, most of them beyond ASCII and few of them UTF-8.
void malformed() {
  std::mt19937 random(2);
  constexpr std::string_view kBytes =
      "a \xC3\xA9\xE5\xE6\xE2\x80\x83\xF0\x9F\x98\xBF\xED\xFF\xD0\xC4";
  for (int round = 0; round < 20'000; ++round) {
    std::string block;
    while (block.size() < kBlock) block += kBytes[random() % kBytes.size()];
    for (const BlockClasses& classes : all_classes()) {
      check_kinds(block, classes);
    }
  }
}

}  // namespace

int main() {
  every_byte();
  every_code_point();
  malformed();
}

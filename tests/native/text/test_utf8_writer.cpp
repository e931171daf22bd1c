// UTF-8 out of units of each width: every code point, in runs of all lengths.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "text/utf8.hpp"
#include "text/utf8_writer.hpp"

using namespace bpe_beam;

namespace {

std::vector<std::uint32_t> decoded(std::string_view text) {
  std::vector<std::uint32_t> points;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    points.push_back(point.value);
    at += point.size;
  }
  return points;
}

template <class Unit>
void check_written(Utf8Writer& writer, const std::vector<std::uint32_t>& points) {
  const std::vector<Unit> units(points.begin(), points.end());
  const auto text = writer.write(std::span<const Unit>(units));
  CHECK(text.has_value() && decoded(*text) == points);
}

/// Each code point between others of one byte to four, at each position of a run.
template <class Unit>
void every_code_point(std::uint32_t end, bool with_vectors) {
  Utf8Writer writer(with_vectors);
  const std::vector<std::uint32_t> others = {'a', 0xE9, 'b', 0x431, 'c', 0x8A9E, 'd', 0x1F600, ' '};
  std::vector<std::uint32_t> points;
  for (std::uint32_t point = 0; point < end; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    points.push_back(point);
    const std::uint32_t other = others[point % others.size()];
    if (other < end) points.push_back(other);
    if (points.size() < 1000) continue;
    check_written<Unit>(writer, points);
    points.clear();
  }
  check_written<Unit>(writer, points);
  for (std::size_t size = 0; size < 40; ++size) {
    check_written<Unit>(writer, std::vector<std::uint32_t>(size, 'x'));
    check_written<Unit>(writer, std::vector<std::uint32_t>(size, 0xFF));
  }
}

template <class Unit>
void surrogates(bool with_vectors) {
  Utf8Writer writer(with_vectors);
  for (std::uint32_t point = 0xD7FF; point <= 0xE000; ++point) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{20}}) {
      std::vector<Unit> units(size, static_cast<Unit>('a'));
      units[size / 2] = static_cast<Unit>(point);
      const bool valid = point < 0xD800 || point > 0xDFFF;
      CHECK(writer.write(std::span<const Unit>(units)).has_value() == valid);
    }
  }
}

/// Each sequence of eight sizes, after up to two characters of one byte.
template <class Unit>
void every_sequence_of_sizes(const std::vector<std::uint32_t>& points, bool with_vectors) {
  std::size_t sequences = 1;
  for (int i = 0; i < 8; ++i) sequences *= points.size();
  Utf8Writer writer(with_vectors);
  for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
    std::vector<std::uint32_t> text(sequence % 3, 'x');
    for (std::size_t left = sequence, i = 0; i < 8; ++i, left /= points.size()) {
      text.push_back(points[left % points.size()]);
    }
    check_written<Unit>(writer, text);
  }
}

}  // namespace

int main() {
  for (const bool with_vectors : {false, Utf8Writer::has_vectors()}) {
    every_code_point<std::uint8_t>(0x100, with_vectors);
    every_code_point<std::uint16_t>(0x10000, with_vectors);
    every_code_point<std::uint32_t>(0x110000, with_vectors);
    every_sequence_of_sizes<std::uint8_t>({'a', 0xE9}, with_vectors);
    every_sequence_of_sizes<std::uint16_t>({'a', 0x431, 0x8A9E}, with_vectors);
    every_sequence_of_sizes<std::uint32_t>({'a', 0x431, 0x8A9E}, with_vectors);
    every_sequence_of_sizes<std::uint32_t>({'a', 0x1F600}, with_vectors);
    surrogates<std::uint16_t>(with_vectors);
    surrogates<std::uint32_t>(with_vectors);
  }
}

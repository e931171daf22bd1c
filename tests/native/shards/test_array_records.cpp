// ArrayRecord files: a whole file is read by its chunks and by its index, in any parts.
#include "shards/array_records.hpp"

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Numbers = std::vector<std::int64_t>;

struct File {
  Bytes bytes;
  Numbers rows;
  std::uint64_t index = 0;
};

/// The file of documents of some lengths; the tail is made of rows, as long as these are.
File file_of(const std::vector<std::size_t>& lengths) {
  File file{.bytes = array_record_start(), .rows = {}, .index = 0};
  ArrayRecordAppender appender(file.bytes.size());
  for (const std::size_t length : lengths) appender.add(std::vector<std::uint32_t>(length, 300));
  const ArrayRecordBytes made = std::move(appender).take();
  file.bytes.insert(file.bytes.end(), made.bytes.begin(), made.bytes.end());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    file.rows.insert(file.rows.end(), {-1, made.begins[i], made.sizes[i]});
  }
  file.index = file.bytes.size();
  file.rows.insert(file.rows.end(), {-1, static_cast<std::int64_t>(file.index), 0});
  ArrayRecordTail tail(file.rows);
  for (Bytes part = tail.next(); !part.empty(); part = tail.next()) {
    file.bytes.insert(file.bytes.end(), part.begin(), part.end());
  }
  CHECK(tail.next().empty());
  return file;
}

std::vector<std::size_t> many_lengths(std::size_t count) {
  std::mt19937 random(6);
  std::vector<std::size_t> lengths(count);
  for (auto& length : lengths) length = random() % 3;
  lengths[count / 2] = 100'000;
  return lengths;
}

void test_records() {
  const auto lengths = many_lengths(2'000);
  const File file = file_of(lengths);
  const std::span bytes(file.bytes);
  const auto records = bytes.first(static_cast<std::size_t>(file.index)).subspan(64);
  const ArrayRecords found = read_array_records(records, 64);
  CHECK(found.flaw == ChunkFlaw::kNone && found.end == file.index);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    CHECK(static_cast<std::size_t>(found.lengths[i]) == lengths[i]);
    CHECK(found.begins[i] == file.rows[3 * i + 1] && found.sizes[i] == file.rows[3 * i + 2]);
  }
  for (const std::uint32_t id : found.ids) CHECK(id == 300);
  // From the middle, cut off.
  const auto begin = static_cast<std::size_t>(found.begins[500]);
  const ArrayRecords few = read_array_records(bytes.subspan(begin, 1'000), begin);
  CHECK(few.flaw == ChunkFlaw::kCut && few.begins.size() > 10);
  CHECK(few.end == static_cast<std::uint64_t>(found.begins[500 + few.begins.size()]));
  // The index is no document.
  const ArrayRecords more = read_array_records(bytes.subspan(64), 64);
  CHECK(more.flaw == ChunkFlaw::kLayout && more.end == file.index && more.ids == found.ids);
}

void test_index_in_any_parts() {
  for (const std::size_t count : {1UL, 2UL, 3'000UL, ArrayRecordTail::kRows + 5}) {
    const File file = file_of(many_lengths(count));
    const std::span bytes(file.bytes);
    CHECK(array_record_index(bytes.last(kBlockSize)) == file.index);
    CHECK(!array_record_index(bytes.first(kBlockSize)) || count == 1);
    for (const std::size_t size : {1UL, 7UL, 70'000UL, file.bytes.size()}) {
      ArrayRecordIndexReader reader(file.index);
      Numbers positions;
      Numbers sizes;
      for (auto at = static_cast<std::size_t>(file.index); !reader.done(); at += size) {
        const auto part = bytes.subspan(at, std::min(size, bytes.size() - at));
        CHECK(reader.add(part, positions, sizes));
      }
      CHECK(positions.size() == count && sizes.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(positions[i] == file.rows[3 * i + 1] && sizes[i] == file.rows[3 * i + 2]);
      }
    }
  }
}

void test_what_is_no_index() {
  const File file = file_of({1, 2, 3});
  for (const std::size_t skipped : {0UL, 64UL}) {
    ArrayRecordIndexReader reader(skipped);
    Numbers positions;
    Numbers sizes;
    const bool good = reader.add(std::span(file.bytes).subspan(skipped), positions, sizes);
    CHECK(!good || !reader.done() || positions.empty());
  }
  CHECK(!array_record_index({}));
  CHECK(!array_record_index(Bytes(kBlockSize)));
}

}  // namespace

int main() {
  test_records();
  test_index_in_any_parts();
  test_what_is_no_index();
}

// TFRecord files: known checksums, a record byte by byte, what is written is read, damage is seen.
#include "shards/tf_records.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::uint32_t slow_crc(const Bytes& data) {
  std::uint32_t crc = ~0U;
  for (const std::uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

void test_checksums() {
  CHECK(crc32c(bytes_of("123456789")) == 0xE3069283U);
  CHECK(crc32c(Bytes(32, 0)) == 0x8A9136AAU);
  CHECK(crc32c(Bytes(32, 0xFF)) == 0x62A8AB43U);
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 100; ++size) {
    Bytes data(size);
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    CHECK(crc32c(data) == slow_crc(data));
    CHECK(tf_record_detail::crc32c_by_tables(data) == slow_crc(data));
  }
}

void test_a_record() {
  Bytes record;
  append_tf_record(std::vector<std::uint32_t>{1, 300}, record);
  // Example { Features { "input_ids": Feature { Int64List { 1, 300 } } } }
  const std::string_view example(
      "\x0A\x16\x0A\x14\x0A\x09input_ids\x12\x07\x1A\x05\x0A\x03\x01\xAC\x02", 24);
  CHECK(record.size() == 8 + 4 + example.size() + 4);
  CHECK(record[0] == example.size());
  CHECK(std::string_view(reinterpret_cast<const char*>(record.data()) + 12, 24) == example);
}

void test_what_is_written_is_read() {
  std::mt19937 random(2);
  Bytes data;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;
  for (int document = 0; document < 50; ++document) {
    const std::size_t length = document % 3 == 0 ? 0 : random() % 90;
    std::vector<std::uint32_t> each(length);
    for (auto& id : each) id = static_cast<std::uint32_t>(random() >> (1 + random() % 31));
    if (length > 0) each[0] = 0x7FFFFFFFU;
    append_tf_record(each, data);
    ids.insert(ids.end(), each.begin(), each.end());
    lengths.push_back(static_cast<std::int64_t>(length));
  }
  const TfRecords all = read_tf_records(data);
  CHECK(all.flaw == TfRecordFlaw::kNone && all.needed == 0);
  CHECK(all.ids == ids && all.lengths == lengths);
  CHECK(all.ends.back() == static_cast<std::int64_t>(data.size()));
  // Cut anywhere: the whole records, and how much the next one needs.
  for (std::size_t size = 0; size < 400; ++size) {
    const ExactCopy part(std::string_view(reinterpret_cast<const char*>(data.data()), size));
    const auto* begin = reinterpret_cast<const std::uint8_t*>(part.view().data());
    const TfRecords found = read_tf_records({begin, size});
    CHECK(found.flaw == TfRecordFlaw::kNone);
    const std::size_t whole = found.lengths.size();
    const std::size_t end = whole == 0 ? 0 : static_cast<std::size_t>(found.ends.back());
    CHECK(end <= size && (end == size) == (found.needed == 0));
    CHECK(found.needed == 0 || end + found.needed > size);
    CHECK(static_cast<std::size_t>(all.ends[whole]) > size || end == size);
  }
}

void test_every_flipped_bit_is_seen() {
  Bytes data;
  append_tf_record(std::vector<std::uint32_t>{5, 70000, 0, 9}, data);
  append_tf_record({}, data);
  const TfRecords whole = read_tf_records(data);
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    Bytes damaged = data;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const TfRecords found = read_tf_records(damaged);
    CHECK(found.flaw != TfRecordFlaw::kNone);
    CHECK(found.lengths.size() < whole.lengths.size());
  }
}

/// Appends a number, little-endian.
template <typename Number>
void append_number(Number number, Bytes& out) {
  out.resize(out.size() + sizeof(Number));
  put_number(number, out.data() + out.size() - sizeof(Number));
}

/// A record with true checksums around other bytes.
Bytes record_of(const Bytes& example) {
  Bytes record;
  append_number(static_cast<std::uint64_t>(example.size()), record);
  append_number(masked_crc32c(record), record);
  record.insert(record.end(), example.begin(), example.end());
  append_number(masked_crc32c(example), record);
  return record;
}

void test_other_layouts_are_refused() {
  Bytes record;
  append_tf_record(std::vector<std::uint32_t>{1, 300}, record);
  const Bytes example(record.begin() + 12, record.end() - 4);
  CHECK(record_of(example) == record);
  CHECK(read_tf_records(record_of({})).flaw == TfRecordFlaw::kLayout);
  for (std::size_t size = 0; size < example.size(); ++size) {
    const Bytes cut(example.begin(), example.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(read_tf_records(record_of(cut)).flaw == TfRecordFlaw::kLayout);
  }
  // An id of two bytes where one is enough, and one beyond 2^31 - 1.
  for (const std::string_view ids :
       {std::string_view("\x81\x00\x01", 3), std::string_view("\x80\x80\x80\x80\x08", 5)}) {
    const auto size = static_cast<char>(ids.size());
    std::string made = {'\x0A', static_cast<char>(19 + size), '\x0A', static_cast<char>(17 + size)};
    made += "\x0A\x09input_ids";
    made += {'\x12', static_cast<char>(4 + size), '\x1A', static_cast<char>(2 + size)};
    made += {'\x0A', size};
    made += ids;
    CHECK(read_tf_records(record_of(bytes_of(made))).flaw == TfRecordFlaw::kLayout);
  }
}

}  // namespace

int main() {
  test_checksums();
  test_a_record();
  test_what_is_written_is_read();
  test_every_flipped_bit_is_seen();
  test_other_layouts_are_refused();
}

// Examples: known bytes, sizes, varints in their shortest form, and other layouts refused.
#include "shards/tf_example.hpp"

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;
using Bytes = std::vector<std::uint8_t>;

Bytes example_of(const Ids& ids) {
  const ExampleSizes sizes(ids);
  Bytes bytes(static_cast<std::size_t>(sizes.example));
  CHECK(put_example(ids, sizes, bytes.data()) == bytes.data() + bytes.size());
  return bytes;
}

std::string_view view_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void test_known_bytes() {
  // Example { Features { "input_ids": Feature { Int64List { 1, 300 } } } }
  CHECK(view_of(example_of({1, 300})) ==
        std::string_view("\x0A\x16\x0A\x14\x0A\x09input_ids\x12\x07\x1A\x05\x0A\x03\x01\xAC\x02",
                         24));
  CHECK(view_of(example_of({})) ==
        std::string_view("\x0A\x11\x0A\x0F\x0A\x09input_ids\x12\x02\x1A\x00", 19));
}

void test_varints() {
  std::uint8_t bytes[10];
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::uint64_t value : {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1}) {
      const auto size = static_cast<std::size_t>(put_varint(value, bytes) - bytes);
      CHECK(size == varint_size(value));
      const ExactCopy copy(std::string_view(reinterpret_cast<const char*>(bytes), size));
      std::string_view data = copy.view();
      CHECK(take_varint(data, value) == value && data.empty());
      data = copy.view();
      CHECK(value == 0 || !take_varint(data, value - 1));
      data = copy.view().substr(0, size - 1);
      CHECK(!take_varint(data, value));
    }
  }
  std::string_view longer("\x81\x00", 2);
  CHECK(!take_varint(longer, 1000));
}

void test_what_is_written_is_read() {
  std::mt19937 random(2);
  for (std::size_t length : {0, 1, 2, 6, 7, 8, 9, 20, 50, 130, 5000, 70000}) {
    Ids ids(length);
    for (auto& id : ids) id = static_cast<std::uint32_t>(random() >> (1 + random() % 31));
    const Bytes example = example_of(ids);
    const ExactCopy copy(view_of(example));
    Ids found{7};
    CHECK(read_example(copy.view(), found));
    CHECK(found.front() == 7 && Ids(found.begin() + 1, found.end()) == ids);
    CHECK(length > 200 || !read_example(copy.view().substr(0, example.size() - 1), found));
  }
}

// The list of ids is the end of an Example.
void test_each_way_of_writing_ids_gives_the_same_bytes() {
  std::mt19937 random(3);
  for (int trial = 0; trial < 4000; ++trial) {
    // Mostly ids of up to three bytes, which are written four at a time, in lists of any length.
    Ids ids(random() % 70);
    for (auto& id : ids) {
      const auto bits = static_cast<std::uint32_t>(random() % 40 == 0 ? 31 : 5 + random() % 17);
      id = static_cast<std::uint32_t>(random()) & ((1U << bits) - 1);
    }
    Bytes expected(5 * ids.size());
    std::uint8_t* end = expected.data();
    for (const std::uint32_t id : ids) end = put_varint(id, end);
    expected.resize(static_cast<std::size_t>(end - expected.data()));
    Bytes each(expected.size());
    CHECK(tf_example_detail::put_each_id(ids, each.data()) == each.data() + each.size());
    CHECK(each == expected);
    CHECK(view_of(example_of(ids)).ends_with(view_of(expected)));
  }
}

void test_other_layouts_are_refused() {
  const Bytes example = example_of({1, 300});
  for (std::size_t at = 0; at < example.size(); ++at) {
    if (at >= 21) continue;  // the ids
    Bytes damaged = example;
    damaged[at] ^= 1;
    Ids ids;
    CHECK(!read_example(view_of(damaged), ids));
  }
}

}  // namespace

int main() {
  test_known_bytes();
  test_varints();
  test_what_is_written_is_read();
  test_each_way_of_writing_ids_gives_the_same_bytes();
  test_other_layouts_are_refused();
}

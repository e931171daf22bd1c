// Ids and their indices: each index leads back to its id, and ids are in the order of their first
// use.
#include "shards/id_dictionary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;

/// The ids that indices of some bytes lead to.
Ids looked_up(std::span<const std::uint32_t> known, const std::vector<std::uint8_t>& indices,
              std::size_t width) {
  CHECK(indices.size() % width == 0);
  Ids found;
  for (std::size_t at = 0; at < indices.size(); at += width) {
    std::size_t index = 0;
    for (std::size_t byte = 0; byte < width; ++byte) {
      index |= std::size_t{indices[at + byte]} << (8 * byte);
    }
    CHECK(index < known.size());
    found.push_back(known[index]);
  }
  return found;
}

Ids first_uses(const Ids& ids) {
  Ids found;
  for (const std::uint32_t id : ids) {
    if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
  }
  return found;
}

/// Take the indices behind some bytes, without those and the zeros at the end.
std::vector<std::uint8_t> taken(IdDictionary& dictionary, std::size_t count) {
  const std::size_t size = count * dictionary.width();
  const auto page = dictionary.take("head");
  CHECK(page.size() == 4 + (count + 7) / 8 * 8 * dictionary.width());
  CHECK(std::equal(page.begin(), page.begin() + 4, "head"));
  const auto end = page.begin() + 4 + static_cast<std::ptrdiff_t>(size);
  CHECK(std::all_of(end, page.end(), [](std::uint8_t byte) { return byte == 0; }));
  return {page.begin() + 4, end};
}

/// Add ids in three parts, and take the indices behind the first and the last.
void check_all(const Ids& ids, std::size_t width) {
  IdDictionary dictionary;
  const std::span<const std::uint32_t> all = ids;
  const std::size_t third = ids.size() / 3;
  dictionary.add(all.first(third));
  const std::size_t first_width = dictionary.width();
  const auto first = taken(dictionary, third);
  dictionary.add(all.subspan(third, third));
  dictionary.add(all.subspan(2 * third));
  CHECK(dictionary.width() == width);
  const auto rest = taken(dictionary, ids.size() - third);
  CHECK(dictionary.take({}).empty());
  Ids found = looked_up(dictionary.ids(), first, first_width);
  const Ids behind = looked_up(dictionary.ids(), rest, width);
  found.insert(found.end(), behind.begin(), behind.end());
  CHECK(found == ids);
}

/// `count` different ids, in any order and some of them twice.
Ids different(std::size_t count, std::uint32_t step, std::mt19937& random) {
  Ids ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(step * static_cast<std::uint32_t>(i));
    if (random() % 4 == 0) ids.push_back(ids.back());
  }
  std::shuffle(ids.begin(), ids.end(), random);
  return ids;
}

void test_widths(std::uint32_t step) {
  std::mt19937 random(step);
  check_all({0}, 1);
  check_all(different(256, step, random), 1);
  check_all(different(257, step, random), 2);
  check_all(different(65'536, step, random), 2);
  check_all(different(65'537, step, random), 3);
}

void test_great_ids() {
  constexpr std::uint32_t kTable = IdDictionary::kTableIds;
  for (const std::uint32_t id : {kTable - 1, kTable, kTable + 1, 0x7FFF'FFFFU, 0xFFFF'FFFFU}) {
    check_all({id, 3, id, 0, 3, id - 1}, 1);
  }
}

void test_order() {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Ids ids(random() % 200);
    for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(random() % 90) << (round % 26);
    IdDictionary dictionary;
    dictionary.add(ids);
    CHECK(std::ranges::equal(dictionary.ids(), first_uses(ids)));
  }
}

}  // namespace

int main() {
  test_widths(1);
  test_widths(1'000);  // 65,536 of them go beyond the table
  test_great_ids();
  test_order();
  check_all({}, 1);
}

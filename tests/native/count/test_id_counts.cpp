// How often ids occur, by row.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "count/id_counts.hpp"

using namespace bpe_beam;

namespace {

using Ids = std::vector<std::uint32_t>;
using Longs = std::vector<std::int64_t>;

void counts_by_row() {
  const Ids ids{0, 2, 2, 1, 2};
  const Longs offsets{0, 2, 2, 5};  // the second document has no id
  Longs table(6);
  add_id_counts(ids, offsets, Ids{1, 0, 1}, table, 3);
  CHECK(table == Longs{0, 0, 0, 1, 1, 3});
  add_id_counts(ids, offsets, {}, table, 3);
  CHECK(table == Longs{1, 1, 3, 1, 1, 3});
}

void counts_only_the_ids_of_documents() {
  Longs table(4);
  add_id_counts(Ids{3, 1, 0, 3}, Longs{1, 3}, {}, table, 4);
  CHECK(table == Longs{1, 1, 0, 0});
}

void refuses_what_the_table_lacks() {
  Longs table(4);
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{2}, Longs{0, 1}, {}, table, 2), 0));
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{1}, Longs{0, 1}, Ids{2}, table, 2), 0));
  CHECK_THROWS(std::invalid_argument, (add_id_counts(Ids{0}, Longs{0, 1}, {}, {}, 0), 0));
}

void agrees_with_one_id_at_a_time() {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const std::size_t columns = 1 + random() % 9, height = 1 + random() % 4;
    Ids ids, rows;
    Longs offsets{0}, table(columns * height), expected(columns * height);
    for (std::size_t d = random() % 12; d > 0; --d) {
      rows.push_back(static_cast<std::uint32_t>(random() % height));
      for (std::size_t i = random() % 7; i > 0; --i) {
        ids.push_back(static_cast<std::uint32_t>(random() % columns));
        ++expected[rows.back() * columns + ids.back()];
      }
      offsets.push_back(static_cast<std::int64_t>(ids.size()));
    }
    add_id_counts(ids, offsets, rows, table, columns);
    CHECK(table == expected);
  }
}

}  // namespace

int main() {
  counts_by_row();
  counts_only_the_ids_of_documents();
  refuses_what_the_table_lacks();
  agrees_with_one_id_at_a_time();
}

// How often ids occur, by the row of a table that each document belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace bpe_beam {

/// Adds 1 to `table[rows[d] * columns + id]` for each id of each document d, whose ids are
/// ids[offsets[d]] to ids[offsets[d + 1]]; without rows all documents are of row 0. The offsets
/// must ascend within the ids. Throws std::invalid_argument at an id or a row outside the table,
/// after earlier ids were added.
inline void add_id_counts(std::span<const std::uint32_t> ids,
                          std::span<const std::int64_t> offsets,
                          std::span<const std::uint32_t> rows, std::span<std::int64_t> table,
                          std::size_t columns) {
  const std::size_t height = columns == 0 ? 0 : table.size() / columns;
  for (std::size_t d = 0; d + 1 < offsets.size(); ++d) {
    const std::size_t row = rows.empty() ? 0 : rows[d];
    if (row >= height) throw std::invalid_argument("rows must be within the table");
    const auto counts = table.subspan(row * columns, columns);
    const auto begin = static_cast<std::size_t>(offsets[d]);
    for (const std::uint32_t id :
         ids.subspan(begin, static_cast<std::size_t>(offsets[d + 1]) - begin)) {
      if (id >= columns) throw std::invalid_argument("ids must be within the table");
      ++counts[id];
    }
  }
}

}  // namespace bpe_beam

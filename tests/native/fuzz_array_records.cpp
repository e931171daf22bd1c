// Chunks of ArrayRecord files: what is read is written again to the same bytes; no index harms.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "shards/array_records.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::span<const std::uint8_t> span_of(std::string_view view) {
  return {reinterpret_cast<const std::uint8_t*>(view.data()), view.size()};
}

/// Reads an index in parts, as far as that goes.
void read_index(std::span<const std::uint8_t> bytes, std::uint64_t begin, std::size_t size) {
  ArrayRecordIndexReader reader(begin);
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> sizes;
  while (!bytes.empty() && !reader.done()) {
    const auto part = bytes.first(std::min(size, bytes.size()));
    if (!reader.add(part, positions, sizes)) return;
    bytes = bytes.subspan(part.size());
  }
  CHECK(positions.size() == sizes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  // Often just before the end of a block.
  const std::uint64_t first = input.byte() % 2 == 0 ? 64 : kBlockSize - 1 - input.byte();
  const std::size_t part = 1 + input.byte();
  Bytes file;
  while (!input.empty()) {
    const std::uint64_t at = first + file.size();
    const std::uint32_t kind = input.below(4);
    if (kind == 0) {
      const auto content = span_of(input.bytes(input.below(60)));
      append_chunk({.kind = ChunkKind::kSimple,
                    .records = input.below(3),
                    .records_size = input.byte()},
                   content, at, file);
      continue;
    }
    std::vector<std::uint32_t> ids(input.below(50));
    for (auto& id : ids) id = static_cast<std::uint32_t>(input.byte()) << input.below(24);
    ArrayRecordAppender appender(at);
    appender.add(ids);
    Bytes chunk = std::move(appender).take().bytes;
    if (kind == 1) chunk[input.byte() % chunk.size()] ^= input.byte();
    file.insert(file.end(), chunk.begin(), chunk.end());
  }
  const ExactCopy copy(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()));
  const auto bytes = span_of(copy.view());
  const ArrayRecords found = read_array_records(bytes, first);
  CHECK(found.lengths.size() == found.begins.size() && found.sizes.size() == found.begins.size());
  ArrayRecordAppender again(first);
  std::size_t at = 0;
  for (const std::int64_t length : found.lengths) {
    again.add(std::span(found.ids).subspan(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
  CHECK(at == found.ids.size());
  const ArrayRecordBytes written = std::move(again).take();
  CHECK(written.begins == found.begins && written.sizes == found.sizes);
  CHECK(first + written.bytes.size() == found.end);
  CHECK(std::equal(written.bytes.begin(), written.bytes.end(), file.begin()));
  CHECK(written.bytes.size() == file.size() || found.flaw != ChunkFlaw::kNone);
  read_index(bytes, first, part);
  if (!bytes.empty()) static_cast<void>(array_record_index(bytes));
  return 0;
}

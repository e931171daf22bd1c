// Chunks: positions byte by byte, what is written is read, padding, and every damage seen.
#include "shards/riegeli_chunks.hpp"

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;

void test_positions_are_those_of_counting() {
  for (const std::uint64_t begin : {0, 25, 64, 65'535, 65'536, 65'561, 131'000, 131'071}) {
    CHECK(is_chunk_begin(begin));
    std::uint64_t at = begin;
    for (std::uint64_t size = 1; size < 140'000; ++size) {
      if (at % kBlockSize == 0) at += kBlockHeadSize;
      ++at;
      CHECK(behind_content(begin, size) == at);
      CHECK(is_chunk_begin(at));
    }
  }
  CHECK(!is_chunk_begin(1) && !is_chunk_begin(24) && !is_chunk_begin(65'560));
}

Bytes random_bytes(std::size_t size, std::mt19937& random) {
  Bytes data(size);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
  return data;
}

void test_what_is_written_is_read() {
  std::mt19937 random(3);
  for (const std::uint64_t first : {0, 64, 65'490, 65'500, 65'530, 65'536}) {
    Bytes file;
    std::vector<Bytes> all;
    std::uint64_t at = first;
    for (const std::size_t size : {0, 5, 200, 65'000, 65'400, 140'000, 3, 65'448, 1}) {
      all.push_back(random_bytes(size, random));
      at = append_chunk({.kind = ChunkKind::kSimple, .records = size, .records_size = 2 * size},
                        all.back(), at, file);
      CHECK(at == first + file.size());
    }
    const ExactCopy copy(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()));
    ChunkReader reader(
        {reinterpret_cast<const std::uint8_t*>(copy.view().data()), copy.view().size()}, first);
    for (const Bytes& data : all) {
      const Chunk chunk = reader.next();
      CHECK(chunk.flaw == ChunkFlaw::kNone && chunk.head.kind == ChunkKind::kSimple);
      CHECK(chunk.head.records == data.size() && chunk.head.records_size == 2 * data.size());
      CHECK(std::equal(data.begin(), data.end(), chunk.data.begin(), chunk.data.end()));
    }
    CHECK(reader.at_end());
  }
}

void test_data_in_parts() {
  std::mt19937 random(4);
  const Bytes data = random_bytes(150'000, random);
  Bytes whole;
  append_chunk({.kind = ChunkKind::kSimple}, data, 60'000, whole);
  Bytes parts;
  ChunkWriter writer({.kind = ChunkKind::kSimple,
                      .data_size = data.size(),
                      .data_hash = riegeli_hash_of(data)},
                     60'000, parts);
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t count = std::min<std::size_t>(random() % 9'000, data.size() - at);
    writer.add(std::span(data).subspan(at, count), parts);
    at += count;
  }
  CHECK(parts == whole && writer.end() == 60'000 + whole.size());
}

void test_padding_fills_blocks() {
  for (std::uint64_t begin = 65'400; begin < 65'700; ++begin) {
    if (!is_chunk_begin(begin)) continue;
    Bytes file;
    const std::uint64_t end = append_padding(begin, file);
    CHECK(end == begin + file.size() && end % kBlockSize == 0);
    const bool is_short = begin < 65'536 && begin > 65'536 - 40;
    CHECK(end == (is_short || begin > 65'536 ? 131'072 : 65'536));
    if (!file.empty()) CHECK(ChunkReader(file, begin).next().flaw == ChunkFlaw::kNone);
  }
}

void test_every_flipped_bit_is_seen() {
  std::mt19937 random(5);
  Bytes file;
  append_chunk({.kind = ChunkKind::kSimple, .records = 1}, random_bytes(150, random), 65'440, file);
  CHECK(ChunkReader(file, 65'440).next().flaw == ChunkFlaw::kNone);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(ChunkReader(damaged, 65'440).next().flaw != ChunkFlaw::kNone);
  }
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(ChunkReader(cut, 65'440).next().flaw == ChunkFlaw::kCut);
  }
  CHECK(ChunkReader(file, 10).next().flaw == ChunkFlaw::kLayout);
}

/// A head with a true hash that says more data than any file has.
void test_a_size_beyond_all() {
  const auto head = ChunkHead{.data_size = ~std::uint64_t{0}}.bytes();
  Bytes file(head.begin(), head.end());
  file.resize(200);
  CHECK(ChunkReader(file, 64).next().flaw == ChunkFlaw::kCut);
}

}  // namespace

int main() {
  test_positions_are_those_of_counting();
  test_what_is_written_is_read();
  test_data_in_parts();
  test_padding_fills_blocks();
  test_every_flipped_bit_is_seen();
  test_a_size_beyond_all();
}

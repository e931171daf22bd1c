// Records of TFRecord files: whatever is read is written again to the same bytes, in any windows.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "shards/tf_records.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Appends a number, little-endian.
template <typename Number>
void append_number(Number number, Bytes& out) {
  out.resize(out.size() + sizeof(Number));
  put_number(number, out.data() + out.size() - sizeof(Number));
}

/// A record with true checksums around any bytes.
void append_framed(std::string_view example, Bytes& out) {
  const std::size_t start = out.size();
  append_number(static_cast<std::uint64_t>(example.size()), out);
  append_number(masked_crc32c(std::span(out).subspan(start)), out);
  const std::size_t at = out.size();
  out.insert(out.end(), example.begin(), example.end());
  append_number(masked_crc32c(std::span(out).subspan(at)), out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Bytes file;
  while (!input.empty()) {
    std::vector<std::uint32_t> ids(input.below(5));
    for (auto& id : ids) {
      id = static_cast<std::uint32_t>(input.byte()) << input.below(24);
    }
    Bytes record;
    append_tf_record(ids, record);
    const std::uint32_t kind = input.below(4);
    if (kind == 0) {
      append_framed(input.bytes(input.below(40)), file);
    } else if (kind == 1) {
      std::string example(record.begin() + 12, record.end() - 4);
      example[input.byte() % example.size()] = static_cast<char>(input.byte());
      append_framed(example, file);
    } else {
      if (kind == 2) record[input.byte() % record.size()] ^= input.byte();
      file.insert(file.end(), record.begin(), record.end());
    }
  }
  const ExactCopy copy(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()));
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(copy.view().data()), file.size());
  const TfRecords found = read_tf_records(bytes);
  CHECK(found.lengths.size() == found.ends.size());
  Bytes again;
  std::size_t at = 0;
  for (std::size_t i = 0; i < found.lengths.size(); ++i) {
    const auto length = static_cast<std::size_t>(found.lengths[i]);
    append_tf_record(std::span(found.ids).subspan(at, length), again);
    at += length;
    CHECK(again.size() == static_cast<std::size_t>(found.ends[i]));
  }
  CHECK(at == found.ids.size());
  CHECK(std::equal(again.begin(), again.end(), file.begin()));
  CHECK(again.size() == file.size() || found.needed > 0 || found.flaw != TfRecordFlaw::kNone);
  return 0;
}

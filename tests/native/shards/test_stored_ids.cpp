// Ids of documents in a file: every kind and type beside a slow copy, and bounds that are wrong.
#include "shards/stored_ids.hpp"

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Values as bytes; the first is at an odd address.
template <typename T>
Bytes shifted(const std::vector<T>& values) {
  Bytes bytes(1 + values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  return bytes;
}

std::span<const std::uint8_t> behind_first(const Bytes& bytes) {
  return std::span<const std::uint8_t>(bytes).subspan(1);
}

template <typename From, typename To>
void check_copies(IdKind kind, std::size_t unit, bool without_first, bool without_last) {
  std::mt19937 random(static_cast<unsigned>(unit));
  std::vector<From> ids;
  std::vector<std::int64_t> all{0};
  for (int document = 0; document < 40; ++document) {
    const std::size_t length = document % 5 == 0 ? 0 : random() % 90;
    for (std::size_t i = 0; i < length; ++i) ids.push_back(static_cast<From>(random()));
    all.push_back(static_cast<std::int64_t>(ids.size() * unit));
  }
  const std::vector<std::int64_t> kept(all.begin() + (without_first ? 1 : 0),
                                       all.end() - (without_last ? 1 : 0));
  const Bytes id_bytes = shifted(ids);
  const Bytes bound_bytes = shifted(kept);
  const StoredIds stored(behind_first(id_bytes), kind, behind_first(bound_bytes), unit,
                         without_first, without_last);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto range = stored.document(i);
    CHECK(range.has_value());
    CHECK(range->begin == static_cast<std::size_t>(all[i]) / unit);
    CHECK(range->count == static_cast<std::size_t>(all[i + 1] - all[i]) / unit);
    std::vector<To> copy(range->count);
    stored.copy(*range, copy.data());
    for (std::size_t at = 0; at < copy.size(); ++at) {
      CHECK(copy[at] == static_cast<To>(ids[range->begin + at]));
    }
  }
  CHECK(!stored.document(all.size() - 1).has_value());
  CHECK(!stored.document(SIZE_MAX).has_value());
}

template <typename From>
void check_kind(IdKind kind) {
  for (const std::size_t unit : {std::size_t{1}, sizeof(From), std::size_t{3}}) {
    check_copies<From, std::uint32_t>(kind, unit, false, false);
    check_copies<From, std::int64_t>(kind, unit, true, false);
    check_copies<From, std::int64_t>(kind, unit, false, true);
  }
}

void check_wrong_bounds() {
  const Bytes ids = shifted(std::vector<std::uint16_t>(10));
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{11}, INT64_MIN, INT64_MAX}) {
    const Bytes bounds = shifted(std::vector<std::int64_t>{0, wrong, 10});
    const StoredIds stored(behind_first(ids), IdKind::kUint16, behind_first(bounds), 1, false,
                           false);
    CHECK(!stored.document(0).has_value());
    CHECK(!stored.document(1).has_value());
  }
  const Bytes none;
  const StoredIds empty(none, IdKind::kUint16, none, 1, false, false);
  CHECK(!empty.document(0).has_value());
  const StoredIds ends(none, IdKind::kUint16, none, 1, true, false);
  CHECK(!ends.document(0).has_value());
  bool refused = false;
  try {
    const StoredIds unusable(none, IdKind::kUint16, none, 0, false, false);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

}  // namespace

int main() {
  check_kind<std::uint8_t>(IdKind::kUint8);
  check_kind<std::uint16_t>(IdKind::kUint16);
  check_kind<std::uint32_t>(IdKind::kUint32);
  check_kind<std::int32_t>(IdKind::kInt32);
  check_wrong_bounds();
}

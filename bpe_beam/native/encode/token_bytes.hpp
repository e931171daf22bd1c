// Ids to bytes: the bytes of each token by its id, joined in the order of the ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "encode/word_model.hpp"

namespace bpe_beam {

class TokenBytes {
 public:
  /// How many bytes `join` may write after the joined ones.
  static constexpr std::size_t kBehind = 16;

  /// `tokens`: bytes and ids. If two ids are equal, the last counts.
  explicit TokenBytes(const TokenIds& tokens) {
    for (const auto& [bytes, id] : tokens) {
      if (id >= kMostIds) throw std::length_error("an id of 2^28 or more");
      if (id >= slots_.size()) slots_.resize(std::size_t{id} + 1);
      slots_[id] = {bytes_.size(), bytes.size()};
      bytes_ += bytes;
    }
    bytes_.append(kBehind, '\0');
  }

  /// The number of bytes that ids become, or nothing if one of them has no token.
  [[nodiscard]] std::optional<std::size_t> size_of(std::span<const std::uint32_t> ids) const {
    std::size_t size = 0;
    for (const std::uint32_t id : ids) {
      if (id >= slots_.size() || slots_[id].size == kNoToken) return std::nullopt;
      size += slots_[id].size;
    }
    return size;
  }

  /// Writes the bytes of ids, and up to kBehind bytes more, from `out` on and before `end`. Returns
  /// the end of the ids' bytes; null if an id has no token, or the bytes and kBehind more do not
  /// fit.
  char* join(std::span<const std::uint32_t> ids, char* out, const char* end) const {
    for (const std::uint32_t id : ids) {
      if (id >= slots_.size()) return nullptr;
      const Slot slot = slots_[id];
      const auto room = static_cast<std::size_t>(end - out);
      if (room < kBehind || slot.size > room - kBehind) return nullptr;
      // Most tokens are short: then a copy without a loop, whatever their size.
      std::memcpy(out, bytes_.data() + slot.begin, kBehind);
      if (slot.size > kBehind) std::memcpy(out, bytes_.data() + slot.begin, slot.size);
      out += slot.size;
    }
    return out;
  }

 private:
  static constexpr std::uint32_t kMostIds = std::uint32_t{1} << 28;
  static constexpr std::size_t kNoToken = SIZE_MAX;

  struct Slot {
    std::size_t begin = 0;
    std::size_t size = kNoToken;
  };

  std::vector<Slot> slots_;  // by id
  std::string bytes_;
};

}  // namespace bpe_beam

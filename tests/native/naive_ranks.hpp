// Merging by rank as it is defined, and what a model makes of the merges found for the ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/bpe_ranks.hpp"
#include "naive_models.hpp"

/// The two neighbours that make the token of lowest rank, the leftmost of equals, until no two
/// make one. Bytes that are no tokens stay as they are. `tokens` have no two alike.
inline std::vector<std::string> naive_by_rank(const std::vector<std::string>& tokens,
                                              std::string_view word) {
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  while (true) {
    auto best = tokens.end();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::find(tokens.begin(), best, parts[i] + parts[i + 1]);
      if (found == best) continue;
      // A byte that is no token makes none, whatever it makes with its neighbour.
      const auto known = [&](const std::string& part) {
        return std::find(tokens.begin(), tokens.end(), part) != tokens.end();
      };
      if (!known(parts[i]) || !known(parts[i + 1])) continue;
      best = found;
      at = i;
    }
    if (best == tokens.end()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

/// The same by merges.
inline std::vector<std::string> by_merges(const std::vector<std::string>& tokens,
                                          const bpe_beam::BpeMerges& merges,
                                          std::string_view word) {
  bpe_beam::ModelState state;
  for (const char byte : word) {
    const auto found = std::find(tokens.begin(), tokens.end(), std::string(1, byte));
    state.ids.push_back(found == tokens.end() ? bpe_beam::kNoId
                                              : static_cast<std::uint32_t>(found - tokens.begin()));
    state.sizes.push_back(1);
  }
  merges.look_up_ranks(state);
  merges.apply(true, state);
  std::vector<std::string> parts;
  for (std::size_t i = 0, at = 0; i < state.ids.size(); at += state.sizes[i++]) {
    parts.emplace_back(word.substr(at, state.sizes[i]));
  }
  return parts;
}

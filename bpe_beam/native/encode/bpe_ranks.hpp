// Merges for tokens that have only ranks: a pair has the rank of the token that it makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

/// Maximum number of pairs of tokens that make a token: published vocabularies have fewer than a
/// million.
inline constexpr std::size_t kMaxPairs = std::size_t{1} << 22;

/// The merges of `tokens`, which are in the order of their ranks. A token has a merge if its own
/// bytes, merged by ranks, become the token: the last of these merges. A list of these merges gives
/// the same result as ranks.
///
/// Proof. Let x and y be neighbours that make a token t, in a text at any time while it is merged
/// by ranks. No merge so far crossed the outer borders of x and y. So each merge between these
/// borders had the lowest rank of all that were possible between them, and was the leftmost of that
/// rank. So these merges are the merges of the bytes of t alone, in the same order. Each merge
/// makes one token of two, so there is one time at which two tokens remain: x and y are these two,
/// the same in every text. So two neighbours can only be merged if the list has their pair, and no
/// token is made of two pairs. Ranks choose the lowest token, the list its only pair, both the
/// leftmost: by induction over the merges, all texts become the same. This is also true for a list
/// with further pairs of t next to this one, in any order, as in published files: those pairs are
/// never neighbours.
inline std::vector<MergeRow> merges_of_ranks(const std::vector<std::string>& tokens) {
  TokenIds numbered;
  std::set<std::size_t> sizes;
  numbered.reserve(tokens.size());
  for (const std::string& token : tokens) {
    numbered.emplace_back(token, static_cast<std::uint32_t>(numbered.size()));
    sizes.insert(token.size());
  }
  const TokenMap numbers(numbered);
  std::vector<MergeRow> all;
  for (std::uint32_t token = 0; token < tokens.size(); ++token) {
    const std::string_view bytes = tokens[token];
    // Only if both parts have a token's size, which is rare in a huge token.
    for (const std::size_t cut : sizes) {
      if (cut >= bytes.size()) break;
      if (cut == 0 || !sizes.contains(bytes.size() - cut)) continue;
      const std::uint32_t left = numbers.find(bytes.substr(0, cut));
      if (left == kNoId) continue;
      const std::uint32_t right = numbers.find(bytes.substr(cut));
      if (right != kNoId) all.push_back({left, right, token});
      if (all.size() > kMaxPairs) {
        throw std::length_error("the tokens fall into more than 2^22 pairs of tokens");
      }
    }
  }
  const BpeMerges merges(all, true);
  std::vector<MergeRow> rows;
  ModelState state;
  for (std::size_t i = 0, next = 0; i < all.size(); i = next) {
    const std::uint32_t token = all[i].joined;
    for (next = i; next < all.size() && all[next].joined == token;) ++next;
    state.ids.clear();
    for (const char byte : tokens[token]) {
      state.ids.push_back(numbers.find(std::string_view(&byte, 1)));
    }
    merges.look_up_ranks(state);
    MergeRow last{kNoId, kNoId, token};
    merges.apply_watched(state, [&](std::uint32_t, std::uint32_t left, std::uint32_t right) {
      last = {left, right, token};
    });
    if (state.ids.size() == 1 && state.ids[0] == token) rows.push_back(last);
  }
  return rows;
}

}  // namespace bpe_beam

// Merges for tokens that come with ranks only: a pair's rank is that of the token it makes.
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

/// Merges by rank, in numbers of tokens.
struct RankMerges {
  std::vector<MergeRow> rows;
  std::size_t doubtful;  // the first token that no single merge makes, or the number of tokens
};

/// Pairs of tokens that make a token, at most: published vocabularies have fewer than a million.
inline constexpr std::size_t kMaxPairs = std::size_t{1} << 22;

/// Finds the merges of `tokens`, which are in the order of their ranks.
///
/// Call a token sound if the merges of lower rank leave two tokens of its bytes, and doubtful if
/// it is not sound and two tokens make it of which one has a higher rank than itself. Without
/// doubtful tokens one merge for each sound token, of those two, gives what ranks give. For take
/// a text at the time when all merges of ranks below r are done, in ascending order, and none of
/// these pairs is left. Between two borders of tokens nothing was merged over them, so what lies
/// there was merged as if it were alone. Two neighbours that make token r are therefore the two
/// that its bytes alone become: r is sound, and this is its one pair. And a merge of rank r makes
/// no pair of a lower rank q: were q sound, its bytes alone would have become q at its time, and
/// so here; otherwise q has a part of higher rank, r, and is doubtful. So ranks come in ascending
/// order, as in a list, and each has one pair, merged from the left in both.
///
/// With a doubtful token the rows are all pairs that make a token, by the token's rank: they want
/// a model that ranks by token.
inline RankMerges merges_of_ranks(const std::vector<std::string>& tokens) {
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
    // Only where both parts have a token's size: of a huge token that is almost nowhere.
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
  std::vector<MergeRow> sound;
  ModelState state;
  for (std::size_t i = 0, next = 0; i < all.size(); i = next) {
    const std::uint32_t token = all[i].joined;
    bool all_lower = true;
    for (next = i; next < all.size() && all[next].joined == token; ++next) {
      all_lower = all_lower && all[next].left < token && all[next].right < token;
    }
    state.ids.clear();
    for (std::size_t at = 0; at < tokens[token].size(); ++at) {
      state.ids.push_back(numbers.find(std::string_view(tokens[token]).substr(at, 1)));
    }
    merges.look_up_ranks(state);
    MergeRow last{kNoId, kNoId, token};
    bool ascending = true;
    std::uint32_t last_rank = 0;
    merges.apply_watched(state, [&](std::uint32_t rank, std::uint32_t left, std::uint32_t right) {
      // Equal ranks are fine, except that the last merge must be the only one of its rank: that
      // follows, for another would have made the whole token before.
      ascending = ascending && rank >= last_rank;
      last_rank = rank;
      last = {left, right, token};
    });
    const bool whole = state.ids.size() == 1 && state.ids[0] == token;
    if (whole && ascending) {
      sound.push_back(last);
    } else if (!all_lower) {
      return {std::move(all), token};
    }
  }
  return {std::move(sound), tokens.size()};
}

}  // namespace bpe_beam

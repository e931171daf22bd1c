// BPE encoding as it is defined: the pair of lowest rank, the leftmost of equals, until none is
// left. What the fast encoder must equal; quadratic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpe_encoder.hpp"

using Specials = std::vector<std::pair<std::string, std::uint32_t>>;

struct NaiveEncoder {
  std::vector<bpe_beam::MergeRow> merges;
  std::vector<std::uint32_t> byte_ids;  // 256
  Specials specials;

  [[nodiscard]] std::vector<std::uint32_t> encode_word(std::vector<std::uint32_t> ids) const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> ranks;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      ranks[{merges[rank].left, merges[rank].right}] = rank;
    }
    while (true) {
      std::size_t best = merges.size();
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = ranks.find({ids[i], ids[i + 1]});
        if (found != ranks.end() && found->second < best) {
          best = found->second;
          at = i;
        }
      }
      if (best == merges.size()) return ids;
      ids[at] = merges[best].joined;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  /// The offset of the first byte without an id is thrown as bpe_beam::MissingByte.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text,
                                                  const std::vector<std::uint32_t>& allowed) const {
    std::vector<std::uint32_t> out;
    std::size_t begin = 0;
    std::size_t at = 0;
    while (at < text.size() && !allowed.empty()) {
      const std::pair<std::string, std::uint32_t>* longest = nullptr;
      for (const auto& special : specials) {
        if (text.substr(at, special.first.size()) == special.first &&
            (longest == nullptr || special.first.size() > longest->first.size())) {
          longest = &special;
        }
      }
      if (longest == nullptr) {
        ++at;
        continue;
      }
      const std::size_t end = at + longest->first.size();
      if (std::count(allowed.begin(), allowed.end(), longest->second) > 0) {
        encode_plain(text, begin, at, out);
        out.push_back(longest->second);
        begin = end;
      }
      at = end;
    }
    encode_plain(text, begin, text.size(), out);
    return out;
  }

 private:
  void encode_plain(std::string_view text, std::size_t begin, std::size_t end,
                    std::vector<std::uint32_t>& out) const {
    while (begin < end) {
      const std::size_t word_end = bpe_beam::Gpt2Scanner::next(text.substr(0, end), begin);
      std::vector<std::uint32_t> ids;
      for (std::size_t i = begin; i < word_end; ++i) {
        ids.push_back(byte_ids[static_cast<unsigned char>(text[i])]);
        if (ids.back() == bpe_beam::BpeModel::kNoId) throw bpe_beam::MissingByte{i};
      }
      const auto encoded = encode_word(std::move(ids));
      out.insert(out.end(), encoded.begin(), encoded.end());
      begin = word_end;
    }
  }
};

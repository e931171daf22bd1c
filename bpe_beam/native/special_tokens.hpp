// Special tokens in a text: leftmost first, of those the longest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe_beam {

class SpecialTokens {
 public:
  struct Match {
    std::size_t begin;
    std::size_t end;
    std::uint32_t id;
  };

  SpecialTokens() = default;

  explicit SpecialTokens(std::vector<std::pair<std::string, std::uint32_t>> tokens)
      : tokens_(std::move(tokens)) {
    // The longest first within one first byte, so that the first that fits is the longest.
    std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) {
      return a.first.size() > b.first.size();
    });
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].first.empty()) throw std::invalid_argument("a special token is empty");
      by_first_byte_[static_cast<unsigned char>(tokens_[i].first[0])].push_back(i);
    }
  }

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  /// The first match at or after `from`; {size, size, 0} when there is none.
  [[nodiscard]] Match find(std::string_view text, std::size_t from) const {
    if (!empty()) {
      for (std::size_t at = from; at < text.size(); ++at) {
        for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
          const std::string& token = tokens_[i].first;
          if (text.substr(at, token.size()) == token) {
            return {at, at + token.size(), tokens_[i].second};
          }
        }
      }
    }
    return {text.size(), text.size(), 0};
  }

 private:
  std::vector<std::pair<std::string, std::uint32_t>> tokens_;
  std::array<std::vector<std::size_t>, 256> by_first_byte_;
};

}  // namespace bpe_beam

// SentencePiece's own normalization: the replacements of a model, its rules for spaces, and the
// symbols that stay as they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "encode/byte_trie.hpp"
#include "normalize/normalizers.hpp"
#include "normalize/precompiled.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

struct SentencePieceRules {
  bool add_dummy_prefix;            // puts a space before a text that is not empty
  bool remove_extra_whitespaces;    // of spaces in a row keeps the first; none at the ends
  bool escape_whitespaces;          // writes U+2581 for a space
  bool treat_whitespace_as_suffix;  // puts the space of add_dummy_prefix behind the text
};

/// From the left: a symbol stays as it is; else the longest key of the charsmap is replaced; else
/// one character stays. The bytes equal SentencePiece's.
class SentencePieceNormalizer final : public Normalizer {
 public:
  /// `charsmap` may be empty. `symbols`: the longest one counts; their ids have no meaning here.
  SentencePieceNormalizer(std::string_view charsmap, const TokenIds& symbols,
                          SentencePieceRules rules)
      : symbols_(symbols), rules_(rules) {
    if (!charsmap.empty()) map_.emplace(charsmap);
    for (unsigned byte = 1; byte < 0x80; ++byte) plain_[byte] = byte != ' ' && is_plain(byte);
  }

  void apply(const TextView& in, TextBuffer& out) const override {
    const std::string_view text = in.bytes;
    std::size_t at = 0;
    if (rules_.remove_extra_whitespaces) {
      while (at < text.size()) {
        const Prefix first = prefix_at(text, at);
        if (first.text != " ") break;
        at += first.size;
      }
    }
    if (at == text.size()) return;
    const std::string_view space = rules_.escape_whitespaces ? kEscapedSpace : " ";
    const bool prefix = rules_.add_dummy_prefix && !rules_.treat_whitespace_as_suffix;
    if (prefix) out.put(space, edge(in, at, false, out));
    bool after_space = rules_.remove_extra_whitespaces;
    while (at < text.size()) {
      if (const std::size_t end = plain_end(text, at); end > at) {
        out.copy(in, at, end);
        after_space = false;
        at = end;
        continue;
      }
      Prefix found = prefix_at(text, at);
      while (after_space && found.text.starts_with(' ')) found.text.remove_prefix(1);
      if (!found.text.empty()) {
        put(found, in, at, space, out);
        after_space = rules_.remove_extra_whitespaces && found.text.ends_with(' ');
      }
      at += found.size;
      check_growth(text.size(), out.size());
    }
    if (rules_.remove_extra_whitespaces) {
      while (out.view().bytes.ends_with(space)) out.cut(out.size() - space.size());
    }
    if (rules_.add_dummy_prefix && !prefix) out.put(space, edge(in, text.size() - 1, true, out));
  }

 private:
  static constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

  /// What a text begins with: `size` bytes that become `text`.
  struct Prefix {
    std::size_t size;
    std::string_view text;
  };

  /// Whether an ASCII character before another one, or at the end, is no part of a key or symbol.
  [[nodiscard]] bool is_plain(unsigned byte) const {
    const char first = static_cast<char>(byte);
    if (symbols_.child(ByteTrie::kRoot, first) != ByteTrie::kNone) return false;
    if (!map_) return true;
    if (map_->find_longest({&first, 1}).size > 0) return false;
    for (char next = 1; next > 0 && next < 0x7F; ++next) {
      const std::array<char, 2> both{first, next};
      if (map_->begins_key({both.data(), 2})) return false;
    }
    const std::array<char, 2> last{first, 0x7F};
    return !map_->begins_key({last.data(), 2});
  }

  /// The end of the plain characters from `at`.
  [[nodiscard]] std::size_t plain_end(std::string_view text, std::size_t at) const {
    std::size_t end = at;
    while (end < text.size() && plain_[static_cast<unsigned char>(text[end])]) ++end;
    const bool alone = end == text.size() || static_cast<unsigned char>(text[end]) < 0x80;
    return alone || end == at ? end : end - 1;
  }

  [[nodiscard]] Prefix prefix_at(std::string_view text, std::size_t at) const {
    const std::string_view rest = text.substr(at);
    const std::size_t symbol = symbols_.longest(rest).size;
    if (symbol > 0) return {symbol, rest.substr(0, symbol)};
    if (map_) {
      const Charsmap::Match found = map_->find_longest(rest);
      if (found.size > 0) return {found.size, found.replacement};
    }
    const CodePoint point = decode_utf8(rest.data(), rest.data() + rest.size());
    if (point.value == kMalformed) return {point.size, kReplacement};
    return {point.size, rest.substr(0, point.size)};
  }

  /// Writes what replaces the bytes from `at`, with a space for each space.
  static void put(const Prefix& found, const TextView& in, std::size_t at, std::string_view space,
                  TextBuffer& out) {
    Origin origin;
    if (out.with_origins()) {
      origin = {in.origins[at].begin, in.origins[at + found.size - 1].end};
    }
    for (std::size_t begin = 0; begin < found.text.size();) {
      const std::size_t end = std::min(found.text.find(' ', begin), found.text.size());
      out.put(found.text.substr(begin, end - begin), origin);
      if (end < found.text.size()) out.put(space, origin);
      begin = end + 1;
    }
  }

  /// The empty origin before or behind a character of the text.
  static Origin edge(const TextView& in, std::size_t at, bool behind, const TextBuffer& out) {
    if (!out.with_origins()) return {};
    const std::size_t offset = behind ? in.origins[at].end : in.origins[at].begin;
    return {offset, offset};
  }

  std::optional<Charsmap> map_;
  ByteTrie symbols_;
  SentencePieceRules rules_;
  std::array<bool, 256> plain_{};
};

}  // namespace bpe_beam

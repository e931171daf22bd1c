// SentencePiece's own normalization: the replacements of a model, its rules for spaces, and the
// symbols that stay as they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "encode/byte_trie.hpp"
#include "normalize/kept_characters.hpp"
#include "normalize/normalizers.hpp"
#include "normalize/precompiled.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

struct SentencePieceRules {
  bool add_dummy_prefix;            // puts a space before a text that is not empty
  bool remove_extra_whitespaces;    // of spaces in a row keeps the first; none at the ends
  bool escape_whitespaces;          // writes U+2581 for a space
  bool treat_whitespace_as_suffix;  // puts the space of add_dummy_prefix after the text
};

/// From the left: a symbol stays as it is; otherwise the longest key of the charsmap is replaced;
/// otherwise one character stays. The bytes equal SentencePiece's.
class SentencePieceNormalizer final : public Normalizer {
 public:
  /// `charsmap` may be empty. `symbols`: the longest match counts; their ids are not used here.
  SentencePieceNormalizer(std::string_view charsmap, const TokenIds& symbols,
                          SentencePieceRules rules)
      : map_(charsmap.empty() ? std::nullopt : std::optional<Charsmap>(charsmap)),
        symbols_(symbols),
        rules_(rules),
        kept_(map_ ? &*map_ : nullptr, [this](std::string_view character) {
          return symbols_.longest(character).size > 0 ||
                 symbols_.walk(ByteTrie::kRoot, character) != ByteTrie::kNone;
        }) {}

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
    const bool space_first = rules_.add_dummy_prefix && !rules_.treat_whitespace_as_suffix;
    if (space_first) out.put(space, edge(in, at, false, out));
    bool after_space = rules_.remove_extra_whitespaces;
    while (at < text.size()) {
      const std::size_t end = out.with_origins() ? copy_run(in, at, after_space, out)
                                                 : copy_kept(text, at, after_space, space, out);
      if (end > at) {
        at = end;
        continue;
      }
      Prefix prefix = prefix_at(text, at);
      while (after_space && prefix.text.starts_with(' ')) prefix.text.remove_prefix(1);
      if (!prefix.text.empty()) {
        put(prefix, in, at, space, out);
        after_space = rules_.remove_extra_whitespaces && prefix.text.ends_with(' ');
      }
      at += prefix.size;
      check_growth(text.size(), out.size());
    }
    if (rules_.remove_extra_whitespaces) {
      while (out.view().bytes.ends_with(space)) out.cut(out.size() - space.size());
    }
    if (rules_.add_dummy_prefix && !space_first)
      out.put(space, edge(in, text.size() - 1, true, out));
  }

 private:
  static constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

  /// A replacement at the beginning of a text: `size` bytes become `text`.
  struct Prefix {
    std::size_t size;
    std::string_view text;
  };

  [[nodiscard]] Prefix prefix_at(std::string_view text, std::size_t at) const {
    const std::string_view rest = text.substr(at);
    const std::size_t symbol = symbols_.longest(rest).size;
    if (symbol > 0) return {symbol, rest.substr(0, symbol)};
    if (map_) {
      const Charsmap::Match match = map_->find_longest(rest);
      if (match.size > 0) return {match.size, match.replacement};
    }
    const CodePoint point = decode_utf8(rest.data(), rest.data() + rest.size());
    if (point.value == kMalformed) return {point.size, kReplacement};
    return {point.size, rest.substr(0, point.size)};
  }

  /// Writes characters from `at` on that no key and no symbol can change, up to a space, with their
  /// origins. Returns their end.
  [[nodiscard]] std::size_t copy_run(const TextView& in, std::size_t at, bool& after_space,
                                     TextBuffer& out) const {
    const char* const end = in.bytes.data() + in.bytes.size();
    const char* from = in.bytes.data() + at;
    const char* before = from;  // the last character
    while (from < end && *from != ' ') {
      const std::size_t size = kept_.size_in_run(from, end);
      if (size == 0) break;
      before = from;
      from += size;
    }
    if (kept_.joins(from, end)) from = before;
    const auto to = static_cast<std::size_t>(from - in.bytes.data());
    if (to > at) {
      out.copy(in, at, to);
      after_space = false;
    }
    return to;
  }

  /// As copy_run, without origins, and with spaces; several characters at a time.
  [[nodiscard]] std::size_t copy_kept(std::string_view text, std::size_t at, bool& after_space,
                                      std::string_view space, TextBuffer& out) const {
    constexpr std::size_t kTaken = 300;  // bytes of the text, which may become three times as many
    std::array<char, 3 * (kTaken + 8) + 8> buffer;
    const char* const end = text.data() + text.size();
    const char* from = text.data() + at;
    const char* const last_from = from + std::min(text.size() - at, kTaken);
    char* to = buffer.data();
    bool is_after = after_space;
    const char* before = from;  // the last character
    char* before_to = to;
    bool before_after = is_after;
    while (from < last_from) {
      if (end - from >= 8) {
        // At least one character remains, and becomes the last one.
        if (const std::size_t ascii = kept_.ascii_in_run(from); ascii > 1) {
          std::memcpy(to, from, 8);
          from += ascii - 1;
          to += ascii - 1;
          is_after = false;
        }
      }
      const std::size_t size = kept_.size_in_run(from, end);
      if (size == 0) break;
      before = from;
      before_to = to;
      before_after = is_after;
      const bool is_space = *from == ' ';
      if (is_space) {
        std::memcpy(to, space.data(), space.size());
        to += is_after ? 0 : space.size();
      } else {
        for (std::size_t i = 0; i < size; ++i) *to++ = from[i];
      }
      is_after = is_space && rules_.remove_extra_whitespaces;
      from += size;
    }
    if (kept_.joins(from, end)) {
      from = before;
      to = before_to;
      is_after = before_after;
    }
    after_space = is_after;
    out.append({buffer.data(), static_cast<std::size_t>(to - buffer.data())});
    return static_cast<std::size_t>(from - text.data());
  }

  /// Writes the replacement of the bytes from `at`, with the written form of each space.
  static void put(const Prefix& prefix, const TextView& in, std::size_t at, std::string_view space,
                  TextBuffer& out) {
    Origin origin;
    if (out.with_origins()) {
      origin = {in.origins[at].begin, in.origins[at + prefix.size - 1].end};
    }
    for (std::size_t begin = 0; begin < prefix.text.size();) {
      const std::size_t end = std::min(prefix.text.find(' ', begin), prefix.text.size());
      out.put(prefix.text.substr(begin, end - begin), origin);
      if (end < prefix.text.size()) out.put(space, origin);
      begin = end + 1;
    }
  }

  /// The empty origin before or after a character of the text.
  static Origin edge(const TextView& in, std::size_t at, bool after, const TextBuffer& out) {
    if (!out.with_origins()) return {};
    const std::size_t offset = after ? in.origins[at].end : in.origins[at].begin;
    return {offset, offset};
  }

  std::optional<Charsmap> map_;
  ByteTrie symbols_;
  SentencePieceRules rules_;
  KeptCharacters kept_;
};

}  // namespace bpe_beam

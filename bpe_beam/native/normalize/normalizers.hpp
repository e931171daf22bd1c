// The normalizers: each is a step from a text to a text with the origin of every character. Results
// and origins equal Hugging Face's.
//
// Bytes that are not UTF-8 are copied as they are, each as a character of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/byte_level.hpp"
#include "normalize/matcher.hpp"
#include "normalize/normalization.hpp"
#include "normalize/unicode_normalization.hpp"
#include "text/ascii.hpp"
#include "text/deadline.hpp"
#include "text/scratch.hpp"
#include "text/text.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// A step from a text to a text. Has no state that changes: threads share one.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  /// Appends to `out`, which the caller has cleared; if `out` needs origins, `in` has them.
  virtual void apply(const TextView& in, TextBuffer& out) const = 0;
};

/// Calls visit(code point or kMalformed, begin, size) for each character that is not ASCII, and
/// ascii(begin, end) for the runs between.
template <typename Ascii, typename Visit>
void for_each_character(std::string_view text, Ascii ascii, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t end = ascii_run_end(text, at); end > at) {
      ascii(at, end);
      at = end;
      continue;
    }
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    visit(point.value, at, point.size);
    at += point.size;
  }
}

/// Writes ASCII bytes [begin, end) of `in` in lower case.
inline void put_lower_ascii(const TextView& in, std::size_t begin, std::size_t end,
                            TextBuffer& out) {
  std::array<char, 256> lower;
  while (begin < end) {
    const std::size_t size = std::min(lower.size(), end - begin);
    for (std::size_t i = 0; i < size; ++i) lower[i] = lower_ascii(in.bytes[begin + i]);
    out.put_bytewise({lower.data(), size}, in, begin);
    begin += size;
  }
}

/// Writes a code point in lower case, each character by itself: no rule for a final sigma.
inline void put_lower(std::uint32_t point, const Origin& origin, TextBuffer& out) {
  constexpr std::uint32_t kCapitalIWithDot = 0x130, kDotAbove = 0x307;
  out.put(lower_case(point), origin);
  if (point == kCapitalIWithDot) out.put(kDotAbove, origin);
}

inline Origin origin_at(const TextView& in, std::size_t at, const TextBuffer& out) {
  return out.with_origins() ? in.origins[at] : Origin{};
}

/// NFC, NFD, NFKC or NFKD.
class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(NormalizationForm form) : form_(form) {}
  void apply(const TextView& in, TextBuffer& out) const override { normalize(form_, in, out); }

 private:
  NormalizationForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(const TextView& in, TextBuffer& out) const override {
    for_each_character(
        in.bytes, [&](std::size_t begin, std::size_t end) { put_lower_ascii(in, begin, end, out); },
        [&](std::uint32_t point, std::size_t at, std::size_t size) {
          if (point == kMalformed || lower_case(point) == point) {
            out.copy(in, at, at + size);
          } else {
            put_lower(point, origin_at(in, at, out), out);
          }
        });
  }
};

/// Drops combining marks (\p{M}); decomposes nothing.
class StripAccents final : public Normalizer {
 public:
  void apply(const TextView& in, TextBuffer& out) const override {
    std::size_t copied = 0;
    for_each_character(
        in.bytes, [](std::size_t, std::size_t) {},
        [&](std::uint32_t point, std::size_t at, std::size_t size) {
          if (point == kMalformed || (char_bits(point) & kMark) == 0) return;
          out.copy(in, copied, at);
          copied = at + size;
        });
    out.copy(in, copied, in.bytes.size());
  }
};

/// Drops White_Space at the ends.
class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(const TextView& in, TextBuffer& out) const override {
    const std::string_view text = in.bytes;
    std::size_t begin = 0, end = text.size();
    while (left_ && begin < end) {
      const std::size_t size = space_at(text, begin, end);
      if (size == 0) break;
      begin += size;
    }
    while (right_ && begin < end) {
      std::size_t last = end - 1;
      while (last > begin && end - last < 4 && is_continuation(text[last])) --last;
      if (space_at(text, last, end) != end - last) break;
      end = last;
    }
    out.copy(in, begin, end);
  }

 private:
  static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

  /// The size of the space at `at`, 0 if there is none.
  static std::size_t space_at(std::string_view text, std::size_t at, std::size_t end) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + end);
    const bool space = point.value != kMalformed && char_class(point.value) == CharClass::kSpace;
    return space ? point.size : 0;
  }

  bool left_;
  bool right_;
};

/// SentencePiece's cleaning: drops controls, and replaces other space-like or invisible characters
/// by a space.
class Nmt final : public Normalizer {
 public:
  void apply(const TextView& in, TextBuffer& out) const override {
    for (std::size_t at = 0; at < in.bytes.size();) {
      if (const std::size_t end = printable_run_end(in.bytes, at); end > at) {
        out.copy(in, at, end);
        at = end;
        continue;
      }
      const CodePoint point = decode_utf8(in.bytes.data() + at, in.bytes.data() + in.bytes.size());
      if (is_space(point.value)) {
        out.put(' ', in, at);
      } else if (!is_dropped(point.value)) {
        out.copy(in, at, at + point.size);
      }
      at += point.size;
    }
  }

 private:
  static bool is_dropped(std::uint32_t point) {
    return (point >= 0x01 && point <= 0x08) || point == 0x0B || (point >= 0x0E && point <= 0x1F) ||
           point == 0x7F || point == 0x8F || point == 0x9F;
  }

  static bool is_space(std::uint32_t point) {
    return point == '\t' || point == '\n' || point == '\f' || point == '\r' || point == 0x1680 ||
           (point >= 0x200B && point <= 0x200F) || point == 0x2028 || point == 0x2029 ||
           point == 0x2581 || point == 0xFEFF || point == 0xFFFD;
  }
};

/// Puts a prefix before any text that is not empty; the prefix has the origin of the first
/// character.
class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}

  void apply(const TextView& in, TextBuffer& out) const override {
    if (in.bytes.empty()) return;
    out.put(text_, origin_at(in, 0, out));
    out.copy(in, 0, in.bytes.size());
  }

 private:
  std::string text_;
};

/// Each byte as its character of the byte-level alphabet.
class ByteLevelText final : public Normalizer {
 public:
  ByteLevelText() {
    const ByteLevelAlphabet alphabet;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      append_utf8(alphabet.point_of(static_cast<std::uint8_t>(byte)), characters_[byte]);
    }
  }

  void apply(const TextView& in, TextBuffer& out) const override {
    for (std::size_t at = 0; at < in.bytes.size(); ++at) {
      out.put(characters_[static_cast<unsigned char>(in.bytes[at])], origin_at(in, at, out));
    }
  }

 private:
  std::array<std::string, 256> characters_;
};

/// Replaces every match by a replacement, whose origin is the origin of the character before the
/// match's end; at the beginning of the text the origin is empty.
class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Matcher> matcher, std::string content)
      : matcher_(std::move(matcher)), content_(std::move(content)) {}

  void apply(const TextView& in, TextBuffer& out) const override {
    if (in.bytes.empty()) return;
    std::vector<Span> matches;
    matcher_->find(in.bytes, matches);
    std::size_t copied = 0;
    for (const Span& match : matches) {
      out.copy(in, copied, match.begin);
      Origin origin = origin_at(in, match.end == 0 ? 0 : match.end - 1, out);
      if (match.end == 0) origin.end = origin.begin;
      out.put(content_, origin);
      check_growth(in.bytes.size(), out.size());
      copied = match.end;
    }
    out.copy(in, copied, in.bytes.size());
  }

 private:
  std::unique_ptr<Matcher> matcher_;
  std::string content_;
};

/// One step after another.
class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
      : steps_(std::move(steps)) {}

  void apply(const TextView& in, TextBuffer& out) const override {
    if (steps_.empty()) return out.copy(in, 0, in.bytes.size());
    if (steps_.size() == 1) return steps_[0]->apply(in, out);
    const Scratch<TextBuffer> first, second;
    TextBuffer* written = first.get();
    TextBuffer* spare = second.get();
    TextView text = in;
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      written->clear(out.with_origins());
      steps_[i]->apply(text, *written);
      text = written->view();
      check_growth(in.bytes.size(), text.bytes.size());
      Deadline::spend(text.bytes.size());
      std::swap(written, spare);
    }
    steps_.back()->apply(text, out);
    check_growth(in.bytes.size(), out.size());
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace bpe_beam

// Pre-tokenizers: a list of steps over the segments of a text. A step splits each segment into
// smaller ones, or rewrites each segment; the segments after the last step are the words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normalize/matcher.hpp"
#include "normalize/normalizers.hpp"
#include "scan/word_batches.hpp"
#include "text/deadline.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// A text and its remaining segments, in order.
class Segments {
 public:
  /// Starts with the whole text as one segment.
  void reset(const TextView& text) {
    text_ = text;
    spans_.clear();
    if (!text.bytes.empty()) spans_.push_back({0, text.bytes.size()});
  }

  [[nodiscard]] const TextView& text() const { return text_; }
  [[nodiscard]] std::span<const Word> spans() const { return spans_; }
  [[nodiscard]] TextView segment(const Word& span) const { return text_.sub(span.begin, span.end); }

  /// Splits every segment: `split(segment, out)` appends its parts, in offsets of the segment.
  /// Drops empty parts.
  template <class Split>
  void split_each(Split&& split) {
    next_.clear();
    for (const Word& span : spans_) {
      const std::size_t first = next_.size();
      split(segment(span).bytes, next_);
      std::size_t kept = first;
      for (std::size_t i = first; i < next_.size(); ++i) {
        if (next_[i].begin == next_[i].end) continue;
        next_[kept++] = {next_[i].begin + span.begin, next_[i].end + span.begin};
      }
      next_.resize(kept);
    }
    spans_.swap(next_);
  }

  /// Rewrites every segment: `write(segment, out)`. Drops segments that become empty.
  template <class Write>
  void write_each(Write&& write) {
    TextBuffer& out = buffers_[which_];
    which_ = 1 - which_;  // the other buffer may have the text that is being read
    out.clear(text_.origins != nullptr);
    next_.clear();
    for (const Word& span : spans_) {
      const std::size_t begin = out.size();
      write(segment(span), out);
      if (out.size() > begin) next_.push_back({begin, out.size()});
    }
    text_ = out.view();
    spans_.swap(next_);
  }

 private:
  TextView text_;
  std::vector<Word> spans_;
  std::vector<Word> next_;
  TextBuffer buffers_[2];
  int which_ = 0;
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void apply(Segments& segments) const = 0;
  /// Returns whether the step needs a text with origins.
  [[nodiscard]] virtual bool needs_origins() const { return false; }
};

/// Keeps the words that a scanner finds.
class ScanStep : public PreTokenizerStep {
 public:
  /// `name`: one of kScannerNames.
  explicit ScanStep(std::string name) : name_(std::move(name)) {
    if (std::ranges::find(kScannerNames, name_) == kScannerNames.end()) {
      throw std::invalid_argument("scanner must be one of SCANNERS, got " + name_);
    }
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  void apply(Segments& segments) const override {
    segments.split_each([&](std::string_view text, std::vector<Word>& out) {
      auto use = [&](std::span<const Word> words) {
        out.insert(out.end(), words.begin(), words.end());
      };
      scan_by_name(name_, text, classes_, WordsUse(use));
    });
  }

 private:
  std::string name_;
  BlockClasses classes_ = BlockClasses::best();
};

/// Splits each segment into parts of `length` characters; the last may have fewer.
class FixedLengthStep : public PreTokenizerStep {
 public:
  /// `length`: at least 1.
  explicit FixedLengthStep(std::size_t length) : length_(length) {
    if (length == 0) throw std::invalid_argument("length must be at least 1, got 0");
  }

  void apply(Segments& segments) const override {
    segments.split_each([&](std::string_view text, std::vector<Word>& out) {
      for (std::size_t begin = 0; begin < text.size();) {
        std::size_t end = begin;
        for (std::size_t i = 0; i < length_ && end < text.size(); ++i) {
          end += decode_utf8(text.data() + end, text.data() + text.size()).size;
        }
        out.push_back({begin, end});
        begin = end;
      }
    });
  }

 private:
  std::size_t length_;
};

/// The treatment of the matches of a pattern that splits.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Splits at the matches of a pattern; with `invert` at the text between the matches.
class SplitStep : public PreTokenizerStep {
 public:
  SplitStep(std::unique_ptr<Matcher> matcher, SplitBehavior behavior, bool invert)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}

  void apply(Segments& segments) const override {
    std::vector<Span> matches;
    std::vector<Part> parts;
    segments.split_each([&](std::string_view text, std::vector<Word>& out) {
      matches.clear();
      matcher_->find(text, matches);
      Deadline::spend(text.size() + kStepsOfFind);
      parts.clear();
      std::size_t at = 0;
      for (const Span& match : matches) {
        if (at != match.begin) parts.push_back({{at, match.begin}, invert_});
        parts.push_back({{match.begin, match.end}, !invert_});
        at = match.end;
      }
      if (at != text.size()) parts.push_back({{at, text.size()}, invert_});
      join(parts, out);
    });
  }

 private:
  static constexpr std::size_t kStepsOfFind = 20;

  struct Part {
    Word span;
    bool match;
  };

  void join(const std::vector<Part>& parts, std::vector<Word>& out) const {
    const std::size_t first = out.size();
    if (behavior_ == SplitBehavior::kMergedWithNext) {
      join_backward(parts, out);
      return;
    }
    bool previous = false;
    for (const Part& part : parts) {
      const bool joins =
          (behavior_ == SplitBehavior::kContiguous && part.match == previous) ||
          (behavior_ == SplitBehavior::kMergedWithPrevious && part.match && !previous);
      previous = part.match;
      if (behavior_ == SplitBehavior::kRemoved && part.match) continue;
      if (joins && out.size() > first) {
        out.back().end = part.span.end;
      } else {
        out.push_back(part.span);
      }
    }
  }

  // In a run of matches, the last joins the text after it, and the others are words of their own.
  static void join_backward(const std::vector<Part>& parts, std::vector<Word>& out) {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    bool previous = false;
    for (std::size_t i = parts.size(); i-- > 0;) {
      const Part& part = parts[i];
      if (part.match && !previous && static_cast<std::ptrdiff_t>(out.size()) > first) {
        out.back().begin = part.span.begin;
      } else {
        out.push_back(part.span);
      }
      previous = part.match;
    }
    std::reverse(out.begin() + first, out.end());
  }

  std::unique_ptr<Matcher> matcher_;
  SplitBehavior behavior_;
  bool invert_;
};

/// Rewrites each segment with a normalizer.
class RewriteStep : public PreTokenizerStep {
 public:
  explicit RewriteStep(std::unique_ptr<Normalizer> normalizer)
      : normalizer_(std::move(normalizer)) {}

  void apply(Segments& segments) const override {
    segments.write_each(
        [this](const TextView& segment, TextBuffer& out) { normalizer_->apply(segment, out); });
  }

 private:
  std::unique_ptr<Normalizer> normalizer_;
};

/// Prepends a text to each segment that does not begin with it; with `first_only` only to a segment
/// at the very beginning of the original text (which needs origins). The text has the origin of the
/// segment's first character.
class PrependStep : public PreTokenizerStep {
 public:
  PrependStep(std::string text, bool first_only)
      : text_(std::move(text)), first_only_(first_only) {}

  [[nodiscard]] bool needs_origins() const override { return first_only_; }

  void apply(Segments& segments) const override {
    segments.write_each([this](const TextView& segment, TextBuffer& out) {
      const Origin* const origins = segment.origins;
      const bool wanted = !first_only_ || (origins != nullptr && origins[0].begin == 0);
      if (wanted && !segment.bytes.starts_with(text_)) {
        out.put(text_, origins == nullptr ? Origin{} : origins[0]);
      }
      out.copy(segment, 0, segment.bytes.size());
    });
  }

 private:
  std::string text_;
  bool first_only_;
};

}  // namespace bpe_beam

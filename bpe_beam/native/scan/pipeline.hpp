// From a text to its words: added tokens are extracted, the rest is normalized, added tokens that
// match normalized text are extracted, and the rest is split into words.
//
// Counting and encoding run this one pipeline. It is immutable and shared by threads; everything
// that changes while it runs is in a PipelineState, one per thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "normalize/normalizers.hpp"
#include "scan/added_tokens.hpp"
#include "scan/pretokenizers.hpp"
#include "scan/scanners.hpp"
#include "scan/word_batches.hpp"
#include "text/deadline.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// The origin of a whole text, which must not be empty and must have origins.
inline Origin origin_of(const TextView& text) {
  return {text.origins[0].begin, text.origins[text.bytes.size() - 1].end};
}

class PipelineState {
 public:
  /// Returns the text with origins: the origin of each byte is its own character. Valid until the
  /// next call.
  TextView with_origins(std::string_view text) {
    origins_.resize(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
      std::fill_n(origins_.begin() + static_cast<std::ptrdiff_t>(at), point.size,
                  Origin{at, at + point.size});
      at += point.size;
    }
    return {text, origins_.data()};
  }

  TextBuffer normalized;
  Segments segments;

 private:
  std::vector<Origin> origins_;
};

class Pipeline {
 public:
  /// The maximum number of words that a sink gets in one call.
  static constexpr std::size_t kWords = kBatchWords;

  /// For each of this many bytes, a text gets one more second of CPU time, see Deadline. Published
  /// patterns are many times as fast.
  static constexpr double kTextBytesPerSecond = 20'000;

  /// `raw` tokens are matched in the original text, `normalized` tokens in normalized text (their
  /// contents are already normalized). Without a normalizer, text stays as it is; without steps, it
  /// is not split. A text may take `text_seconds` of CPU time, and one second more for each
  /// kTextBytesPerSecond bytes.
  Pipeline(AddedTokens raw, AddedTokens normalized, std::unique_ptr<Normalizer> normalizer,
           std::vector<std::unique_ptr<PreTokenizerStep>> steps,
           double text_seconds = std::numeric_limits<double>::infinity())
      : raw_(std::move(raw)),
        normalized_(std::move(normalized)),
        normalizer_(std::move(normalizer)),
        steps_(std::move(steps)),
        text_seconds_(text_seconds) {
    for (const auto& step : steps_) needs_origins_ = needs_origins_ || step->needs_origins();
    if (steps_.size() == 1) scan_ = dynamic_cast<const ScanStep*>(steps_[0].get());
  }

  /// Calls `sink.words(TextView, span<const Word>)` with words in order, at most kWords at a time,
  /// and `sink.added(id, TextView)` for added tokens; `allowed`: see AddedTokens::extract. A sink
  /// with `batches(TextView)` gets the words of a scanner through this object, see scan_into, and
  /// `flush()` after the last.
  template <class Sink>
  void run(std::string_view text, std::span<const std::uint32_t> allowed, bool with_origins,
           PipelineState& state, Sink& sink) const {
    const Deadline::Scope deadline(text_seconds_ +
                                   static_cast<double>(text.size()) / kTextBytesPerSecond);
    const TextView whole =
        with_origins || needs_origins_ ? state.with_origins(text) : TextView{text, nullptr};
    const auto added = [&](std::uint32_t id, const TextView& place) { sink.added(id, place); };
    raw_.extract(
        whole, allowed,
        [&](const TextView& plain) {
          TextView clean = plain;
          if (normalizer_ != nullptr) {
            state.normalized.clear(plain.origins != nullptr);
            normalizer_->apply(plain, state.normalized);
            clean = state.normalized.view();
          }
          normalized_.extract(
              clean, allowed, [&](const TextView& segment) { split_words(segment, state, sink); },
              added);
        },
        added);
  }

 private:
  template <class Sink>
  void split_words(const TextView& text, PipelineState& state, Sink& sink) const {
    if (scan_ != nullptr) {
      if constexpr (requires { sink.batches(text); }) {
        auto batches = sink.batches(text);
        with_scanner(scan_->name(),
                     [&](auto scanner) { scan_into(scanner, text.bytes, classes_, batches); });
        batches.flush();
      } else {
        auto use = [&](std::span<const Word> words) { sink.words(text, words); };
        scan_by_name(scan_->name(), text.bytes, classes_, WordsUse(use));
      }
      return;
    }
    state.segments.reset(text);
    for (const auto& step : steps_) {
      step->apply(state.segments);
      Deadline::spend(state.segments.text().bytes.size());
      check_growth(text.bytes.size(), state.segments.text().bytes.size());
    }
    const std::span<const Word> words = state.segments.spans();
    for (std::size_t i = 0; i < words.size(); i += kWords) {
      sink.words(state.segments.text(), words.subspan(i, std::min(kWords, words.size() - i)));
    }
  }

  AddedTokens raw_;
  AddedTokens normalized_;
  std::unique_ptr<Normalizer> normalizer_;
  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  const ScanStep* scan_ = nullptr;  // the only step, if it is a scan
  BlockClasses classes_ = BlockClasses::best();
  bool needs_origins_ = false;
  double text_seconds_;
};

}  // namespace bpe_beam

// Pipelines of any kind, and what they do by their definition: piece by piece, each piece a text of
// its own with a place for every byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apply_step.hpp"
#include "fuzz_input.hpp"
#include "naive_added_tokens.hpp"
#include "normalize/bert_normalizer.hpp"
#include "scan/pipeline.hpp"

/// A text that owns its bytes and origins.
struct NaivePiece {
  std::string bytes;
  std::vector<bpe_beam::Origin> origins;

  static NaivePiece of(const bpe_beam::TextView& text) {
    NaivePiece piece{std::string(text.bytes), {}};
    if (text.origins != nullptr) {
      piece.origins.assign(text.origins, text.origins + text.bytes.size());
    }
    return piece;
  }
  [[nodiscard]] bpe_beam::TextView view() const { return {bytes, origins.data()}; }
  [[nodiscard]] NaivePiece part(std::size_t begin, std::size_t end) const {
    return of(view().sub(begin, end));
  }
  [[nodiscard]] bpe_beam::Origin place() const {
    return {origins.front().begin, origins.back().end};
  }
  bool operator==(const NaivePiece&) const = default;
};

using NaivePieces = std::vector<NaivePiece>;

constexpr std::uint32_t kNormalizers = 12;

/// Null for 0.
inline std::unique_ptr<bpe_beam::Normalizer> normalizer_of(std::uint32_t kind) {
  using namespace bpe_beam;
  const auto replace = [](std::string from, std::string to) {
    return std::make_unique<Replace>(std::make_unique<LiteralMatcher>(std::move(from)),
                                     std::move(to));
  };
  switch (kind) {
    case 0: return nullptr;
    case 1: return std::make_unique<Lowercase>();
    case 2: return std::make_unique<FormNormalizer>(NormalizationForm::kNfd);
    case 3: return std::make_unique<FormNormalizer>(NormalizationForm::kNfkc);
    case 4: return std::make_unique<Strip>(true, true);
    case 5: return std::make_unique<Prepend>("▁");
    case 6: return std::make_unique<ByteLevelText>();
    case 7: return replace(" ", "▁");
    case 8: return replace("a", "");
    case 9: return std::make_unique<BertNormalizer>(BertSteps{true, true, true, true});
    case 10: return std::make_unique<FormNormalizer>(NormalizationForm::kNfc);
    default: {
      std::vector<std::unique_ptr<Normalizer>> steps;
      steps.push_back(normalizer_of(2));
      steps.push_back(std::make_unique<StripAccents>());
      steps.push_back(normalizer_of(7));
      return std::make_unique<NormalizerSequence>(std::move(steps));
    }
  }
}

inline NaivePiece normalized(std::uint32_t kind, const NaivePiece& piece) {
  const auto normalizer = normalizer_of(kind);
  if (normalizer == nullptr) return piece;
  bpe_beam::TextBuffer out;
  out.clear(true);
  normalizer->apply(piece.view(), out);
  return NaivePiece::of(out.view());
}

/// A step of a pre-tokenizer, as plain values.
struct StepSpec {
  enum Kind { kScan, kSplit, kRewrite, kPrepend };
  Kind kind = kScan;
  std::string text;              // a scanner's name; what is looked for; what is put before
  std::uint32_t normalizer = 0;  // of a rewrite
  bool punctuation = false;      // a split at punctuation
  bpe_beam::SplitBehavior behavior = bpe_beam::SplitBehavior::kIsolated;
  bool flag = false;  // invert, or first_only

  [[nodiscard]] std::unique_ptr<bpe_beam::PreTokenizerStep> make() const {
    using namespace bpe_beam;
    if (kind == kScan) return std::make_unique<ScanStep>(text);
    if (kind == kRewrite) return std::make_unique<RewriteStep>(normalizer_of(normalizer));
    if (kind == kPrepend) return std::make_unique<PrependStep>(text, flag);
    std::unique_ptr<Matcher> matcher = std::make_unique<LiteralMatcher>(text);
    if (punctuation) matcher = std::make_unique<PunctuationMatcher>();
    return std::make_unique<SplitStep>(std::move(matcher), behavior, flag);
  }

  [[nodiscard]] NaivePieces apply(const NaivePiece& piece) const {
    if (kind == kScan) return scanned(piece);
    if (kind == kSplit) return split(piece);
    if (kind == kRewrite) return {normalized(normalizer, piece)};
    NaivePiece result = piece;
    const bool wanted = !flag || piece.origins[0].begin == 0;
    if (wanted && piece.bytes.substr(0, text.size()) != text) {
      result.bytes.insert(0, text);
      result.origins.insert(result.origins.begin(), text.size(), piece.origins[0]);
    }
    return {result};
  }

 private:
  [[nodiscard]] NaivePieces scanned(const NaivePiece& piece) const {
    NaivePieces pieces;
    bpe_beam::with_scanner(text, [&](auto scanner) {
      for (std::size_t at = 0; at < piece.bytes.size();) {
        const bpe_beam::Word word = scanner.next(piece.bytes, at);
        pieces.push_back(piece.part(word.begin, word.end));
        at = word.end;
      }
    });
    return pieces;
  }

  struct Run {
    std::size_t begin;
    std::size_t end;
    bool match;
  };

  [[nodiscard]] std::vector<Run> runs(const std::string& bytes) const {
    std::vector<Run> found;
    for (std::size_t at = 0; at <= bytes.size();) {
      const auto point = at < bytes.size()
                             ? bpe_beam::decode_utf8(&bytes[at], bytes.data() + bytes.size())
                             : bpe_beam::CodePoint{bpe_beam::kMalformed, 1};
      if (punctuation) {
        const bool match = point.value != bpe_beam::kMalformed &&
                           (bpe_beam::char_bits(point.value) & bpe_beam::kPunctuation) != 0;
        if (match) found.push_back({at, at + point.size, true});
        at += point.size;
      } else if (text.empty() || bytes.compare(at, text.size(), text) == 0) {
        found.push_back({at, at + text.size(), true});
        at += text.empty() ? point.size : text.size();
      } else {
        ++at;
      }
    }
    std::vector<Run> all;
    std::size_t done = 0;
    for (const Run& match : found) {
      if (done < match.begin) all.push_back({done, match.begin, false});
      all.push_back(match);
      done = match.end;
    }
    if (done < bytes.size()) all.push_back({done, bytes.size(), false});
    for (Run& run : all) run.match = run.match != flag;
    return all;
  }

  /// Whether two neighbours stay together.
  [[nodiscard]] bool joined(const Run& left, const Run& right) const {
    using bpe_beam::SplitBehavior;
    switch (behavior) {
      case SplitBehavior::kContiguous: return left.match == right.match;
      case SplitBehavior::kMergedWithPrevious: return !left.match && right.match;
      case SplitBehavior::kMergedWithNext: return left.match && !right.match;
      default: return false;
    }
  }

  [[nodiscard]] NaivePieces split(const NaivePiece& piece) const {
    NaivePieces pieces;
    const std::vector<Run> all = runs(piece.bytes);
    for (std::size_t i = 0; i < all.size();) {
      std::size_t last = i;
      while (last + 1 < all.size() && joined(all[last], all[last + 1])) ++last;
      const bool removed = behavior == bpe_beam::SplitBehavior::kRemoved && all[i].match;
      if (!removed) pieces.push_back(piece.part(all[i].begin, all[last].end));
      i = last + 1;
    }
    return pieces;
  }
};

/// A word (its id is NaiveCut::kPlain) or an added token.
struct Event {
  std::uint32_t id;
  NaivePiece text;
  bool operator==(const Event&) const = default;
};

struct PipelineSpec {
  std::vector<bpe_beam::AddedToken> raw;
  std::vector<bpe_beam::AddedToken> clean;  // normalized
  std::uint32_t normalizer = 0;
  std::vector<StepSpec> steps;

  [[nodiscard]] std::shared_ptr<const bpe_beam::Pipeline> make() const {
    std::vector<std::unique_ptr<bpe_beam::PreTokenizerStep>> made;
    for (const StepSpec& step : steps) made.push_back(step.make());
    return std::make_shared<const bpe_beam::Pipeline>(bpe_beam::AddedTokens(raw),
                                                      bpe_beam::AddedTokens(clean),
                                                      normalizer_of(normalizer), std::move(made));
  }

  [[nodiscard]] std::vector<Event> run(std::string_view text,
                                       const std::vector<std::uint32_t>& allowed) const {
    std::vector<Event> events;
    const NaivePiece whole{std::string(text), own_places(text)};
    for (const NaiveCut& outer : naive_segments(raw, whole.bytes, allowed)) {
      const NaivePiece given = whole.part(outer.begin, outer.end);
      if (outer.id != NaiveCut::kPlain) {
        events.push_back({outer.id, given});
        continue;
      }
      const NaivePiece normal = normalized(normalizer, given);
      for (const NaiveCut& inner : naive_segments(clean, normal.bytes, allowed)) {
        const NaivePiece piece = normal.part(inner.begin, inner.end);
        if (inner.id != NaiveCut::kPlain) {
          events.push_back({inner.id, piece});
        } else {
          for (NaivePiece& word : words(piece))
            events.push_back({NaiveCut::kPlain, std::move(word)});
        }
      }
    }
    return events;
  }

 private:
  [[nodiscard]] NaivePieces words(const NaivePiece& piece) const {
    NaivePieces pieces = {piece};
    for (const StepSpec& step : steps) {
      NaivePieces next;
      for (const NaivePiece& each : pieces) {
        for (NaivePiece& part : step.apply(each)) {
          if (!part.bytes.empty()) next.push_back(std::move(part));
        }
      }
      pieces = std::move(next);
    }
    return pieces;
  }
};

inline StepSpec any_step(FuzzInput& input) {
  StepSpec step;
  step.kind = static_cast<StepSpec::Kind>(input.below(4));
  constexpr std::string_view kTexts[] = {"", "a", "▁", "ab", " ", "é", "aa", "##"};
  step.text = kTexts[input.below(8)];
  if (step.kind == StepSpec::kScan) {
    step.text = bpe_beam::kScannerNames[input.below(bpe_beam::kScannerNames.size())];
  }
  step.normalizer = 1 + input.below(kNormalizers - 1);
  step.punctuation = input.below(4) == 0;
  step.behavior = static_cast<bpe_beam::SplitBehavior>(input.below(5));
  step.flag = input.below(2) == 0;
  return step;
}

inline PipelineSpec any_pipeline(FuzzInput& input) {
  PipelineSpec spec;
  if (input.below(2) == 0) spec.normalizer = input.below(kNormalizers);
  for (std::uint32_t left = input.below(5), id = 5000; left > 0; --left, ++id) {
    bpe_beam::AddedToken token;
    constexpr std::string_view kPieces[] = {"a", "b", "<", " ", "é", "A"};
    for (std::uint32_t size = input.below(3) + 1; size > 0; --size) {
      token.content += kPieces[input.below(6)];
    }
    const std::uint32_t flags = input.below(32);
    token.id = id;
    token.single_word = (flags & 1) != 0;
    token.lstrip = (flags & 2) != 0;
    token.rstrip = (flags & 4) != 0;
    token.special = (flags & 8) != 0;
    if ((flags & 16) != 0) {
      spec.raw.push_back(token);
      continue;
    }
    token.content = normalized(spec.normalizer, {token.content, own_places(token.content)}).bytes;
    if (!token.content.empty()) spec.clean.push_back(token);
  }
  for (std::uint32_t left = input.below(4); left > 0; --left) spec.steps.push_back(any_step(input));
  return spec;
}

/// Ids of added tokens, sorted.
inline std::vector<std::uint32_t> any_allowed(FuzzInput& input) {
  std::vector<std::uint32_t> allowed;
  const std::uint32_t bits = input.byte();
  for (std::uint32_t i = 0; i < 5; ++i) {
    if ((bits >> i & 1) != 0) allowed.push_back(5000 + i);
  }
  return allowed;
}

/// What pipelines and models of these headers have something to do with; or any bytes.
inline std::string any_text(FuzzInput& input, std::size_t pieces) {
  if (input.below(8) == 0) return std::string(input.bytes(pieces));
  constexpr std::string_view kPieces[] = {"a",
                                          "b",
                                          "ab",
                                          "A",
                                          " ",
                                          "  ",
                                          "<",
                                          "é",
                                          "E\u0301",
                                          "▁",
                                          ",",
                                          "1",
                                          "中",
                                          "\n",
                                          "語",
                                          "\x80",
                                          "\xC3",
                                          "\xFF",
                                          "\u3000",
                                          "aaaa",
                                          "ﬁ",
                                          "##",
                                          "a\u0323\u0301",
                                          "İ"};
  std::string text;
  while (pieces-- > 0 && !input.empty()) text += kPieces[input.below(std::size(kPieces))];
  return text;
}

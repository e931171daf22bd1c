// A model of any kind, and the same by its definition.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_models.hpp"
#include "encode/wordpiece_model.hpp"
#include "fuzz_input.hpp"
#include "naive_models.hpp"

struct AnyModel {
  std::shared_ptr<const bpe_beam::WordModel> model;
  std::shared_ptr<const NaiveModel> naive;
};

/// Rows of anything: pairs twice, ids made in several ways, tokens that become each other or are
/// made after a merge of theirs.
inline std::vector<bpe_beam::MergeRow> any_rows(FuzzInput& input, Ids known) {
  std::vector<bpe_beam::MergeRow> rows;
  for (std::uint32_t left = input.below(20); left > 0; --left) {
    const auto any = [&] { return known[input.below(static_cast<std::uint32_t>(known.size()))]; };
    const std::uint32_t kind = input.below(6);
    const std::uint32_t joined = kind == 0                    ? any()
                                 : kind == 1 && !rows.empty() ? rows.back().joined
                                                              : 3000 + left;
    const std::uint32_t first = any();
    const std::uint32_t second = any();
    rows.push_back({first, second, joined});
    known.push_back(joined);
  }
  if (rows.size() > 1 && input.below(3) == 0) {
    std::swap(rows[input.below(static_cast<std::uint32_t>(rows.size()))], rows.back());
  }
  return rows;
}

/// Tokens of characters that the texts of naive_pipeline.hpp have, some with a prefix or suffix.
inline Vocabulary any_tokens(FuzzInput& input, const std::string& prefix,
                             const std::string& suffix) {
  constexpr std::string_view kPieces[] = {"a", "b", "A", "é", "▁", " ", ",", "語", "#", "aa", "Ġ"};
  Vocabulary tokens;
  for (std::uint32_t left = input.below(40); left > 0; --left) {
    const std::uint32_t kind = input.byte();
    std::string token = (kind & 1) != 0 ? prefix : "";
    for (std::uint32_t size = kind / 64; size > 0; --size) token += kPieces[input.below(11)];
    token += kPieces[input.below(11)];
    if ((kind & 2) != 0) token += suffix;
    tokens.emplace(token, 1000 + left);
  }
  return tokens;
}

inline Ids any_byte_ids(FuzzInput& input) {
  Ids ids;
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids.push_back(byte ^ 0x55);
  if (input.below(3) == 0) ids[input.byte()] = bpe_beam::kNoId;
  return ids;
}

inline AnyModel any_byte_bpe(FuzzInput& input) {
  auto naive = std::make_shared<NaiveByteBpe>();
  naive->byte_ids = any_byte_ids(input);
  if (input.below(3) == 0) naive->whole_words = any_tokens(input, "", "");
  Ids known;
  for (const char byte : {'a', 'b', ' ', '\xC3', '\xA9'}) {
    known.push_back(static_cast<unsigned char>(byte) ^ 0x55u);
  }
  naive->rows = any_rows(input, known);
  return {std::make_shared<bpe_beam::ByteBpeModel>(
              naive->rows, std::span<const std::uint32_t, 256>(naive->byte_ids),
              token_ids(naive->whole_words)),
          naive};
}

inline AnyModel any_char_bpe(FuzzInput& input) {
  auto naive = std::make_shared<NaiveCharBpe>();
  bpe_beam::CharBpeSettings& settings = naive->settings;
  const std::uint32_t bits = input.byte();
  if ((bits & 1) != 0) settings.prefix = "##";
  if ((bits & 2) != 0) settings.suffix = "</w>";
  if ((bits & 12) != 0) settings.unk = 7;
  settings.fuse_unk = (bits & 16) != 0;
  settings.ignore_merges = (bits & 32) != 0;
  if ((bits & 64) != 0) settings.byte_fallback = any_byte_ids(input);
  naive->tokens = any_tokens(input, settings.prefix, settings.suffix);
  Ids known = {7};
  for (const auto& token : naive->tokens) known.push_back(token.second);
  naive->rows = any_rows(input, known);
  return {std::make_shared<bpe_beam::CharBpeModel>(naive->rows, token_ids(naive->tokens), settings),
          naive};
}

inline AnyModel any_wordpiece(FuzzInput& input) {
  auto naive = std::make_shared<NaiveWordPiece>();
  naive->prefix = input.below(3) == 0 ? "" : "##";
  if (input.below(4) != 0) naive->unk = 7;
  naive->max_characters = input.below(20);
  naive->tokens = any_tokens(input, naive->prefix, "");
  return {std::make_shared<bpe_beam::WordPieceModel>(token_ids(naive->tokens), naive->prefix,
                                                     naive->unk, naive->max_characters),
          naive};
}

inline AnyModel any_word_level(FuzzInput& input) {
  auto naive = std::make_shared<NaiveWordLevel>();
  if (input.below(4) != 0) naive->unk = 7;
  naive->tokens = any_tokens(input, "", "");
  return {std::make_shared<bpe_beam::WordLevelModel>(token_ids(naive->tokens), naive->unk), naive};
}

inline AnyModel any_unigram(FuzzInput& input) {
  constexpr double kScores[] = {0, -1, -2, -0.1, -3.5, -100, 7, -1e300};
  auto naive = std::make_shared<NaiveUnigram>();
  naive->pieces.emplace_back("<unk>", 0);
  for (const auto& token : any_tokens(input, "", "")) {
    naive->pieces.emplace_back(token.first, kScores[input.below(8)]);
  }
  if (input.below(4) == 0) naive->pieces.push_back(naive->pieces.back());
  const auto any_id = [&] { return input.below(static_cast<std::uint32_t>(naive->pieces.size())); };
  if (input.below(4) != 0) naive->unk = any_id();
  if (input.below(2) == 0) {
    for (unsigned byte = 0; byte < 256; ++byte) naive->byte_ids.push_back(byte % 7 == 0 ? 0 : 1);
    for (std::uint32_t& id : naive->byte_ids)
      id %= static_cast<std::uint32_t>(naive->pieces.size());
    if (input.below(2) == 0) naive->byte_ids[input.byte()] = bpe_beam::kNoId;
  }
  return {std::make_shared<bpe_beam::UnigramModel>(unigram_model(*naive)), naive};
}

inline AnyModel any_model(FuzzInput& input) {
  switch (input.below(5)) {
    case 0: return any_byte_bpe(input);
    case 1: return any_char_bpe(input);
    case 2: return any_wordpiece(input);
    case 3: return any_unigram(input);
    default: return any_word_level(input);
  }
}

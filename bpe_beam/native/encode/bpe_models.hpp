// Byte-pair encoding of words: from their bytes, or from their characters.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "count/pair_map.hpp"
#include "encode/bpe_merges.hpp"
#include "encode/live_merges.hpp"
#include "encode/seams.hpp"
#include "encode/word_model.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Byte-level: the result is as if the bytes of words were merged, but words are merged from
/// characters if that gives the same tokens.
class ByteBpeModel : public WordModel {
 public:
  /// `byte_ids`: the id of each byte's symbol, kNoId for a byte without a symbol. `whole_words`:
  /// words that become one token before any merge (`ignore_merges`), by their bytes.
  ByteBpeModel(std::span<const MergeRow> merges, std::span<const std::uint32_t, 256> byte_ids,
               const TokenIds& whole_words)
      : seams_(Seams::of(merges, byte_ids)), whole_words_(TokenIds{}) {
    for (const MergeRow& merge : merges) {
      if (merge.joined == kNoId) throw std::invalid_argument("a merge makes an id that is none");
    }
    std::copy(byte_ids.begin(), byte_ids.end(), byte_ids_.begin());
    live_ = LiveMerges::of(merges, byte_ids);
    if (!live_ || live_->has_doubtful()) merges_.emplace(merges, byte_ids);
    const TokenIds others = live_ ? live_->not_made(whole_words) : whole_words;
    has_whole_words_ = !others.empty();
    whole_words_ = TokenMap(others);
  }

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    const std::uint32_t whole = whole_word(word);
    if (whole != kNoId) return one_token(word, whole, state);
    encode_bytes(word, with_sizes, state);
  }

  [[nodiscard]] const Seams* seams() const override { return seams_ ? &*seams_ : nullptr; }

  [[nodiscard]] std::uint32_t whole_word(std::string_view word) const override {
    return has_whole_words_ ? whole_words_.find(word) : kNoId;
  }

  void encode_part(std::string_view part, ModelState& state) const override {
    encode_bytes(part, false, state);
  }

 private:
  /// Merges of the symbols of bytes.
  struct ByteMerges {
    ByteMerges(std::span<const MergeRow> rows, std::span<const std::uint32_t, 256> byte_ids)
        : merges(rows, false) {
      for (std::uint32_t left = 0; left < 256; ++left) {
        for (std::uint32_t right = 0; right < 256; ++right) {
          const bool both = byte_ids[left] != kNoId && byte_ids[right] != kNoId;
          pair_ranks[left * 256 + right] =
              both ? merges.rank(byte_ids[left], byte_ids[right]) : BpeMerges::kNoRank;
        }
      }
    }

    /// Merges the symbols of a word's bytes, which are in state.ids.
    void apply(std::string_view word, bool with_sizes, ModelState& state) const {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        const auto left = static_cast<unsigned char>(word[i]);
        state.ranks[i] = pair_ranks[left * 256u + static_cast<unsigned char>(word[i + 1])];
      }
      state.ranks[word.size() - 1] = BpeMerges::kNoRank;
      merges.apply(with_sizes, state);
    }

    BpeMerges merges;
    std::vector<std::uint32_t> pair_ranks = std::vector<std::uint32_t>(65536);
  };

  void encode_bytes(std::string_view word, bool with_sizes, ModelState& state) const {
    check_size(word);
    if (live_ && live_->encode(word, with_sizes, state)) return;
    state.ids.resize(word.size());
    state.ranks.resize(word.size());
    if (with_sizes) state.sizes.assign(word.size(), 1);
    for (std::size_t i = 0; i < word.size(); ++i) {
      state.ids[i] = byte_ids_[static_cast<unsigned char>(word[i])];
      if (state.ids[i] == kNoId) throw MissingSymbol{i, i + 1};
    }
    // Without doubtful tokens, live merges fail only for words with a byte that has no symbol.
    merges_->apply(word, with_sizes, state);
  }

  std::optional<LiveMerges> live_;
  std::optional<ByteMerges> merges_;  // unless the live merges are enough
  std::optional<Seams> seams_;
  TokenMap whole_words_;  // those that merging their bytes does not give
  bool has_whole_words_ = false;
  std::array<std::uint32_t, 256> byte_ids_{};
};

struct CharBpeSettings {
  std::string prefix;                // of every character except a word's first; may be empty
  std::string suffix;                // of a word's last character; may be empty
  std::optional<std::uint32_t> unk;  // the unknown token's id
  bool fuse_unk = false;             // unknown neighbours are one token
  bool ignore_merges = false;        // a word that is a token is not merged
  std::vector<std::uint32_t> byte_fallback;  // 256 ids, kNoId where there is none; or empty
};

/// Each character of the word is a symbol, with a prefix or a suffix if the settings have one.
class CharBpeModel : public WordModel {
 public:
  CharBpeModel(std::span<const MergeRow> merges, const TokenIds& tokens, CharBpeSettings settings)
      : merges_(merges, false),
        settings_(std::move(settings)),
        tokens_(settings_.ignore_merges ? tokens : TokenIds{}) {
    for (const auto& [token, id] : tokens) {
      for (unsigned variant = 0; variant < 4; ++variant) add_symbol(token, variant, id);
    }
  }

  void encode(std::string_view word, bool with_sizes, ModelState& state) const override {
    check_size(word);
    if (settings_.ignore_merges) {
      const std::uint32_t whole = tokens_.find(word);
      if (whole != kNoId) return one_token(word, whole, state);
    }
    state.ids.clear();
    state.sizes.clear();
    bool after_unknown = false;
    const char* const end = word.data() + word.size();
    for (std::size_t at = 0; at < word.size();) {
      const CodePoint point = decode_utf8(word.data() + at, end);
      const unsigned variant = variant_at(at, at + point.size == word.size());
      const std::uint32_t id = symbols_.find(PairMap::key(point.value, variant));
      if (id != PairMap::kNone) {
        add(id, point.size, state);
        after_unknown = false;
      } else if (fall_back(word.substr(at, point.size), variant, state)) {
        after_unknown = false;
      } else if (!settings_.unk) {
        throw MissingSymbol{at, at + point.size};
      } else if (after_unknown && settings_.fuse_unk) {
        state.sizes.back() += point.size;
      } else {
        add(*settings_.unk, point.size, state);
        after_unknown = true;
      }
      at += point.size;
    }
    merges_.look_up_ranks(state);
    merges_.apply(with_sizes, state);
  }

 private:
  static constexpr unsigned kPrefixed = 1;
  static constexpr unsigned kSuffixed = 2;

  static void add(std::uint32_t id, std::uint32_t size, ModelState& state) {
    state.ids.push_back(id);
    state.sizes.push_back(size);
  }

  [[nodiscard]] unsigned variant_at(std::size_t at, bool last) const {
    return (at > 0 && !settings_.prefix.empty() ? kPrefixed : 0) |
           (last && !settings_.suffix.empty() ? kSuffixed : 0);
  }

  void add_symbol(std::string_view token, unsigned variant, std::uint32_t id) {
    if ((variant & kPrefixed) != 0) {
      if (settings_.prefix.empty() || !token.starts_with(settings_.prefix)) return;
      token.remove_prefix(settings_.prefix.size());
    }
    if ((variant & kSuffixed) != 0) {
      if (settings_.suffix.empty() || !token.ends_with(settings_.suffix)) return;
      token.remove_suffix(settings_.suffix.size());
    }
    if (token.empty()) return;
    const CodePoint point = decode_utf8(token.data(), token.data() + token.size());
    if (point.size != token.size() || point.value == kMalformed) return;
    symbols_[PairMap::key(point.value, variant)] = id;
  }

  /// The tokens of the bytes of a symbol, if the vocabulary has them all. The bytes of a prefix or
  /// suffix have tokens as well, as in Hugging Face; these cover no byte of the word.
  bool fall_back(std::string_view character, unsigned variant, ModelState& state) const {
    if (settings_.byte_fallback.empty()) return false;
    const auto id_of = [this](char byte) {
      return settings_.byte_fallback[static_cast<unsigned char>(byte)];
    };
    std::string_view prefix, suffix;
    if ((variant & kPrefixed) != 0) prefix = settings_.prefix;
    if ((variant & kSuffixed) != 0) suffix = settings_.suffix;
    for (const std::string_view text : {prefix, character, suffix}) {
      for (const char byte : text) {
        if (id_of(byte) == kNoId) return false;
      }
    }
    for (const char byte : prefix) add(id_of(byte), 0, state);
    for (const char byte : character) add(id_of(byte), 1, state);
    for (const char byte : suffix) add(id_of(byte), 0, state);
    return true;
  }

  BpeMerges merges_;
  CharBpeSettings settings_;
  TokenMap tokens_;  // of whole words
  PairMap symbols_;  // (code point, variant) to id
};

}  // namespace bpe_beam

// How often ids occur: in documents, by a row of a table for each document, and in counted words;
// and how often words occur that are one token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

namespace bpe_beam {

/// Adds 1 to `table[rows[d] * columns + id]` for each id of each document d, whose ids are
/// ids[offsets[d]] to ids[offsets[d + 1]]; without rows all documents are of row 0. The offsets
/// must ascend within the ids. Throws std::invalid_argument at an id or a row outside the table,
/// after earlier ids were added.
inline void add_id_counts(std::span<const std::uint32_t> ids, std::span<const std::int64_t> offsets,
                          std::span<const std::uint32_t> rows, std::span<std::int64_t> table,
                          std::size_t columns) {
  const std::size_t height = columns == 0 ? 0 : table.size() / columns;
  for (std::size_t d = 0; d + 1 < offsets.size(); ++d) {
    const std::size_t row = rows.empty() ? 0 : rows[d];
    if (row >= height) throw std::invalid_argument("rows must be within the table");
    const auto counts = table.subspan(row * columns, columns);
    const auto begin = static_cast<std::size_t>(offsets[d]);
    for (const std::uint32_t id :
         ids.subspan(begin, static_cast<std::size_t>(offsets[d + 1]) - begin)) {
      if (id >= columns) throw std::invalid_argument("ids must be within the table");
      ++counts[id];
    }
  }
}

/// `made` has how often each token occurs after all merges; this adds how often it was merged into
/// other tokens. For each merge of three positions (left, right, joined), from the last to the
/// first, the count of the joined token is added to the counts of both parts. Returns false, with
/// some additions done, at a sum beyond 64 bits. Throws std::invalid_argument at a position outside
/// `made`.
inline bool add_times_made(std::span<const std::int64_t> merges, std::span<std::int64_t> made) {
  const auto at = [&](std::int64_t position) -> std::int64_t& {
    if (position < 0 || static_cast<std::size_t>(position) >= made.size()) {
      throw std::invalid_argument("merges must be of tokens");
    }
    return made[static_cast<std::size_t>(position)];
  };
  for (std::size_t i = merges.size() / 3; i-- > 0;) {
    const std::int64_t times = at(merges[3 * i + 2]);
    for (std::int64_t* part : {&at(merges[3 * i]), &at(merges[3 * i + 1])}) {
      if (__builtin_add_overflow(*part, times, part)) return false;
    }
  }
  return true;
}

/// Sums over all occurrences of words; sums that do not fit 64 bits are wrong, see `bound`.
struct WordAmounts {
  std::uint64_t words = 0;
  std::uint64_t continued = 0;  // words of two or more tokens
  std::uint64_t bytes = 0;
  std::uint64_t characters = 0;
  double bound = 0;  // at least as much as any sum, except for rounding
};

/// The number of characters of a text in UTF-8, counted by their first bytes.
inline std::size_t count_characters(std::string_view text) {
  std::size_t characters = 0;
  for (const char byte : text) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return characters;
}

/// Adds a word that occurs `count` times, of some tokens, of which `summed` are added to counts.
inline void add_word(WordAmounts& amounts, std::string_view text, std::int64_t count,
                     std::size_t tokens, std::size_t summed) {
  const auto times = static_cast<std::uint64_t>(count);
  amounts.bound += static_cast<double>(count) * static_cast<double>(summed + text.size() + 1);
  amounts.words += times;
  amounts.bytes += times * text.size();
  amounts.characters += times * count_characters(text);
  if (tokens > 1) amounts.continued += times;
}

/// Adds `times` to tokens[t] for each token t of each word, and to whole[t] where the word has only
/// this token and it is not `unknown`. Word i is text_at(i) and has the tokens
/// token_of(ids[ends[i]]) to token_of(ids[ends[i + 1]]); it occurs times[i] times. `tokens` is
/// empty if only whole words are to be added. Throws std::invalid_argument at a token outside the
/// arrays, after earlier words were added.
template <class TextAt, class TokenOf>
WordAmounts add_word_tokens(TextAt&& text_at, std::span<const std::uint32_t> ids,
                            std::span<const std::int64_t> ends, std::span<const std::int64_t> times,
                            TokenOf&& token_of, std::size_t unknown,
                            std::span<std::uint64_t> tokens, std::span<std::uint64_t> whole) {
  WordAmounts amounts;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto begin = static_cast<std::size_t>(ends[i]);
    const auto size = static_cast<std::size_t>(ends[i + 1]) - begin;
    const auto count = static_cast<std::uint64_t>(times[i]);
    add_word(amounts, text_at(i), times[i], size, size);
    if (tokens.empty() && size != 1) continue;
    for (const std::uint32_t id : ids.subspan(begin, size)) {
      const std::size_t token = token_of(id);
      if (token >= whole.size()) throw std::invalid_argument("ids must be ids of the tokens");
      if (!tokens.empty()) tokens[token] += count;
      if (size == 1 && token != unknown) whole[token] += count;
    }
  }
  return amounts;
}

/// Adds `times` to whole[t] for each word that is one token, t. Word i is text_at(i) and occurs
/// times[i] times; token_of(text) is its only token, or SIZE_MAX if it has several.
/// Throws std::invalid_argument at a token outside the array, after earlier words were added.
template <class TextAt, class TokenOf>
WordAmounts add_whole_words(TextAt&& text_at, std::span<const std::int64_t> times,
                            TokenOf&& token_of, std::span<std::uint64_t> whole) {
  WordAmounts amounts;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::string_view text = text_at(i);
    const std::size_t token = token_of(text);
    const bool is_whole = token != SIZE_MAX;
    add_word(amounts, text, times[i], is_whole ? 1 : 2, 0);
    if (!is_whole) continue;
    if (token >= whole.size()) throw std::invalid_argument("tokens must be within the array");
    whole[token] += static_cast<std::uint64_t>(times[i]);
  }
  return amounts;
}

}  // namespace bpe_beam

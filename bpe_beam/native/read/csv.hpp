// CSV and TSV, by RFC 4180: a block of records to columns of texts, ids and sources.
//
// A field that begins with a quote ends at the next quote that is not doubled; any other field ends
// at the delimiter or the newline, and quotes in it are ordinary characters. If the quotes of a
// record are invalid (text follows a closing quote, or there is no closing quote up to the file's
// end), only its first line is rejected, and the next line begins a record: a stray quote must not
// affect the following records. The records from a position on depend on that position alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "read/records.hpp"

namespace bpe_beam {

/// The columns to read (kNotFound: none), the required number of columns, and the source of a
/// record without one.
struct CsvColumns {
  char delimiter;
  std::size_t count;
  std::array<std::size_t, 3> taken;  // text, id, source
  std::string_view other_source;
};

/// A field without its quotes.
struct CsvField {
  std::string_view raw;
  bool doubled = false;  // it has doubled quotes

  void append_to(Strings& out) const {
    if (!doubled) return out.append(raw);
    char* const begin = out.room(raw.size());
    char* to = begin;
    std::string_view rest = raw;
    for (;;) {
      const std::size_t quote = rest.find('"');
      const std::size_t size = quote == std::string_view::npos ? rest.size() : quote + 1;
      std::memcpy(to, rest.data(), size);
      to += size;
      if (quote == std::string_view::npos) break;
      rest.remove_prefix(quote + 2);
    }
    out.add(static_cast<std::size_t>(to - begin));
  }
};

/// The range of a record, and its flaw.
struct CsvRecord {
  std::size_t end = 0;   // of the record without its newline, or of its first line
  std::size_t next = 0;  // the begin of the next record
  std::size_t fields = 0;
  Flaw flaw = Flaw::kNone;
  std::size_t position = 0;  // of the flaw
};

inline const char* find_or(const char* at, const char* end, char what, const char* otherwise) {
  if (at >= end) return otherwise;
  const void* const hit = std::memchr(at, what, static_cast<std::size_t>(end - at));
  return hit == nullptr ? otherwise : static_cast<const char*>(hit);
}

/// Reads the record that begins at `start` and calls `take(number, field)` for its fields, left to
/// right. Returns nothing if `data` does not yet have its end, or the bytes on which its end
/// depends.
template <class Take>
std::optional<CsvRecord> read_csv_record(std::span<const char> data, std::size_t start, bool final,
                                         char delimiter, Take take) {
  const char* const begin = data.data() + start;
  const char* const end = data.data() + data.size();
  const char* line_end = find_or(begin, end, '\n', end);  // of the line that `at` is in
  const auto place = [&](const char* at) { return static_cast<std::size_t>(at - data.data()); };
  CsvRecord record;
  const auto ended = [&](const char* at, const char* next) {
    record.end = place(at);
    record.next = place(next);
    return record;
  };
  const auto given_up = [&](Flaw flaw, const char* at) -> std::optional<CsvRecord> {
    record.flaw = flaw;
    record.position = static_cast<std::size_t>(at - begin);
    const char* const first_line = find_or(begin, end, '\n', end);
    if (first_line == end && !final) return std::nullopt;
    return ended(first_line, first_line == end ? end : first_line + 1);
  };
  for (const char* at = begin;; ++at) {
    CsvField field;
    if (at < end && *at == '"') {
      const char* quote = at + 1;
      for (;; quote += 2) {
        quote = find_or(quote, end, '"', end);
        if (quote == end && final) return given_up(Flaw::kUnclosedQuote, at);
        if (end - quote < 2 || quote[1] != '"') break;
        field.doubled = true;
      }
      // A quote may be followed by a quote, a carriage return by a newline.
      const bool seen = end - quote > 2 || (end - quote == 2 && quote[1] != '\r');
      if (!seen && !final) return std::nullopt;
      field.raw = {at + 1, static_cast<std::size_t>(quote - at - 1)};
      at = quote + 1;
      if (line_end < at) line_end = find_or(at, end, '\n', end);
      const char* const after = at < end && *at == '\r' && at + 1 == line_end ? at + 1 : at;
      if (after != line_end && (at == end || *at != delimiter))
        return given_up(Flaw::kBehindQuote, at);
    } else {
      if (line_end == end && !final) return std::nullopt;
      const char* const stop = find_or(at, line_end, delimiter, line_end);
      const char* last = stop;
      if (stop == line_end && last > at && last[-1] == '\r') --last;
      field.raw = {at, static_cast<std::size_t>(last - at)};
      at = stop;
    }
    take(record.fields++, field);
    if (at < line_end && *at == delimiter) continue;
    const char* const last = line_end > begin && line_end[-1] == '\r' ? line_end - 1 : line_end;
    return ended(last, line_end == end ? end : line_end + 1);
  }
}

inline constexpr std::size_t kCsvTriedRecords = 32;

/// Returns the speculative start of the first record after a newline at `start` or later, where it
/// is unknown whether `start` is within quotes. The next kCsvTriedRecords records after it, or all
/// following records, have `count` fields and valid quotes; lines within a quoted text almost never
/// have. Returns kNotFound if there is no such position, or if the decision needs more data.
inline std::size_t find_csv_record(std::span<const char> data, std::size_t start, bool final,
                                   char delimiter, std::size_t count) {
  constexpr std::array<char, 1> kNewline = {'\n'};
  for (std::size_t newline = start;; ++newline) {
    newline = find_bytes(data, kNewline, newline);
    if (newline == kNotFound) return kNotFound;
    std::size_t at = newline + 1;
    bool sound = true;
    for (std::size_t tried = 0; sound && tried < kCsvTriedRecords && at < data.size(); ++tried) {
      const auto record =
          read_csv_record(data, at, final, delimiter, [](std::size_t, const CsvField&) {});
      if (!record) return kNotFound;
      sound = record->flaw == Flaw::kNone && (record->fields == count || record->end == at);
      at = record->next;
    }
    if (sound && (final || at < data.size())) return newline + 1;
    if (sound) return kNotFound;
  }
}

/// Splits a window into records and reads the text, the id and the source of each. Empty lines are
/// skipped, an empty id is null, and an empty source is replaced by the other source.
inline Records csv_records(std::span<const char> data, const Cut& cut, const CsvColumns& columns) {
  Records out;
  const bool with_sources = columns.taken[2] != kNotFound;
  Reached& at = out.reached = {cut.start, cut.start, 0};
  while (at.start < cut.stop && at.records < cut.max_records && at.start < data.size()) {
    std::array<CsvField, 3> taken;
    const auto record = read_csv_record(data, at.start, cut.final, columns.delimiter,
                                        [&](std::size_t number, const CsvField& field) {
                                          for (std::size_t i = 0; i < taken.size(); ++i)
                                            if (columns.taken[i] == number) taken[i] = field;
                                        });
    if (!record) break;
    const std::size_t begin = at.start;
    const auto bytes = data.subspan(begin, record->end - begin);
    Flaw flaw = record->flaw;
    std::size_t position = record->position;
    if (bytes.size() > cut.max_bytes) {
      flaw = Flaw::kTooLong;
    } else if (flaw == Flaw::kNone && !bytes.empty()) {
      if (position = valid_utf8_prefix(bytes); position < bytes.size()) {
        flaw = Flaw::kUtf8;
      } else if (const char* const first = bytes.data();
                 const char* const nul = find_or(first, first + bytes.size(), '\0', nullptr)) {
        flaw = Flaw::kNul;
        position = static_cast<std::size_t>(nul - first);
      } else if (record->fields != columns.count) {
        flaw = Flaw::kColumns;
        position = record->fields;
      }
    }
    if (flaw != Flaw::kNone) {
      out.bad.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(record->end),
                         static_cast<std::int64_t>(flaw), static_cast<std::int64_t>(position),
                         static_cast<std::int64_t>(at.records)});
    } else if (!bytes.empty()) {
      taken[0].append_to(out.text);
      taken[1].append_to(out.ids);
      out.has_id.push_back(!out.ids.is_empty());
      if (with_sources) {
        taken[2].append_to(out.sources);
        if (out.sources.is_empty()) out.sources.append(columns.other_source);
        out.sources.finish();
      }
      out.text.finish();
      out.ids.finish();
      out.starts.push_back(static_cast<std::int64_t>(begin));
    }
    ++at.records;
    at.start = at.search = record->next;
  }
  return out;
}

}  // namespace bpe_beam

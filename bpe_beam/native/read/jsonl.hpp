// Reads a block of JSON Lines into columns of texts, ids and sources, without building a tree.
//
// The whole line is checked, by RFC 8259 and as strictly as in Python's `json`: a flaw anywhere
// rejects the line, whichever fields are read. If a key occurs twice in an object, the last one is
// used, as in `json`. Unlike in `json`, NaN and Infinity are refused and nesting has a limit.
// Recursion goes as deep as the paths of the fields, never as deep as the data.
//
// simdjson is not used: it gives no position of a flaw, and it refuses integers of more than 64
// bits, which may be ids. With the same checks it took between half of our time (texts in \u
// escapes only) and as much (long English texts) before texts were copied while they are read,
// which halved ours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "read/json_scanner.hpp"
#include "read/json_string.hpp"
#include "read/records.hpp"

namespace bpe_beam {

inline constexpr std::size_t kMaxJsonDepth = 1024;
inline constexpr std::size_t kMaxPathDepth = 16;

/// Names of members, from the outermost object to the innermost; at most kMaxPathDepth. Empty: no
/// field.
using JsonPath = std::span<const std::string>;

/// The fields to read from each line; `other_source` is the source of a line without one.
struct JsonFields {
  JsonPath text;
  JsonPath id;
  JsonPath source;
  std::string_view other_source;
};

/// Reads one line. After `read()`, `text()`, `id()` and `source()` are the fields. If it returned a
/// flaw, `position()` is the byte of the line at which the flaw was found. A text is usually copied
/// to the column while it is read; the caller finishes or abandons it.
class JsonLine : private JsonScanner {
 public:
  enum class Kind { kMissing, kString, kNumber, kOther };
  struct Field {
    Kind kind = Kind::kMissing;
    JsonString string;        // of a string that is not copied
    bool copied = false;      // true if the column of texts ends with the string
    std::string_view number;  // of a number, as it is written
    std::size_t position = 0;

    /// Returns whether it can be an id or a source: a string, or a number (as its JSON text).
    bool is_name() const { return kind == Kind::kString || kind == Kind::kNumber; }
  };

  JsonLine(std::span<const char> line, const JsonFields& fields, Strings& texts)
      : JsonScanner({line.data(), line.size()}),
        begin_(line.data()),
        texts_(texts),
        paths_{fields.text, fields.id, fields.source} {}

  const Field& text() const { return fields_[0]; }
  const Field& id() const { return fields_[1]; }
  const Field& source() const { return fields_[2]; }

  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }

  bool is_blank() {
    skip_space();
    return at_ == end_;
  }

  Flaw read() {
    skip_space();
    const bool object = peek() == '{';
    const char* const value = at_;
    const Flaw flaw = object ? read_object(0, kAllPaths) : skip_value(0);
    if (flaw != Flaw::kNone) return flaw;
    skip_space();
    if (at_ != end_) return Flaw::kJson;
    if (!object) {
      at_ = value;
      return Flaw::kNotObject;
    }
    return Flaw::kNone;
  }

 private:
  static constexpr unsigned kTextPath = 1;
  static constexpr unsigned kAllPaths = 7;

  /// Reads the members of an object that is inside `depth` others. `on_path`: a bit for each path
  /// whose first `depth` names lead to this object.
  Flaw read_object(std::size_t depth, unsigned on_path) {
    ++at_;
    skip_space();
    if (take('}')) return Flaw::kNone;
    for (;;) {
      JsonString key;
      if (!read_key(key)) return Flaw::kJson;
      if (const Flaw flaw = read_member(key, depth, on_path); flaw != Flaw::kNone) return flaw;
      skip_space();
      if (take('}')) return Flaw::kNone;
      if (!take(',')) return Flaw::kJson;
      skip_space();
    }
  }

  Flaw read_member(const JsonString& key, std::size_t depth, unsigned on_path) {
    unsigned here = 0;   // the paths that end with this member
    unsigned below = 0;  // those that lead through it
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if ((on_path >> i & 1) == 0 || paths_[i].size() <= depth || !is_name(key, paths_[i][depth]))
        continue;
      (paths_[i].size() == depth + 1 ? here : below) |= 1U << i;
    }
    skip_space();
    if ((here | below) == 0) return skip_value(depth + 1);
    Field field;
    field.position = position();
    field.kind = Kind::kOther;
    // If keys are equal, the last wins: fields of the earlier key are dropped.
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (below >> i & 1) fields_[i] = {};
    }
    const char first = peek();
    const char* const value = at_;
    if (first == '"') {
      field.kind = Kind::kString;
      if (here == kTextPath) {
        texts_.abandon();
        field.copied = copy_string(texts_);
      }
      if (!field.copied && !read_string(field.string)) return Flaw::kJson;
    } else if (first == '{' && below != 0) {
      if (const Flaw flaw = read_object(depth + 1, below); flaw != Flaw::kNone) return flaw;
    } else {
      if (first == '-' || (first >= '0' && first <= '9')) field.kind = Kind::kNumber;
      if (const Flaw flaw = skip_value(depth + 1); flaw != Flaw::kNone) return flaw;
      field.number = {value, static_cast<std::size_t>(at_ - value)};
    }
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (here >> i & 1) fields_[i] = field;
    }
    return Flaw::kNone;
  }

  static bool is_name(const JsonString& key, std::string_view name) {
    if (!key.escaped) return key.raw == name;
    Strings resolved(key.raw.size());
    return append_unescaped(key, resolved) && resolved.bytes() == name;
  }

  /// Reads a value of any kind that is inside `outer` objects and arrays. One flag per level says
  /// whether it is an object or an array, so that deep nesting needs no recursion.
  Flaw skip_value(std::size_t outer) {
    std::array<bool, kMaxJsonDepth> is_object;
    std::size_t depth = outer;
    for (;;) {
      skip_space();
      const char first = peek();
      bool complete = true;
      JsonString ignored;
      if (first == '{' || first == '[') {
        if (depth == kMaxJsonDepth) return Flaw::kDepth;
        is_object[depth++] = first == '{';
        ++at_;
        skip_space();
        if (take(first == '{' ? '}' : ']')) {
          --depth;
        } else {
          if (first == '{' && !read_key(ignored)) return Flaw::kJson;
          complete = false;
        }
      } else if (first == '"') {
        if (!read_string(ignored)) return Flaw::kJson;
      } else if (first == '-' || (first >= '0' && first <= '9')) {
        if (!read_number()) return Flaw::kJson;
      } else if (!read_literal("true") && !read_literal("false") && !read_literal("null")) {
        return Flaw::kJson;
      }
      while (complete) {
        if (depth == outer) return Flaw::kNone;
        skip_space();
        const bool object = is_object[depth - 1];
        if (take(',')) {
          skip_space();
          if (object && !read_key(ignored)) return Flaw::kJson;
          complete = false;
        } else if (take(object ? '}' : ']')) {
          --depth;
        } else {
          return Flaw::kJson;
        }
      }
    }
  }

  const char* begin_;
  Strings& texts_;
  std::array<JsonPath, 3> paths_;
  std::array<Field, 3> fields_;
};

/// Appends the text of an id or a source without finishing the string; nothing if the field is
/// neither a string nor a number. Returns false if an escape is half of a surrogate pair.
inline bool append_name(const JsonLine::Field& field, Strings& out) {
  if (field.kind == JsonLine::Kind::kNumber) out.append(field.number);
  return field.kind != JsonLine::Kind::kString || append_unescaped(field.string, out);
}

/// Splits a window into lines and reads the text, the id and, if it has a path, the source of each.
/// A number as id or source is its JSON text. If the id is missing or of another kind, it is null.
/// If the source is missing, empty or of another kind, it is `other_source`. Blank lines are
/// skipped.
inline Records jsonl_records(std::span<const char> data, const Cut& cut, const JsonFields& fields) {
  Records out;
  out.text.room(data.size() - std::min(cut.start, data.size()));
  const bool with_sources = !fields.source.empty();
  constexpr std::array<char, 1> kNewline = {'\n'};
  Utf8Check utf8(data, cut.start);
  std::size_t index = 0;
  out.reached = for_each_record(data, kNewline, cut, [&](std::size_t begin, std::size_t end) {
    const auto bytes = data.subspan(begin, end - begin);
    const std::size_t record = index++;
    std::size_t position = 0;
    const auto take_line = [&]() -> Flaw {
      if (bytes.size() > cut.max_bytes) return Flaw::kTooLong;
      JsonLine line(bytes, fields, out.text);
      if (line.is_blank()) return Flaw::kNone;
      if (position = utf8.prefix(begin, end); position < bytes.size()) return Flaw::kUtf8;
      const Flaw flaw = line.read();
      position = line.position();
      if (flaw != Flaw::kNone) return flaw;
      if (line.text().kind == JsonLine::Kind::kMissing) return Flaw::kMissing;
      position = line.text().position;
      if (line.text().kind != JsonLine::Kind::kString) return Flaw::kNotString;
      for (const auto& [field, column] :
           {std::pair{&line.id(), &out.ids}, std::pair{&line.source(), &out.sources}}) {
        if (append_name(*field, *column)) continue;
        position = field->position;
        return Flaw::kSurrogate;
      }
      if (!line.text().copied) {
        position = line.text().position;
        out.text.abandon();
        if (!append_unescaped(line.text().string, out.text)) return Flaw::kSurrogate;
      }
      if (with_sources) {
        if (out.sources.is_empty()) out.sources.append(fields.other_source);
        out.sources.finish();
      }
      out.text.finish();
      out.ids.finish();
      out.has_id.push_back(line.id().is_name());
      out.starts.push_back(static_cast<std::int64_t>(begin));
      return Flaw::kNone;
    };
    if (const Flaw flaw = take_line(); flaw != Flaw::kNone) {
      for (Strings* const column : {&out.text, &out.ids, &out.sources}) column->abandon();
      out.bad.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
                         static_cast<std::int64_t>(flaw), static_cast<std::int64_t>(position),
                         static_cast<std::int64_t>(record)});
    }
  });
  return out;
}

}  // namespace bpe_beam

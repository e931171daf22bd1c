// JSON read and written again without spaces, by a handler that checks the order of its calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "read/json_reader.hpp"

struct WrittenJson {
  std::string text;

  bool begin_object() { return open('{'); }
  bool begin_array() { return open('['); }
  bool end_object() { return close('{', '}'); }
  bool end_array() { return close('[', ']'); }

  bool key(const bpe_beam::JsonString& name) {
    CHECK(!opened_.empty() && opened_.back() == '{' && !after_key_);
    separate();
    text += '"' + std::string(name.raw) + "\":";
    after_key_ = true;
    return true;
  }

  bool string(const bpe_beam::JsonString& value) { return put('"' + std::string(value.raw) + '"'); }
  bool number(std::string_view digits) { return put(std::string(digits)); }
  bool literal(char first) { return put(first == 't' ? "true" : first == 'f' ? "false" : "null"); }

 private:
  void separate() {
    if (!first_) text += ',';
    first_ = false;
  }

  void before_value() {
    CHECK(opened_.empty() || (opened_.back() == '{') == after_key_);
    if (!after_key_) separate();
    after_key_ = false;
  }

  bool put(const std::string& value) {
    before_value();
    text += value;
    return true;
  }

  bool open(char bracket) {
    before_value();
    text += bracket;
    opened_ += bracket;
    first_ = true;
    return true;
  }

  bool close(char opening, char closing) {
    CHECK(!opened_.empty() && opened_.back() == opening && !after_key_);
    opened_.pop_back();
    text += closing;
    first_ = false;
    return true;
  }

  std::string opened_;
  bool first_ = true;
  bool after_key_ = false;
};

/// The text written again; empty if it is refused.
inline std::string written(std::string_view text) {
  WrittenJson handler;
  bpe_beam::JsonReader<WrittenJson> reader(text, handler);
  return reader.read() ? handler.text : "";
}

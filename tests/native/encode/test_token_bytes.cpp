// Tokens joined by their ids: of any size, and none that is missing.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "encode/token_bytes.hpp"

using namespace bpe_beam;

int main() {
  std::mt19937 random(1);
  TokenIds tokens;
  std::vector<std::string> texts(300);
  for (std::uint32_t id = 0; id < 300; id += 2) {
    texts[id] = std::string(id % 40, static_cast<char>('a' + id % 26));
    tokens.emplace_back(texts[id], id);
  }
  const TokenBytes bytes(tokens);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> ids;
    std::string expected;
    for (std::uint32_t left = random() % 50; left > 0; --left) {
      ids.push_back(random() % 150 * 2);
      expected += texts[ids.back()];
    }
    CHECK(bytes.size_of(ids) == expected.size());
    std::string joined(expected.size() + TokenBytes::kBehind, '?');
    char* const out = joined.data();
    const char* const end = out + joined.size();
    CHECK(bytes.join(ids, out, end) == out + expected.size());
    CHECK(joined.substr(0, expected.size()) == expected);
    // Ids that have changed since their size was asked for: nothing is written beyond the end.
    const std::size_t short_by = random() % joined.size() + 1;
    const bool writes = !ids.empty();
    CHECK((bytes.join(ids, out, end - short_by) == nullptr) == writes);
    for (const std::uint32_t missing : {1u, 299u, 300u, 0xFFFFFFFFu}) {
      ids.push_back(missing);
      CHECK(!bytes.size_of(ids) && bytes.join(ids, out, end) == nullptr);
      ids.pop_back();
    }
  }
  CHECK(!TokenBytes({}).size_of(std::vector<std::uint32_t>{0}));
  CHECK((TokenBytes({{"a", 0}, {"b", 0}}).size_of(std::vector<std::uint32_t>{0, 0}) == 2));
  CHECK_THROWS(std::length_error, TokenBytes({{"a", 1u << 28}}));
}

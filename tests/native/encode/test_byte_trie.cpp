// The trie of bytes against a map.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "check.hpp"
#include "encode/byte_trie.hpp"

using namespace bpe_beam;

namespace {

/// The id of a text by one step a byte.
std::uint32_t walked(const ByteTrie& trie, std::string_view text) {
  std::uint32_t node = ByteTrie::kRoot;
  for (const char byte : text) {
    node = trie.child(node, byte);
    if (node == ByteTrie::kNone) return kNoId;
  }
  return trie.id_at(node);
}

void small() {
  const ByteTrie empty(TokenIds{});
  CHECK(empty.find("") == kNoId && empty.find("a") == kNoId);
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(empty.child(ByteTrie::kRoot, static_cast<char>(byte)) == ByteTrie::kNone);
  }
  const ByteTrie trie({{"a", 3}, {"", 4}, {std::string("a\0b", 3), 0}, {"a", 9}, {"\xFF", 5}});
  CHECK(trie.find("a") == 9);  // the last of two
  CHECK(trie.find("") == 4);
  CHECK(trie.find("\xFF") == 5);
  CHECK(trie.find(std::string_view("a\0b", 3)) == 0);
  CHECK(trie.find(std::string_view("a\0", 2)) == kNoId);
}

void longest() {
  const ByteTrie trie({{"", 4}, {"a", 3}, {"abc", 5}});
  const auto found = [&](std::string_view text, std::size_t size, std::uint32_t id) {
    const ByteTrie::Match match = trie.longest(text);
    return match.size == size && match.id == id;
  };
  CHECK(found("abx", 1, 3) && found("abcd", 3, 5) && found("b", 0, kNoId) && found("", 0, kNoId));
}

void random_tokens(unsigned letters, std::size_t longest) {
  std::mt19937 random(letters);
  const auto any_token = [&] {
    std::string token;
    for (std::size_t size = random() % (longest + 1); size > 0; --size) {
      token += static_cast<char>(random() % letters);
    }
    return token;
  };
  std::map<std::string, std::uint32_t> known;
  TokenIds tokens;
  for (std::uint32_t id = 0; id < 5'000; ++id) {
    tokens.emplace_back(any_token(), id);
    known[tokens.back().first] = id;
  }
  const ByteTrie trie(tokens);
  for (const auto& [token, id] : known) CHECK(trie.find(token) == id);
  for (int i = 0; i < 20'000; ++i) {
    const std::string token = any_token();
    const auto found = known.find(token);
    CHECK(walked(trie, token) == (found == known.end() ? kNoId : found->second));
  }
}

void a_long_token() {
  const std::string token(100'000, 'x');
  const ByteTrie trie({{token, 1}});
  CHECK(trie.find(token) == 1);
  CHECK(trie.find(token + "x") == kNoId && trie.find(token.substr(1)) == kNoId);
}

}  // namespace

int main() {
  small();
  longest();
  random_tokens(2, 14);
  random_tokens(256, 3);
  random_tokens(40, 6);
  a_long_token();
}

// Added tokens: the leftmost match, of those the longest; flags, spaces, and who is allowed.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "exact_copy.hpp"
#include "naive_added_tokens.hpp"
#include "scan/added_tokens.hpp"

using namespace bpe_beam;

namespace {

using Allowed = std::vector<std::uint32_t>;
using Cuts = std::vector<NaiveCut>;

constexpr std::uint32_t kPlain = NaiveCut::kPlain;

/// The parts of a text. Checks that the views are of that text, with their own origins.
Cuts parts_of(const AddedTokens& tokens, std::string_view bytes, const Allowed& allowed = {}) {
  const ExactCopy copy(bytes);
  const std::string_view text = copy.view();
  const std::vector<Origin> origins = own_places(text);
  Cuts parts;
  const auto add = [&](std::uint32_t id, const TextView& view) {
    const auto begin = static_cast<std::size_t>(view.bytes.data() - text.data());
    CHECK(!view.bytes.empty() && view.origins == origins.data() + begin);
    parts.push_back({id, begin, begin + view.bytes.size()});
  };
  tokens.extract(
      {text, origins.data()}, allowed, [&](const TextView& view) { add(kPlain, view); }, add);
  // Without origins, the same.
  std::size_t i = 0;
  const auto same = [&](std::uint32_t id, const TextView& view) {
    CHECK(view.origins == nullptr && i < parts.size() && parts[i].id == id);
    CHECK(view.bytes.data() == text.data() + parts[i].begin);
    CHECK(view.bytes.size() == parts[i].end - parts[i].begin);
    ++i;
  };
  tokens.extract({text, nullptr}, allowed, [&](const TextView& view) { same(kPlain, view); }, same);
  CHECK(i == parts.size());
  return parts;
}

AddedToken plain(std::string content, std::uint32_t id) {
  return {.content = std::move(content), .id = id, .special = false};
}

void none() {
  const AddedTokens tokens;
  CHECK(tokens.empty());
  CHECK(parts_of(tokens, "") == Cuts{});
  CHECK(parts_of(tokens, "abc") == (Cuts{{kPlain, 0, 3}}));
}

void one() {
  const AddedTokens tokens({plain("<s>", 7)});
  CHECK(!tokens.empty());
  CHECK(parts_of(tokens, "") == Cuts{});
  CHECK(parts_of(tokens, "<s>") == (Cuts{{7, 0, 3}}));
  CHECK(parts_of(tokens, "ab<s>cd<s>") ==
        (Cuts{{kPlain, 0, 2}, {7, 2, 5}, {kPlain, 5, 7}, {7, 7, 10}}));
  CHECK(parts_of(tokens, "<s") == (Cuts{{kPlain, 0, 2}}));  // cut off by the text's end
  CHECK(parts_of(tokens, "<<s>") == (Cuts{{kPlain, 0, 1}, {7, 1, 4}}));
}

/// The order of the tokens does not matter.
void the_longest_of_those_that_begin_together() {
  const std::vector<std::vector<AddedToken>> orders = {
      {plain("<a", 1), plain("<a>", 2), plain("<a>>", 3)},
      {plain("<a>>", 3), plain("<a", 1), plain("<a>", 2)}};
  for (const auto& order : orders) {
    const AddedTokens tokens(order);
    CHECK(parts_of(tokens, "x<a>>") == (Cuts{{kPlain, 0, 1}, {3, 1, 5}}));
    CHECK(parts_of(tokens, "x<a>y") == (Cuts{{kPlain, 0, 1}, {2, 1, 4}, {kPlain, 4, 5}}));
    CHECK(parts_of(tokens, "x<ay") == (Cuts{{kPlain, 0, 1}, {1, 1, 3}, {kPlain, 3, 4}}));
  }
}

/// A longer one that begins later loses, even where it overlaps.
void the_leftmost_before_the_longest() {
  const AddedTokens tokens({plain("bcdef", 1), plain("ab", 2)});
  CHECK(parts_of(tokens, "abcdef") == (Cuts{{2, 0, 2}, {kPlain, 2, 6}}));
  CHECK(parts_of(tokens, "bcdef") == (Cuts{{1, 0, 5}}));
  CHECK(parts_of(AddedTokens({plain("aa", 1)}), "aaa") == (Cuts{{1, 0, 2}, {kPlain, 2, 3}}));
}

void any_bytes() {
  const std::string high = "\xFF\x80";
  const std::string zero(2, '\0');
  const AddedTokens tokens({plain(high, 1), plain(zero, 2), plain("語", 3)});
  CHECK(parts_of(tokens, high + zero + "語") == (Cuts{{1, 0, 2}, {2, 2, 4}, {3, 4, 7}}));
}

void what_is_refused() {
  CHECK(parts_of(AddedTokens({plain("x", 5), plain("x", 6)}), "x") == (Cuts{{5, 0, 1}}));
  CHECK_THROWS(std::invalid_argument, AddedTokens({plain("a", 0), plain("", 1)}));
}

/// Only special ones need to be; one that is not is plain text, in which only allowed ones count.
void allowed() {
  const AddedTokens tokens({{"<s>", 1}, {"<s>>", 2}, {"><", 3}, plain("x", 4)});
  CHECK(parts_of(tokens, "<s>x") == (Cuts{{kPlain, 0, 3}, {4, 3, 4}}));
  CHECK(parts_of(tokens, "<s>x", {1}) == (Cuts{{1, 0, 3}, {4, 3, 4}}));
  CHECK(parts_of(tokens, "<s>>", {1, 2}) == (Cuts{{2, 0, 4}}));
  CHECK(parts_of(tokens, "<s>>", {1}) == (Cuts{{1, 0, 3}, {kPlain, 3, 4}}));
  CHECK(parts_of(tokens, "<s><", {1, 3}) == (Cuts{{1, 0, 3}, {kPlain, 3, 4}}));
  CHECK(parts_of(tokens, "<s><", {3}) == (Cuts{{kPlain, 0, 2}, {3, 2, 4}}));
  const AddedTokens mixed({{"<s>", 1}, plain("s", 2)});
  CHECK(parts_of(mixed, "<s>s") == (Cuts{{kPlain, 0, 3}, {2, 3, 4}}));
}

void single_words() {
  const AddedTokens tokens({{.content = "ab", .id = 1, .single_word = true, .special = false}});
  for (const std::string_view beside : {"", " ", "-", "\u3000", "\xFF", "\xC3"}) {
    const std::string text = std::string(beside) + "ab" + std::string(beside);
    CHECK(parts_of(tokens, text).size() == (beside.empty() ? 1 : 3));
  }
  for (const std::string_view beside : {"a", "_", "1", "é", "語", "\U0001D400"}) {
    CHECK(parts_of(tokens, "ab" + std::string(beside)).size() == 1);
    CHECK(parts_of(tokens, std::string(beside) + "ab")[0].id == kPlain);
  }
  // Malformed bytes between do not make it a neighbour.
  CHECK(parts_of(tokens,
                 "x\x80"
                 "ab") == (Cuts{{kPlain, 0, 2}, {1, 2, 4}}));
  CHECK(parts_of(tokens,
                 "\xC3\xA9\x80"
                 "ab") == (Cuts{{kPlain, 0, 3}, {1, 3, 5}}));
}

void strips() {
  const AddedTokens left({{.content = "<l>", .id = 1, .lstrip = true, .special = false}});
  CHECK(parts_of(left, " \u3000<l> ") == (Cuts{{1, 0, 7}, {kPlain, 7, 8}}));
  CHECK(parts_of(left, "a \n<l>") == (Cuts{{kPlain, 0, 1}, {1, 1, 6}}));
  CHECK(parts_of(left, " \x80<l>") == (Cuts{{kPlain, 0, 2}, {1, 2, 5}}));
  CHECK(parts_of(left, "\u3000\x80<l>") == (Cuts{{kPlain, 0, 4}, {1, 4, 7}}));
  const AddedTokens right({{.content = "<r>", .id = 2, .rstrip = true, .special = false}});
  CHECK(parts_of(right, " <r>\u3000 ") == (Cuts{{kPlain, 0, 1}, {2, 1, 8}}));
  CHECK(parts_of(right, "<r> \xE3\x80") == (Cuts{{2, 0, 4}, {kPlain, 4, 6}}));
  // What the first has taken, the second does not take again.
  const AddedTokens both({{"<b>", 3, false, true, true, false}});
  CHECK(parts_of(both, "  <b>  <b>  ") == (Cuts{{3, 0, 7}, {3, 7, 12}}));
}

/// Within spaces that were taken: with lstrip it is nothing; else it is itself once more.
void tokens_within_taken_spaces() {
  const AddedToken taker{.content = "<r>", .id = 1, .rstrip = true, .special = false};
  const AddedTokens strips({taker, {.content = "\n", .id = 2, .lstrip = true, .special = false}});
  CHECK(parts_of(strips, "<r> \n a") == (Cuts{{1, 0, 6}, {kPlain, 5, 7}}));
  const AddedTokens not_strips({taker, plain("\n", 2)});
  CHECK(parts_of(not_strips, "<r> \n a") == (Cuts{{1, 0, 6}, {2, 4, 5}, {kPlain, 5, 7}}));
}

std::string random_text(std::mt19937& random, std::size_t most) {
  constexpr std::string_view kPieces[] = {"a", "b", "<",  " ",    " ",    "\n",   "\u3000", "é",
                                          "_", "1", "<a", "\x80", "\xE3", "\xC3", "\xFF",   "."};
  std::string text;
  for (std::size_t left = random() % most; left > 0; --left) {
    text += kPieces[random() % std::size(kPieces)];
  }
  return text;
}

/// All flags, overlaps, one a prefix of another, the same twice.
void random_ones_equal_the_definition() {
  std::mt19937 random(3);
  std::size_t found = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<AddedToken> tokens;
    for (std::uint32_t id = random() % 6 + 1; id > 0; --id) {
      constexpr std::string_view kPieces[] = {"a", "b", "<", " ", "\n", "\u3000", "é"};
      std::string content;
      for (std::size_t left = random() % 4 + 1; left > 0; --left) {
        content += kPieces[random() % std::size(kPieces)];
      }
      const std::uint32_t flags = random() % 16;
      tokens.push_back(
          {content, id, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0});
    }
    Allowed allowed;
    for (std::uint32_t id = 0; id < 8; ++id) {
      if (random() % 3 != 0) allowed.push_back(id);
    }
    const AddedTokens added(tokens);
    for (int i = 0; i < 10; ++i) {
      const std::string text = random_text(random, 24);
      const Cuts parts = parts_of(added, text, allowed);
      CHECK(parts == naive_segments(tokens, text, allowed));
      found += parts.size() > 1;
    }
  }
  CHECK(found > 10'000);
}

/// Tokens that are spaces and take spaces, in a long run of them.
void a_million_spaces() {
  const std::string text(1'000'000, '\n');
  for (const auto& [left, right] : {std::pair{true, false}, {false, true}, {true, true}}) {
    const AddedTokens tokens({{"\n", 1, false, left, right, false}});
    std::size_t count = 0;
    tokens.extract(
        {text, nullptr}, {}, [](const TextView&) { CHECK(false); },
        [&](std::uint32_t, const TextView&) { ++count; });
    CHECK(count > 0);
  }
  const AddedTokens alternating({{"\n\n", 1, false, true, false, true}, plain("\t", 2)});
  CHECK(parts_of(alternating, text + "\t").size() == 2);
}

}  // namespace

int main() {
  none();
  one();
  the_longest_of_those_that_begin_together();
  the_leftmost_before_the_longest();
  any_bytes();
  what_is_refused();
  allowed();
  single_words();
  strips();
  tokens_within_taken_spaces();
  random_ones_equal_the_definition();
  a_million_spaces();
}

// The learner: worked examples, each tie rule, and a learner that counts
// everything again after each merge.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "learn/bpe_learner.hpp"
#include "naive_learner.hpp"
#include "scan/gpt2_scanner.hpp"

using namespace bpe_beam;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr TieBreak kTieBreaks[] = {TieBreak::kLowestId, TieBreak::kFirstSeen,
                                   TieBreak::kGreatestBytes};

using Words = std::vector<std::pair<std::string, std::int64_t>>;
using Strings = std::vector<std::string>;

/// A corpus whose symbols are the words' bytes, after some special tokens.
struct Corpus {
  Strings tokens;
  std::vector<std::uint32_t> symbols;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> counts;

  explicit Corpus(const Words& words, Strings specials = {}) : tokens(std::move(specials)) {
    std::string bytes;
    for (const auto& [word, count] : words) bytes += word;
    // As the byte-level alphabet is sorted: a blank stands for itself as U+0120, the last here.
    std::sort(bytes.begin(), bytes.end(), [](char a, char b) {
      const auto rank = [](char c) { return c == ' ' ? 0x120 : static_cast<unsigned char>(c); };
      return rank(a) < rank(b);
    });
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    for (const char byte : bytes) {
      const std::string token(1, byte);
      if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
    }
    for (const auto& [word, count] : words) {
      for (const char byte : word) {
        const auto id = std::find(tokens.begin(), tokens.end(), std::string(1, byte));
        symbols.push_back(static_cast<std::uint32_t>(id - tokens.begin()));
      }
      offsets.push_back(static_cast<std::int64_t>(symbols.size()));
      counts.push_back(count);
    }
  }

  [[nodiscard]] BpeLearner learner(std::size_t vocab_size, TieBreak tie_break,
                                   std::int64_t min_frequency = 0) const {
    return {words(), {vocab_size, min_frequency, tie_break}};
  }

  [[nodiscard]] WordsToLearn words() const {
    return {.symbols = symbols,
            .offsets = offsets,
            .counts = counts,
            .tokens = tokens,
            .spans = {},
            .prefix = {}};
  }

  [[nodiscard]] std::vector<NaiveWord> naive_words() const {
    std::vector<NaiveWord> words;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      words.push_back(
          {{symbols.begin() + offsets[i], symbols.begin() + offsets[i + 1]}, counts[i], {}});
    }
    return words;
  }
};

/// The merges as "left,right" and the vocabulary.
struct Learned {
  Strings merges;
  std::vector<std::int64_t> counts;
  Strings tokens;
};

Learned learn(const Corpus& corpus, std::size_t vocab_size, TieBreak tie_break,
              std::int64_t min_frequency = 0) {
  BpeLearner learner = corpus.learner(vocab_size, tie_break, min_frequency);
  Learned learned;
  for (const LearnedMerge& merge : learner.learn(1'000'000)) {
    const Strings& tokens = learner.tokens();
    CHECK(tokens[merge.joined] == tokens[merge.left] + tokens[merge.right]);
    learned.merges.push_back(tokens[merge.left] + "," + tokens[merge.right]);
    learned.counts.push_back(merge.count);
  }
  learned.tokens = learner.tokens();
  return learned;
}

/// Compares with the naive learner; the fast one learns `step` merges a call.
void check_against_naive(const Corpus& corpus, std::size_t vocab_size, TieBreak tie_break,
                         std::int64_t min_frequency, std::size_t step) {
  NaiveLearner naive(corpus.naive_words(), corpus.tokens,
                     {vocab_size, min_frequency, tie_break, Score::kCount, {}});
  BpeLearner learner = corpus.learner(vocab_size, tie_break, min_frequency);
  CHECK(same_merges(learn_by_steps(learner, step), naive.learn()));
  CHECK(learner.tokens() == naive.tokens());
}

/// hug 10, pug 5, pun 12, bun 4, hugs 5.
void the_five_words() {
  const Corpus corpus({{"hug", 10}, {"pug", 5}, {"pun", 12}, {"bun", 4}, {"hugs", 5}});
  for (const TieBreak tie_break : kTieBreaks) {
    const Learned learned = learn(corpus, 10, tie_break);
    CHECK(learned.merges == (Strings{"u,g", "u,n", "h,ug"}));
    CHECK(learned.counts == (std::vector<std::int64_t>{20, 16, 15}));
    CHECK(learned.tokens == (Strings{"b", "g", "h", "n", "p", "s", "u", "ug", "un", "hug"}));
  }
}

void the_course_corpus() {
  Words words;
  for (const std::string_view document :
       {"This is the Hugging Face Course.", "This chapter is about tokenization.",
        "This section shows several tokenizer algorithms.",
        "Hopefully, you will be able to understand how they are trained and generate tokens."}) {
    for (std::size_t begin = 0; begin < document.size();) {
      const std::size_t end = Gpt2Scanner::next(document, begin);
      const std::string word(document.substr(begin, end - begin));
      const auto known = std::find_if(words.begin(), words.end(),
                                      [&](const auto& entry) { return entry.first == word; });
      if (known == words.end()) {
        words.emplace_back(word, 1);
      } else {
        ++known->second;
      }
      begin = end;
    }
  }
  const Corpus corpus(words, {"<|endoftext|>"});
  const Learned learned = learn(corpus, 50, TieBreak::kFirstSeen);
  CHECK(learned.merges ==
        (Strings{" ,t", "i,s", "e,r", " ,a", " t,o", "e,n", "T,h", "Th,is", "o,u", "s,e", " to,k",
                 " tok,en", "n,d", " ,is", " t,h", " th,e", "i,n", " a,b", " token,i"}));
  CHECK(learned.counts[0] == 7);
  Strings tokens = {"<|endoftext|>"};
  for (const char c : std::string_view(",.CFHTabcdefghiklmnoprstuvwyz ")) {
    tokens.emplace_back(1, c);
  }
  CHECK(tokens.size() == 31);
  for (std::string merge : learned.merges) {
    merge.erase(merge.find(','), 1);
    tokens.push_back(merge);
  }
  CHECK(learned.tokens == tokens);
}

/// cam 5, nham 4, tam 3, can 6, ham 4, with a symbol for the end of a word.
void the_end_of_word_symbol() {
  const Corpus corpus({{"cam_", 5}, {"nham_", 4}, {"tam_", 3}, {"can_", 6}, {"ham_", 4}});
  const Learned learned = learn(corpus, 11, TieBreak::kFirstSeen);
  CHECK(learned.merges == (Strings{"a,m", "am,_", "h,am_", "c,a"}));
  CHECK(learned.counts == (std::vector<std::int64_t>{16, 16, 8, 6}));
}

/// ba and ab, once each: the pairs tie.
void ties_of_two_pairs() {
  const Corpus corpus({{"ba", 1}, {"ab", 1}});
  CHECK(learn(corpus, 3, TieBreak::kLowestId).merges == (Strings{"a,b"}));
  CHECK(learn(corpus, 3, TieBreak::kFirstSeen).merges == (Strings{"b,a"}));
  CHECK(learn(corpus, 3, TieBreak::kGreatestBytes).merges == (Strings{"b,a"}));
}

/// The ids decide, not the bytes: with the special token z, which no merge makes anew, id 0.
void lowest_id_goes_by_final_ids() {
  const Corpus corpus({{"aa", 1}, {"zz", 1}}, {"z"});
  CHECK(learn(corpus, 3, TieBreak::kLowestId).merges == (Strings{"z,z"}));
  CHECK(learn(corpus, 3, TieBreak::kFirstSeen).merges == (Strings{"a,a"}));
}

/// (a, bz) against (ab, a): the left parts are compared first, and bytes as unsigned.
void greatest_bytes_compares_part_by_part() {
  const Corpus corpus({{"bz", 9}, {"ab", 8}, {"abz", 1}, {"aba", 1}});
  CHECK(learn(corpus, 6, TieBreak::kGreatestBytes).merges == (Strings{"b,z", "a,b", "ab,a"}));
  const Corpus high({{"ax", 1}, {"\xFFx", 1}, {" x", 1}});
  CHECK(learn(high, 5, TieBreak::kGreatestBytes).merges[0] == "\xFF,x");
}

/// The first place moves when the word it was in is split otherwise.
void first_seen_is_as_words_are_split_now() {
  // (b, c) 3 is first. Then (x, y) 2 and (a, bc) 2 tie; abc stands before xy, abcd after it.
  const Corpus corpus({{"abc", 1}, {"xy", 2}, {"abcd", 1}, {"bc", 1}});
  CHECK(learn(corpus, 9, TieBreak::kFirstSeen).merges == (Strings{"b,c", "a,bc", "x,y"}));
  // (b, c) 6 takes the first (a, b) with it: what is left of (a, b) stands after (x, y).
  const Corpus taken({{"abc", 1}, {"bc", 5}, {"xy", 2}, {"ab", 2}});
  CHECK(learn(taken, 7, TieBreak::kFirstSeen).merges == (Strings{"b,c", "x,y"}));
}

void runs_of_one_letter() {
  // (a, a) three times; aa aa; then once.
  const Learned four = learn(Corpus({{"aaaa", 1}}), 9, TieBreak::kLowestId);
  CHECK(four.merges == (Strings{"a,a", "aa,aa"}));
  CHECK(four.counts == (std::vector<std::int64_t>{3, 1}));
  // aa aa a: (aa, aa) stands first and is greatest, (aa, a) has the lowest ids.
  const Corpus five({{"aaaaa", 2}});
  CHECK(learn(five, 9, TieBreak::kLowestId).merges == (Strings{"a,a", "aa,a", "aa,aaa"}));
  CHECK(learn(five, 9, TieBreak::kFirstSeen).merges == (Strings{"a,a", "aa,aa", "aaaa,a"}));
  CHECK(learn(five, 9, TieBreak::kGreatestBytes).merges == (Strings{"a,a", "aa,aa", "aaaa,a"}));
  for (const TieBreak tie_break : kTieBreaks) {
    Words words;
    for (std::size_t length = 1; length <= 40; ++length) {
      const Corpus one({{std::string(length, 'a'), 3}});
      check_against_naive(one, 100, tie_break, 0, 100);
      words.emplace_back(std::string(length, 'a'), static_cast<std::int64_t>(length % 7 + 1));
    }
    check_against_naive(Corpus(words), 100, tie_break, 0, 1);
  }
}

void a_long_run() {
  // 2^20 letters: each merge halves them, the last ones by one pair.
  const Corpus corpus({{std::string(1 << 20, 'a'), 1}});
  const Learned learned = learn(corpus, 1000, TieBreak::kLowestId);
  CHECK(learned.merges.size() == 20);
  CHECK(learned.counts[0] == (1 << 20) - 1);
  CHECK(learned.counts[1] == (1 << 19) - 1);
  CHECK(learned.counts[19] == 1);
}

/// It is learned and applied, and adds no entry.
void a_joined_token_that_exists() {
  const Corpus corpus({{"abc", 3}}, {"ab"});
  const Learned learned = learn(corpus, 5, TieBreak::kLowestId);
  CHECK(learned.merges == (Strings{"a,b", "ab,c"}));
  CHECK(learned.tokens == (Strings{"ab", "a", "b", "c", "abc"}));
  // As the vocabulary's last entry it is not reached: the vocabulary is full.
  CHECK(learn(corpus, 4, TieBreak::kLowestId).merges.empty());
}

/// Asked to, it learns nothing after that merge, however often it is asked.
void stops_at_a_token_it_knows() {
  const Corpus corpus({{"abc", 3}, {"xyz", 9}}, {"ab"});
  for (const std::size_t at_once : {1, 2, 100}) {
    BpeLearner goes_on(corpus.words(), {.vocab_size = 99});
    BpeLearner stops(corpus.words(), {.vocab_size = 99, .stop_at_known = true});
    std::vector<std::uint32_t> joined;
    for (int i = 0; i < 9; ++i) {
      CHECK(stops.stopped() == (joined.size() == 3));
      for (const LearnedMerge& merge : stops.learn(at_once)) joined.push_back(merge.joined);
      static_cast<void>(goes_on.learn(at_once));
      CHECK(!goes_on.stopped());
    }
    // x,y then xy,z, both new; then a,b. The other goes on to ab,c.
    CHECK(joined == (std::vector<std::uint32_t>{7, 8, 0}));
    CHECK(stops.stopped() && stops.tokens().size() == 9 && goes_on.tokens().size() == 10);
  }
}

/// Words that begin and end like others.
/// Tokens of `a` double in length; the merge that would go beyond the limit ends learning.
void the_text_of_all_merges_is_limited() {
  const Corpus corpus({{"aaaaaaaa", 3}, {"b", 2}});
  for (const std::size_t step : {std::size_t{1}, std::size_t{9}}) {
    BpeLearner learner(corpus.words(), {.vocab_size = 99, .max_text = 2 + 4 + 7});
    CHECK(!learner.text_full());
    CHECK(learner.token_count() == 3 * 8 + 2);
    CHECK(learn_by_steps(learner, step).size() == 2);
    CHECK(learner.text_full() && !learner.stopped());
    CHECK(learner.token_count() == 3 * 2 + 2);
    CHECK(learner.learn(9).empty() && learner.tokens().size() == 4);
  }
  BpeLearner whole(corpus.words(), {.vocab_size = 99, .max_text = 2 + 4 + 8});
  CHECK(whole.learn(9).size() == 3);
  CHECK(!whole.text_full());
  CHECK(whole.token_count() == 3 + 2);
}

void words_within_words() {
  const Corpus corpus({{"abc", 9}, {"abcd", 4}, {"cd", 20}, {"abcdx", 1}});
  for (const TieBreak tie_break : kTieBreaks) check_against_naive(corpus, 40, tie_break, 0, 3);
}

/// A special token that is no bytes (an empty entry) takes no part; one that reads like a merged
/// token, or like a byte, does.
void special_tokens_that_collide() {
  for (const TieBreak tie_break : kTieBreaks) {
    for (const Strings& specials : {Strings{""}, Strings{"ab"}, Strings{"aab", "b"},
                                    Strings{"bb", "abab", "a", ""}, Strings{"zz"}}) {
      const Corpus corpus({{"abab", 3}, {"aabb", 2}, {"bba", 2}, {"ababab", 1}}, specials);
      for (std::size_t vocab_size = 0; vocab_size < 16; ++vocab_size) {
        check_against_naive(corpus, vocab_size, tie_break, 0, 2);
      }
    }
  }
}

void stops_where_it_should() {
  const Corpus corpus({{"hug", 10}, {"pug", 5}, {"pun", 12}, {"bun", 4}, {"hugs", 5}});
  CHECK(learn(corpus, 99, TieBreak::kLowestId, 16).merges == (Strings{"u,g", "u,n"}));
  CHECK(learn(corpus, 99, TieBreak::kLowestId, 17).merges == (Strings{"u,g"}));
  CHECK(learn(corpus, 7, TieBreak::kLowestId).merges.empty());  // as large as the alphabet
  CHECK(learn(corpus, 3, TieBreak::kLowestId).merges.empty());
  CHECK(learn(Corpus({{"a", 5}}), 99, TieBreak::kLowestId).merges.empty());
  CHECK(learn(Corpus(Words{}), 99, TieBreak::kLowestId).merges.empty());
  CHECK(learn(Corpus({{"", 5}, {"ab", 1}, {"", 1}}), 99, TieBreak::kLowestId).merges ==
        (Strings{"a,b"}));
  BpeLearner learner = corpus.learner(99, TieBreak::kLowestId);
  CHECK(learner.learn(0).empty());
  CHECK(learner.learn(2).size() == 2);
  CHECK(learner.learn(100).size() > 0);
  CHECK(learner.learn(100).empty());
}

/// 32 bits end before these, and floats cannot tell them apart.
void counts_beyond_32_and_53_bits() {
  for (const int bits : {31, 32, 53, 60}) {
    const std::int64_t large = std::int64_t{1} << bits;
    for (const bool swapped : {false, true}) {
      const Corpus corpus({{swapped ? "ab" : "cd", large}, {swapped ? "cd" : "ab", large + 1}});
      const Learned learned = learn(corpus, 5, TieBreak::kLowestId);
      CHECK(learned.merges == (Strings{swapped ? "c,d" : "a,b"}));
      CHECK(learned.counts[0] == large + 1);
    }
  }
}

void the_order_of_words_does_not_matter() {
  std::mt19937 random(5);
  Words words;
  for (int i = 0; i < 60; ++i) {
    std::string word;
    for (std::uint32_t size = random() % 9 + 1; size > 0; --size) {
      word += static_cast<char>('a' + random() % 3);
    }
    words.emplace_back(word, random() % 3 + 1);
  }
  for (const TieBreak tie_break : {TieBreak::kLowestId, TieBreak::kGreatestBytes}) {
    const Learned first = learn(Corpus(words), 60, tie_break);
    CHECK(first.merges.size() > 20);
    for (int round = 0; round < 5; ++round) {
      std::shuffle(words.begin(), words.end(), random);
      CHECK(learn(Corpus(words), 60, tie_break).merges == first.merges);
    }
  }
}

void random_corpora() {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t letters = random() % 4 + 1;
    Words words;
    for (std::uint32_t n = random() % 12 + 1; n > 0; --n) {
      std::string word;
      for (std::uint32_t size = random() % 14; size > 0; --size) {
        word += static_cast<char>('a' + random() % letters);
      }
      words.emplace_back(word, random() % 4 + 1);
    }
    Strings specials;
    if (round % 3 == 0) specials = {"ab", "aa", "ba"};
    const Corpus corpus(words, specials);
    for (const TieBreak tie_break : kTieBreaks) {
      check_against_naive(corpus, corpus.tokens.size() + random() % 40, tie_break, random() % 4,
                          random() % 5 + 1);
    }
  }
}

void counts_beyond_64_bits_are_refused() {
  // One symbol fits; two do not, be they in one word or in two.
  learn(Corpus({{"a", kMost}}), 9, TieBreak::kLowestId);
  CHECK_THROWS(std::overflow_error, learn(Corpus({{"ab", kMost}}), 9, TieBreak::kLowestId));
  CHECK_THROWS(std::overflow_error,
               learn(Corpus({{"a", kMost}, {"b", 1}}), 9, TieBreak::kLowestId));
  CHECK(learn(Corpus({{"ab", kMost / 2}}), 9, TieBreak::kLowestId).counts[0] == kMost / 2);
  CHECK_THROWS(
      std::overflow_error,
      learn(Corpus({{"ab", kMost / 2}, {"ab", kMost / 2}, {"ab", kMost / 2}, {"ab", kMost / 2}}), 9,
            TieBreak::kLowestId));
}

BpeLearner make(const std::vector<std::uint32_t>& symbols, const std::vector<std::int64_t>& offsets,
                const std::vector<std::int64_t>& counts, const Strings& tokens) {
  return {{.symbols = symbols,
           .offsets = offsets,
           .counts = counts,
           .tokens = tokens,
           .spans = {},
           .prefix = {}},
          {100, 0, TieBreak::kLowestId}};
}

void what_no_learner_takes() {
  const Strings tokens = {"a", "b"};
  make({0, 1, 0}, {0, 2, 3}, {1, 1}, tokens);
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 1}, {1, 1}, tokens));  // too few
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {}, {}, tokens));
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 2, 1}, {1, 1}, tokens));  // descend
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 3}, {1}, tokens));        // beyond
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {-1, 2}, {1}, tokens));
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 2}, {0}, tokens));
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 2}, {-5}, tokens));
  CHECK_THROWS(std::invalid_argument, make({0, 2}, {0, 2}, {1}, tokens));  // no such id
  CHECK_THROWS(std::invalid_argument, make({0, 0xFFFFFFFF}, {0, 2}, {1}, tokens));
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 2}, {1}, {"a", "a"}));
  CHECK_THROWS(std::invalid_argument, make({0, 1}, {0, 2}, {1}, {"a", ""}));  // no bytes
}

/// A symbol that reads like a merged token has one position, and the merged token two.
void a_symbol_made_of_other_symbols() {
  const std::vector<std::uint32_t> symbols = {0, 1, 0, 2, 2};
  const std::vector<std::int64_t> offsets = {0, 3, 5};
  const std::vector<std::int64_t> counts = {5, 3};
  BpeLearner learner({.symbols = symbols,
                      .offsets = offsets,
                      .counts = counts,
                      .tokens = {"a", "b", "ab"},
                      .spans = {},
                      .prefix = {}},
                     {100, 0, TieBreak::kLowestId});
  // a b a, then ab ab: (a, b) makes the symbol again.
  learner.learn(100);
  CHECK(learner.tokens() == (Strings{"a", "b", "ab", "aba", "abab"}));
}

/// Counts of many sizes: rare pairs are listed late, tokens that are made again at once.
void rare_pairs() {
  std::mt19937 random(13);
  for (int round = 0; round < 100; ++round) {
    const std::uint32_t letters = random() % 5 + 2;
    Words words;
    for (std::uint32_t n = random() % 60 + 1; n > 0; --n) {
      std::string word;
      for (std::uint32_t size = random() % 12; size > 0; --size) {
        word += static_cast<char>('a' + random() % letters);
      }
      words.emplace_back(word, std::int64_t{1} << random() % 30);
    }
    Strings specials;
    if (round % 2 == 0) specials = {"ab", "aba", "ca", "abab", "bb"};
    const Corpus corpus(words, specials);
    for (const TieBreak tie_break : kTieBreaks) {
      check_against_naive(corpus, corpus.tokens.size() + 90, tie_break, random() % 2 * 500, 9);
    }
  }
}

/// More merges that make a known token, while the floor is high, than are counted again at that
/// floor.
void many_known_tokens() {
  Words words;
  Strings specials;
  for (int i = 0; i < 14; ++i) {
    const std::string token = {static_cast<char>('A' + i), static_cast<char>('a' + i)};
    specials.push_back(token);
    words.insert(words.end(), {{token + "z", 1000 - i}, {token + "zz", 900 - i}, {token, 100}});
    words.emplace_back(token + "y", 1);
  }
  const Corpus corpus(words, specials);
  for (const TieBreak tie_break : kTieBreaks) {
    check_against_naive(corpus, corpus.tokens.size() + 100, tie_break, 1, 3);
  }
}

void spans_are_checked() {
  const std::vector<std::uint32_t> symbols = {0, 1};
  const std::vector<std::int64_t> offsets = {0, 2};
  const std::vector<std::int64_t> counts = {1};
  for (const std::vector<std::uint32_t>& spans :
       {std::vector<std::uint32_t>{1}, {1, 0}, {1, 0x80000000}, {0xFFFFFFFF, 0xFFFFFFFF}}) {
    CHECK_THROWS(std::invalid_argument, BpeLearner({.symbols = symbols,
                                                    .offsets = offsets,
                                                    .counts = counts,
                                                    .tokens = {"a", "b"},
                                                    .spans = spans,
                                                    .prefix = {}},
                                                   {100, 0, TieBreak::kLowestId}));
  }
}

/// A pair of two symbols always may join; others only below the longest length.
void longest_token() {
  for (const auto& [most, merges] : std::vector<std::pair<std::uint64_t, Strings>>{
           {0, {"a,b", "c,d"}}, {4, {"a,b", "c,d"}}, {5, {"a,b", "c,d", "ab,cd"}}}) {
    const Corpus corpus({{"abcd", 2}});
    WordsToLearn words = corpus.words();
    words.max_token_length = most;
    BpeLearner learner(std::move(words), {100, 0, TieBreak::kLowestId});
    Strings found;
    for (const LearnedMerge& merge : learner.learn(100)) {
      found.push_back(learner.tokens()[merge.left] + "," + learner.tokens()[merge.right]);
    }
    CHECK(found == merges);
  }
}

}  // namespace

int main() {
  the_five_words();
  the_course_corpus();
  the_end_of_word_symbol();
  ties_of_two_pairs();
  lowest_id_goes_by_final_ids();
  greatest_bytes_compares_part_by_part();
  first_seen_is_as_words_are_split_now();
  runs_of_one_letter();
  a_long_run();
  a_joined_token_that_exists();
  stops_at_a_token_it_knows();
  the_text_of_all_merges_is_limited();
  words_within_words();
  special_tokens_that_collide();
  stops_where_it_should();
  counts_beyond_32_and_53_bits();
  the_order_of_words_does_not_matter();
  random_corpora();
  rare_pairs();
  many_known_tokens();
  counts_beyond_64_bits_are_refused();
  what_no_learner_takes();
  a_symbol_made_of_other_symbols();
  spans_are_checked();
  longest_token();
}

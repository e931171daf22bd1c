// Seams: words in parts become what they become as a whole.
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/bpe_models.hpp"
#include "encode/seams.hpp"
#include "exact_copy.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

Ids byte_ids() {
  Ids ids;
  for (std::uint32_t byte = 0; byte < 256; ++byte) ids.push_back(byte);
  return ids;
}

std::optional<Seams> seams_of(const std::vector<MergeRow>& rows, const Ids& ids = byte_ids()) {
  return Seams::of(rows, std::span<const std::uint32_t, 256>(ids));
}

bool crosses(const Seams& seams, std::string_view word, std::size_t at) {
  const ExactCopy copy(word);
  return seams.may_cross(copy.view(), at);
}

void worked() {
  const auto seams = seams_of({{'u', 'g', 256}, {'h', 256, 257}, {256, 's', 258}, {256, 257, 259}});
  CHECK(seams.has_value());
  CHECK(crosses(*seams, "ug", 1) && crosses(*seams, "xugx", 2));
  CHECK(crosses(*seams, "hug", 1) && crosses(*seams, "ugs", 2) && crosses(*seams, "ughug", 2));
  CHECK(!crosses(*seams, "gu", 1) && !crosses(*seams, "xu", 1));
  // The bytes on both sides of the boundary are those of a merge, but not those next to them.
  CHECK(!crosses(*seams, "hux", 1) && !crosses(*seams, "ags", 2) && !crosses(*seams, "ughx", 2));
  CHECK(!crosses(*seams, "gs", 1) && !crosses(*seams, "hu", 1));
  CHECK(!crosses(*seams_of({}), "ab", 1));
}

/// Tokens whose bytes are not certain.
void nothing_is_known() {
  std::vector<MergeRow> reversed;  // each listed before its part
  for (std::uint32_t id = 300; id > 256; --id) reversed.push_back({id - 1, 'a', id});
  reversed.push_back({'a', 'a', 256});
  CHECK(!seams_of(reversed));
  CHECK(!seams_of({{'a', 'b', 256}, {'c', 'd', 256}}));  // two texts
  CHECK(!seams_of({{'a', 'b', 'c'}}));                   // a byte's id
  CHECK(!seams_of({{'a', 'b', 4'000'000'000}}));
  Ids ids = byte_ids();
  ids['b'] = 'a';
  CHECK(!seams_of({}, ids));  // two bytes of one id
  ids = byte_ids();
  ids['b'] = kNoId;
  CHECK(seams_of({{'a', 'c', 256}}, ids) && !crosses(*seams_of({{'a', 'b', 256}}, ids), "ab", 1));
  CHECK(seams_of({{'a', 'a', 256}, {256, 'a', 257}, {'a', 256, 257}}));  // one text in two ways
}

void listed_before_its_part() {
  const auto seams = seams_of({{256, 'c', 257}, {'a', 'b', 256}, {300, 'x', 301}});
  CHECK(crosses(*seams, "abc", 1) && crosses(*seams, "abc", 2));
  CHECK(!crosses(*seams, "xbc", 2) && !crosses(*seams, "bca", 2));
  CHECK(!crosses(*seams, "cx", 1) && !crosses(*seams, "ax", 1));  // its part is never made
}

/// Any merges and any words: the ids of the parts are the ids of the word.
void parts_equal_the_whole() {
  std::mt19937 random(7);
  std::size_t cuts = 0;
  std::size_t kept = 0;
  for (int round = 0; round < 400; ++round) {
    NaiveByteBpe naive;
    naive.byte_ids = byte_ids();
    Ids known = {'a', 'b', 'c', 'd', 0xE4, 0x80};
    for (std::uint32_t left = random() % 25; left > 0; --left) {
      const std::uint32_t first = known[random() % known.size()];
      const std::uint32_t second = known[random() % known.size()];
      known.push_back(256 + left);
      naive.rows.push_back({first, second, known.back()});
    }
    if (round % 4 > 1) {  // some are listed before their parts
      for (int swaps = 3; swaps > 0 && naive.rows.size() > 1; --swaps) {
        const std::size_t at = random() % (naive.rows.size() - 1);
        std::swap(naive.rows[at], naive.rows[at + 1]);
      }
    }
    const ByteBpeModel model(naive.rows, std::span<const std::uint32_t, 256>(naive.byte_ids), {});
    CHECK(model.seams() != nullptr);
    for (int i = 0; i < 50; ++i) {
      std::string word;
      for (std::size_t left = random() % 40 + 1; left > 0; --left)
        word += "abcd\xE4\x80"[random() % 6];
      Ids ids;
      ModelState state;
      std::size_t begin = 0;
      for (std::size_t at = 1; at <= word.size(); ++at) {
        if (at < word.size() && crosses(*model.seams(), word, at)) {
          ++kept;
          continue;
        }
        ++cuts;
        model.encode_part(std::string_view(word).substr(begin, at - begin), state);
        ids.insert(ids.end(), state.ids.begin(), state.ids.end());
        begin = at;
      }
      CHECK(ids == ids_of(naive.encode(word)));
    }
  }
  CHECK(cuts > 30'000 && kept > 30'000);
}

}  // namespace

int main() {
  worked();
  nothing_is_known();
  listed_before_its_part();
  parts_equal_the_whole();
}

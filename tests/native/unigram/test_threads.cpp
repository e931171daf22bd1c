// Work on several threads.
#include "unigram/threads.hpp"

#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

void takes_each_item_once() {
  for (std::size_t threads = 0; threads < 5; ++threads) {
    for (const std::size_t items : {0, 1, 9, 10, 11, 1000}) {
      const auto states = gather(items, 10, threads, std::vector<int>(items),
                                 [](std::vector<int>& times, std::size_t item) { ++times[item]; });
      CHECK(states.size() <= std::max<std::size_t>(threads, 1));
      std::vector<int> sums(items);
      for (const auto& times : states) {
        for (std::size_t item = 0; item < items; ++item) sums[item] += times[item];
      }
      CHECK(sums == std::vector<int>(items, 1));
    }
  }
}

void throws_what_a_thread_throws() {
  for (const std::size_t wrong : {0, 1, 2}) {
    CHECK_THROWS(std::length_error, (on_threads(3, [&](std::size_t thread) {
                   if (thread == wrong) throw std::length_error("");
                 })));
  }
}

}  // namespace

int main() {
  takes_each_item_once();
  throws_what_a_thread_throws();
}

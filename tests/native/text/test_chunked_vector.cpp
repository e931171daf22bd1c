// The vector that grows by chunks.
#include "text/chunked_vector.hpp"

#include <memory>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

void equals_a_vector() {
  ChunkedVector<int> chunked;
  std::vector<int> reference;
  CHECK(chunked.size() == 0);
  for (std::size_t i = 0; i < 3 * ChunkedVector<int>::kChunk + 1; ++i) {
    const int value = static_cast<int>(i * 7 % 1001);
    CHECK(chunked.push_back(value) == value);
    reference.push_back(value);
    CHECK(chunked.size() == reference.size());
  }
  for (std::size_t i = 0; i < reference.size(); ++i) {
    CHECK(chunked[i] == reference[i]);
    chunked[i] = -chunked[i];
  }
  const ChunkedVector<int>& constant = chunked;
  for (std::size_t i = 0; i < reference.size(); ++i) CHECK(constant[i] == -reference[i]);
}

void elements_stay_where_they_are() {
  ChunkedVector<int> chunked;
  const int* const first = &chunked.push_back(1);
  for (int i = 0; i < 100'000; ++i) chunked.push_back(i);
  CHECK(first == &chunked[0]);
  CHECK(*first == 1);
}

void holds_what_can_only_be_moved() {
  ChunkedVector<std::unique_ptr<int>> chunked;
  for (int i = 0; i < 2000; ++i) chunked.push_back(std::make_unique<int>(i));
  CHECK(*chunked[1999] == 1999);
  chunked.clear();
  CHECK(chunked.size() == 0);
  chunked.push_back(std::make_unique<int>(5));
  CHECK(*chunked[0] == 5);
}

}  // namespace

int main() {
  equals_a_vector();
  elements_stay_where_they_are();
  holds_what_can_only_be_moved();
}

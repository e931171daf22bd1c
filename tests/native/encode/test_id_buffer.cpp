// The buffer of ids: what is written stays through growth; and the pool of buffers.
#include <cstdint>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/id_buffer.hpp"

using namespace bpe_beam;

namespace {

void grows() {
  IdBuffer buffer;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t id = 0; id < 100'000; ++id) {
    if (id % 3 == 0) {
      buffer.push_back(id);
    } else {
      std::uint32_t* const room = buffer.room(id % 50 + 1);
      *room = id;
      buffer.written_to(room + 1);
    }
    expected.push_back(id);
  }
  const auto ids = buffer.ids();
  CHECK(buffer.size() == expected.size());
  CHECK((std::vector<std::uint32_t>(ids.begin(), ids.end()) == expected));
  buffer.shrink();
  CHECK(buffer.ids()[99'999] == 99'999);
}

/// By several steps, to more ids than a block of spare room has.
void grows_large() {
  IdBuffer buffer;
  constexpr std::uint32_t kIds = 9'000'000;
  for (std::uint32_t id = 0; id < kIds;) {
    std::uint32_t* room = buffer.room(1000);
    for (int i = 0; i < 1000; ++i) *room++ = id++ * 3;
    buffer.written_to(room);
  }
  buffer.shrink();
  CHECK(buffer.size() == kIds);
  for (std::uint32_t id = 0; id < kIds; ++id) CHECK(buffer.ids()[id] == id * 3);
}

void cuts() {
  IdBuffer buffer(3);
  for (std::uint32_t id = 0; id < 5; ++id) buffer.push_back(id);
  buffer.cut(7);
  CHECK(buffer.size() == 5);
  buffer.cut(2);
  buffer.push_back(9);
  CHECK(buffer.size() == 3 && buffer.ids()[1] == 1 && buffer.ids()[2] == 9);
}

void moves() {
  IdBuffer empty;
  empty.shrink();
  CHECK(empty.size() == 0 && empty.ids().empty());
  IdBuffer buffer;
  buffer.push_back(5);
  const IdBuffer moved(std::move(buffer));
  CHECK(moved.ids()[0] == 5 && buffer.size() == 0 && buffer.capacity() == 0);
  buffer.push_back(6);  // and can be used again
  CHECK(buffer.ids()[0] == 6 && moved.ids()[0] == 5);
}

/// A pool gives the largest buffer, empty, to who wants enough; it keeps no more than its bound.
void waits_to_be_used_again() {
  IdBufferPool pool(100, 1000);
  const auto give_back = [&](std::size_t capacity) {
    IdBuffer buffer(capacity);
    buffer.push_back(7);
    const std::uint32_t* const data = buffer.ids().data();
    pool.give_back(std::move(buffer));
    return data;
  };
  give_back(99);    // too small
  give_back(1001);  // too large
  CHECK(pool.take(1000).capacity() < 99);
  const std::uint32_t* const large = give_back(600);
  const std::uint32_t* const small = give_back(300);
  give_back(200);  // more than the bound in total
  CHECK(pool.take(99).capacity() < 99);
  const IdBuffer first = pool.take(100);
  CHECK(first.capacity() == 600 && first.size() == 0 && first.ids().data() == large);
  const IdBuffer second = pool.take(1000);
  CHECK(second.capacity() == 300 && second.ids().data() == small);
  CHECK(pool.take(1000).capacity() < 99);
  const std::uint32_t* const again = give_back(1000);
  CHECK(pool.take(100).ids().data() == again);
}

}  // namespace

int main() {
  grows();
  grows_large();
  cuts();
  moves();
  waits_to_be_used_again();
}

// The buffer of ids: what is written stays through growth, and is handed over.
#include <cstdint>
#include <cstdlib>
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

void cuts() {
  IdBuffer buffer(3);
  for (std::uint32_t id = 0; id < 5; ++id) buffer.push_back(id);
  buffer.cut(7);
  CHECK(buffer.size() == 5);
  buffer.cut(2);
  buffer.push_back(9);
  CHECK(buffer.size() == 3 && buffer.ids()[1] == 1 && buffer.ids()[2] == 9);
}

void hands_over() {
  IdBuffer empty;
  empty.shrink();
  CHECK(empty.size() == 0 && empty.ids().empty());
  std::free(empty.release());
  IdBuffer buffer;
  buffer.push_back(5);
  std::uint32_t* const ids = buffer.release();
  CHECK(ids[0] == 5 && buffer.size() == 0);
  std::free(ids);
  buffer.push_back(6);  // and can be used again
  CHECK(buffer.ids()[0] == 6);
}

}  // namespace

int main() {
  grows();
  cuts();
  hands_over();
}

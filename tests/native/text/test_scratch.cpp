// Buffers go back to the pool of their thread, and big ones do not.
#include <cstddef>
#include <thread>

#include "check.hpp"
#include "text/scratch.hpp"

using namespace bpe_beam;

namespace {

struct Buffer {
  std::size_t bytes = 0;
  [[nodiscard]] std::size_t memory_bytes() const { return bytes; }
};

void used_again() {
  const Buffer* first = nullptr;
  {
    const Scratch<Buffer> a;
    const Scratch<Buffer> b;
    CHECK(a.get() != b.get());
    first = a.get();
    a.get()->bytes = Scratch<Buffer>::kMostKept;
  }
  const Scratch<Buffer> again;
  CHECK(again.get() == first && again.get()->bytes == Scratch<Buffer>::kMostKept);
  const Buffer* elsewhere = nullptr;
  std::thread([&] {
    const Scratch<Buffer> other;
    elsewhere = other.get();
    CHECK(other.get()->bytes == 0);
  }).join();
  CHECK(elsewhere != first);
}

void big_ones_are_freed() {
  {
    Scratch<Buffer>().get()->bytes = Scratch<Buffer>::kMostKept + 1;
  }
  for (int i = 0; i < 3; ++i) CHECK(Scratch<Buffer>().get()->bytes <= Scratch<Buffer>::kMostKept);
}

}  // namespace

int main() {
  used_again();
  big_ones_are_freed();
}

// Stands in for libFuzzer where there is none: feeds a target with random inputs.
//
//   target ROUNDS [SEED [ROUND]]     feeds so many inputs of that seed; or that one round alone
//
// Inputs follow from seed and round, so whatever fails is named by them and can be run again.
#include <sanitizer/common_interface_defs.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::uint64_t seed = 0;
std::uint64_t current = 0;
bool running = false;

void tell() {
  if (!running) return;
  running = false;
  std::fprintf(stderr, "failed in seed %llu, round %llu\n", static_cast<unsigned long long>(seed),
               static_cast<unsigned long long>(current));
}

/// Mostly short; of few different bytes, of UTF-8's leads and trails, or of anything.
std::vector<std::uint8_t> input_of(std::uint64_t round) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15 + round);
  const std::size_t longest = round % 50 == 0 ? 20000 : round % 5 == 0 ? 600 : 60;
  std::vector<std::uint8_t> input(random() % longest);
  const std::uint64_t kind = random() % 4;
  const std::uint64_t few = random() % 8 + 1;
  constexpr std::uint8_t kUtf8[] = {' ',  'a',  '\'', 's',  '1',  '\n', 0xC2, 0xA0, 0xC3, 0xA9,
                                    0xE3, 0x80, 0x81, 0xED, 0xF0, 0x9F, 0x98, 0xF4, 0x85, 0xFF};
  constexpr std::uint8_t kJson[] = {'{', '}', '[', ']', '"', '"',  ':', ',', '\\', 'u', 'D', '8',
                                    'C', '0', '-', '.', 'e', '\n', ' ', 't', '\r', 'i', 'd', 0xE9};
  for (std::uint8_t& byte : input) {
    const std::uint64_t any = random();
    byte = static_cast<std::uint8_t>(kind == 0   ? any % few
                                     : kind == 1 ? kUtf8[any % sizeof kUtf8]
                                     : kind == 2 ? kJson[any % sizeof kJson]
                                                 : any);
  }
  return input;
}

void run(std::uint64_t round) {
  current = round;
  const std::vector<std::uint8_t> input = input_of(round);
  // On the heap without a byte to spare, for AddressSanitizer.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s ROUNDS [SEED [ROUND]]\n", argv[0]);
    return 2;
  }
  const std::uint64_t rounds = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) seed = std::strtoull(argv[2], nullptr, 10);
  running = true;
  std::atexit(tell);                     // a check that failed
  __sanitizer_set_death_callback(tell);  // a sanitizer that did
  if (argc > 3) {
    run(std::strtoull(argv[3], nullptr, 10));
    running = false;
    return 0;
  }
  for (std::uint64_t round = 0; round < rounds; ++round) run(round);
  running = false;
  std::printf("%llu rounds\n", static_cast<unsigned long long>(rounds));
}

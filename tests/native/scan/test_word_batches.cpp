// Batches have the words that the scanner finds one by one, whatever the text's length.
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "words.hpp"

using namespace bpe_beam;

namespace {

void check_all(std::string_view text) {
  for (const std::string_view name : kScannerNames) {
    with_scanner(name, [&](auto scanner) { words_of<decltype(scanner)>(text); });
  }
}

/// Texts of every length around that of a block, and around that of a batch.
void every_length() {
  std::string letters;
  for (int i = 0; i < 600; ++i) letters += "a b, "[i % 5];
  for (std::size_t size = 0; size < 300; ++size) {
    check_all(std::string_view(letters).substr(0, size));
    check_all(std::string(size, 'a'));
    check_all(std::string(size, ' ') + "a");
  }
  for (std::size_t words = kBatchWords - 3; words < kBatchWords + 3; ++words) {
    check_all(std::string(words, '1'));
  }
}

void long_texts() {
  constexpr std::string_view kPieces[] = {
      "the ",   "'ll",  "don't ", "\n\n",      "\u3000", "日本語", "да и ", "12345", "—",
      "\u0301", "\xFF", "/* ",    "CamelCase", "    ",   "\t",     "!\n",   "été ",  "ſ"};
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (std::size_t left = random() % 400; left > 0; --left) {
      text += kPieces[random() % std::size(kPieces)];
    }
    check_all(text);
  }
}

}  // namespace

int main() {
  every_length();
  long_texts();
}

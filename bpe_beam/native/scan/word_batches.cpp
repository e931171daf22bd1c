// See word_batches.hpp.
#include "scan/word_batches.hpp"

#include <string_view>

#include "scan/class_masks.hpp"
#include "scan/scanners.hpp"

namespace bpe_beam {

bool scan_by_name(std::string_view scanner, std::string_view text, const BlockClasses& classes,
                  WordsUse use) {
  return with_scanner(scanner, [&](auto scan) { scan_batches(scan, text, classes, use); });
}

}  // namespace bpe_beam

// Text of anything: what is read as JSON, and written again, is read to the same.
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "written_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  // Half of the time letters of which JSON is made, so that whole values come about.
  const bool of_json = input.below(2) == 0;
  const std::string text =
      of_json ? input.word(size, "{}[]\":,1-.e\\u0 tnrl\xc3\xa9") : std::string(input.rest());
  const ExactCopy copy(text);
  const std::string once = written({copy.view().data(), text.size()});
  if (!once.empty()) CHECK(written(once) == once);
  return 0;
}

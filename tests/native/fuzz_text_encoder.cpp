// Any pipeline with any model: ids and places are those of the definition, with and without the
// cache, and lie within the text.
#include <cstdint>
#include <string>
#include <vector>

#include "any_model.hpp"
#include "check.hpp"
#include "encode_text.hpp"
#include "fuzz_input.hpp"
#include "naive_pipeline.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 3000) return 0;  // the naive ones are slow
  FuzzInput input(data, size);
  const PipelineSpec pipeline = any_pipeline(input);
  const AnyModel model = any_model(input);
  const TextEncoder encoder(pipeline.make(), model.model);
  EncodingState state(input.below(8) * 100);
  while (!input.empty()) {
    const std::vector<std::uint32_t> allowed = any_allowed(input);
    const std::string text = any_text(input, input.byte());
    CHECK(encoded(encoder, text, allowed, state) == encoded(pipeline, *model.naive, text, allowed));
  }
  return 0;
}

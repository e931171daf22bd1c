// A pipeline as a Python object.
#pragma once

#include <memory>

#include "scan/pipeline.hpp"

namespace bpe_beam {

/// A pipeline, which tables and encoders share.
struct PyPipeline {
  std::shared_ptr<const Pipeline> pipeline;
};

}  // namespace bpe_beam

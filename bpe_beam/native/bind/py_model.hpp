// A model as a Python object.
#pragma once

#include <memory>

#include "encode/word_model.hpp"

namespace bpe_beam {

/// A model, which encoders share.
struct PyModel {
  std::shared_ptr<const WordModel> model;
};

}  // namespace bpe_beam

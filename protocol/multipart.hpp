#pragma once
// Finds `model` and `stream` in a multipart/form-data body (RFC 7578) wherever they stand, without
// copying parts. Strict where two readers could disagree on the model: such bodies are not ok.
// Linear time. Pure, any thread.
#include <string>
#include <string_view>

#include "protocol/request_facts.hpp"

namespace flashgate {

struct MultipartFacts {
  bool ok = false;
  std::string why{};  // when not ok: what is wrong, a fixed text
  bool has_model = false;
  std::string model{};
  ByteRange model_range{};  // the value's bytes in the body; replacing them changes the model
  bool stream = false;
};

MultipartFacts read_multipart(std::string_view content_type, std::string_view body);

}  // namespace flashgate

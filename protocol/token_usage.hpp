#pragma once
// Token counts as a backend reported them, in one shape for all dialects: `input` includes cached
// tokens, `output` includes reasoning tokens. Plain value, any thread.
#include <cstdint>

namespace flashgate {

struct TokenUsage {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t cached = 0;
  std::int64_t reasoning = 0;
  bool present = false;
};

}  // namespace flashgate

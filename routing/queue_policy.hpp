#pragma once
// Bounds of a backend's queue: entries, bytes of held bodies, and waiting time. Plain values.
#include <cstddef>

#include "base/time.hpp"

namespace flashgate {

struct QueuePolicy {
  std::size_t entries_max = 64;
  std::size_t bytes_max = std::size_t{64} * 1024 * 1024;
  Duration wait_max = std::chrono::seconds(10);
};

}  // namespace flashgate

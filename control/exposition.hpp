#pragma once
// The metrics as Prometheus text: names, help and labels in one place (docs/metrics.md).
// Reads published counters only; any thread.
#include <string>

#include "gateway/metrics.hpp"

namespace flashgate {

std::string prometheus_text(const Metrics& metrics);

}  // namespace flashgate

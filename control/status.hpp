#pragma once
// The state of the gateway as one JSON object, for `GET /status` on the admin listener.
#include <string>

#include "gateway/metrics.hpp"

namespace flashgate {

std::string status_json(const Runtime& runtime, const Metrics& metrics);

}  // namespace flashgate

#pragma once
// One request in, the reply and its faults out: the endpoints, the key, the errors of a simulated
// backend. Pure but for the counters of Engine; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http1_head.hpp"
#include "simulator/engine.hpp"
#include "simulator/reply.hpp"

namespace flashgate {

struct Incoming {
  RequestHead head{};
  std::string body{};
  TimePoint now{};
  std::int64_t unix_seconds = 0;
};

struct Outgoing {
  Reply reply{};
  std::vector<FaultRule> faults{};
  bool counted = false;  // an API request: begin_request was called, end_request is owed
  std::uint64_t ordinal = 0;
  std::string request_id{};
};

/// Fills `out`; its `counted` is right even if this throws.
void respond(const Incoming& request, Engine& engine, Outgoing& out);

}  // namespace flashgate

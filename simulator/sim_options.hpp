#pragma once
// How a simulated backend behaves. Plain values; every field has a default.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "simulator/fault_rule.hpp"

namespace flashgate {

/// Waits are `median × spread × (1 + load_growth × other requests in flight)`.
struct Timing {
  Duration startup{};  // 503 until then
  Duration ttft = std::chrono::milliseconds(50);
  double ttft_spread = 0.1;  // sigma of a log-normal
  Duration ttft_per_1k_input_tokens = std::chrono::milliseconds(20);
  Duration inter_token = std::chrono::milliseconds(10);
  double inter_token_spread = 0.1;
  double load_growth = 0.0;
  int max_concurrency = 0;  // over it requests wait in line, as in an engine; 0: no limit
  int tokens_per_event = 1;
  bool early_headers = false;  // send the head before the first token is there
};

struct SimulatorOptions {
  std::string name = "sim";
  std::string model = "sim";
  std::uint16_t port = 0;  // 0: any free one
  std::string host = "127.0.0.1";
  Timing timing{};
  std::vector<FaultRule> faults{};
  std::uint64_t seed = 1;
  int answer_tokens = 40;
  std::string api_key{};            // if set, another bearer or x-api-key gets a 401
  bool strict_model = false;        // another model gets a 404
  std::int64_t context_length = 0;  // over it a 400 context_length_exceeded; 0: no limit
  std::size_t body_bytes_max = 64 * 1024 * 1024;
  std::size_t record = 0;  // keep so many of the last requests for recorded()
};

struct SimulatorStats {
  std::uint64_t connections = 0;
  std::uint64_t requests = 0;  // API requests read to their end
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;  // the client left before the end
  std::uint64_t broken = 0;     // we broke the connection on purpose
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;  // planned; a cancelled answer counts whole
  int in_flight = 0;                // running and waiting
  int waiting = 0;
  int in_flight_max = 0;
  std::map<int, std::uint64_t> by_status{};  // 0: no status line was sent
  std::map<std::string, std::uint64_t> by_fault{};
};

struct RecordedRequest {
  std::string head{};
  std::string body{};
};

}  // namespace flashgate

#pragma once
// `flashgate sim`: one simulated backend in the foreground until SIGINT or SIGTERM. The command's
// fields are text as typed; `sim_options_of` checks them all. Main thread only.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "simulator/sim_options.hpp"

namespace CLI {
class App;
}

namespace flashgate {

struct SimCommand {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9000;
  std::string name = "sim";
  std::string model = "sim";
  bool strict_model = false;
  std::string ttft = "50ms";
  std::string ttft_spread = "10%";
  std::string ttft_per_1k = "20ms";
  std::string inter_token = "10ms";
  std::string inter_token_spread = "10%";
  std::string load_growth = "0";
  std::string startup = "0";
  int max_concurrency = 0;
  int tokens_per_event = 1;
  bool early_headers = false;
  int answer_tokens = 40;
  std::int64_t context_length = 0;
  std::string api_key{};
  std::uint64_t seed = 1;
  std::vector<std::string> faults{};
  std::size_t record = 0;
  bool json_stats = false;   // print the counters as JSON when it ends
  bool list_faults = false;  // print the faults and leave
};

/// Adds the flags of `sim` to its subcommand.
void add_sim_options(CLI::App& app, SimCommand& command);
Result<SimulatorOptions> sim_options_of(const SimCommand& command);
/// The exit code.
int run_sim(const SimCommand& command);

}  // namespace flashgate

#include "cli/sim.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "simulator/simulator.hpp"
#include "simulator/text_values.hpp"

namespace flashgate {
namespace {

constexpr double load_growth_max = 100;

template <class T>
bool set(T& to, const std::optional<T>& from) {
  if (from) to = *from;
  return from.has_value();
}

Error bad_flag(std::string_view flag, std::string_view value, std::string_view wanted) {
  return {"bad_flag", fmt::format("{}: '{}' is not {}", flag, value, wanted)};
}

}  // namespace

void add_sim_options(CLI::App& app, SimCommand& command) {
  app.add_option("--host", command.host, "address to listen on");
  app.add_option("--port", command.port, "port to listen on, 0 for any free one");
  app.add_option("--name", command.name, "name of this backend, for on=NAME in faults");
  app.add_option("--model", command.model, "model it offers");
  app.add_flag("--strict-model", command.strict_model, "404 for any other model");
  app.add_option("--ttft", command.ttft, "median time to the first token");
  app.add_option("--ttft-spread", command.ttft_spread, "its spread (sigma of a log-normal)");
  app.add_option("--ttft-per-1k", command.ttft_per_1k, "more for every 1,000 input tokens");
  app.add_option("--inter-token", command.inter_token, "median time between tokens");
  app.add_option("--inter-token-spread", command.inter_token_spread, "its spread");
  app.add_option("--load-growth", command.load_growth,
                 "all waits grow by this share for every other request in flight");
  app.add_option("--startup", command.startup, "503 for so long after the start");
  app.add_option("--max-concurrency", command.max_concurrency,
                 "requests over it wait in line; 0: no limit");
  app.add_option("--tokens-per-event", command.tokens_per_event, "tokens in one stream event");
  app.add_flag("--early-headers", command.early_headers, "send the head before the first token");
  app.add_option("--answer-tokens", command.answer_tokens, "tokens of an answer");
  app.add_option("--context-length", command.context_length, "400 over it; 0: no limit");
  app.add_option("--api-key", command.api_key, "401 without this key");
  app.add_option("--seed", command.seed, "same seed, same behaviour");
  app.add_option("--fault", command.faults, "a fault rule, repeatable; see --list-faults");
  app.add_option("--record", command.record, "keep so many requests for GET /sim/requests");
  app.add_flag("--json-stats", command.json_stats, "print counters as JSON at the end");
  app.add_flag("--list-faults", command.list_faults, "print the faults and their arguments");
}

Result<SimulatorOptions> sim_options_of(const SimCommand& command) {
  SimulatorOptions out;
  out.name = command.name;
  out.model = command.model;
  out.host = command.host;
  out.port = command.port;
  out.seed = command.seed;
  out.api_key = command.api_key;
  out.strict_model = command.strict_model;
  out.context_length = command.context_length;
  out.answer_tokens = command.answer_tokens;
  out.record = command.record;
  Timing& timing = out.timing;
  timing.max_concurrency = command.max_concurrency;
  timing.tokens_per_event = command.tokens_per_event;
  timing.early_headers = command.early_headers;
  struct DurationFlag {
    std::string_view flag;
    const std::string& text;
    Duration& to;
  };
  const DurationFlag durations[] = {
      {"--ttft", command.ttft, timing.ttft},
      {"--ttft-per-1k", command.ttft_per_1k, timing.ttft_per_1k_input_tokens},
      {"--inter-token", command.inter_token, timing.inter_token},
      {"--startup", command.startup, timing.startup}};
  for (const DurationFlag& row : durations) {
    if (!set(row.to, read_duration(row.text))) {
      return bad_flag(row.flag, row.text, "a duration such as 0, 250us, 50ms or 1.5s");
    }
  }
  if (!set(timing.ttft_spread, read_share(command.ttft_spread))) {
    return bad_flag("--ttft-spread", command.ttft_spread, "a share such as 10% or 0.1");
  }
  if (!set(timing.inter_token_spread, read_share(command.inter_token_spread))) {
    return bad_flag("--inter-token-spread", command.inter_token_spread,
                    "a share such as 10% or 0.1");
  }
  const auto growth = read_number(command.load_growth);
  if (!set(timing.load_growth, growth) || timing.load_growth > load_growth_max) {
    return bad_flag("--load-growth", command.load_growth, "a number from 0 to 100");
  }
  if (command.answer_tokens < 0 || command.answer_tokens > 1'000'000) {
    return bad_flag("--answer-tokens", fmt::to_string(command.answer_tokens),
                    "a number from 0 to 1000000");
  }
  for (const std::string& text : command.faults) {
    const auto rules = parse_fault_rules(text);
    if (rules.has_error()) return Error{"bad_flag", "--fault: " + rules.error().message};
    out.faults.insert(out.faults.end(), rules->begin(), rules->end());
  }
  return out;
}

int run_sim(const SimCommand& command) {
  if (command.list_faults) {
    fmt::print("{}", describe_faults());
    return 0;
  }
  auto options = sim_options_of(command);
  if (options.has_error()) {
    fmt::print(stderr, "flashgate sim: {}\n", options.error().message);
    return 2;
  }
  // Blocked before any thread starts, so that only sigwait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Simulator simulator(std::move(*options));
  const Result<void> started = simulator.start();
  if (started.has_error()) {
    fmt::print(stderr, "flashgate sim: {}\n", started.error().message);
    return 1;
  }
  fmt::print(stderr, "flashgate sim: '{}' offers model '{}' at {}/v1\n", command.name,
             command.model, simulator.url());
  int signal = 0;
  sigwait(&signals, &signal);
  const SimulatorStats stats = simulator.stats();
  simulator.stop();
  if (command.json_stats) fmt::print("{}\n", stats_json(stats));
  return 0;
}

}  // namespace flashgate

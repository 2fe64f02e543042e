#pragma once
// A simulator for the length of one test, and the requests the tests send to it. One thread.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "simulator/simulator.hpp"
#include "tests/simulator/raw_client.hpp"

namespace flashgate::test {

inline constexpr std::string_view chat = "/v1/chat/completions";
inline constexpr std::string_view ask =
    R"({"model":"sim","messages":[{"role":"user","content":"hi"}]})";
inline constexpr std::string_view ask_stream =
    R"({"model":"sim","stream":true,"messages":[{"role":"user","content":"hi"}]})";

/// Answers of five tokens without any wait.
inline SimulatorOptions quick() {
  SimulatorOptions options;
  options.timing.ttft = Duration{};
  options.timing.inter_token = Duration{};
  options.timing.ttft_per_1k_input_tokens = Duration{};
  options.answer_tokens = 5;
  return options;
}

struct Running {
  Simulator simulator;
  explicit Running(SimulatorOptions options) : simulator(std::move(options)) {
    REQUIRE(simulator.start().has_value());
  }
  std::uint16_t port() const { return simulator.port(); }
};

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace flashgate::test

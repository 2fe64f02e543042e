#pragma once
// A simulated backend: speaks the OpenAI wire on a real socket with real timing and scripted faults
// (docs/simulator.md). Runs on a thread of its own; several may live in one process. All functions
// may be called from any thread; start and stop from one.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "simulator/sim_options.hpp"

namespace flashgate {

class Simulator {
 public:
  explicit Simulator(SimulatorOptions options);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Binds, listens and serves; returns once connections are accepted.
  Result<void> start();
  /// The bound port; 0 before start.
  std::uint16_t port() const;
  /// "http://127.0.0.1:9000".
  std::string url() const;
  SimulatorStats stats() const;
  std::vector<RecordedRequest> recorded() const;
  /// For requests that arrive from now on.
  void set_faults(std::vector<FaultRule> faults);
  void set_timing(Timing timing);
  /// Closes everything and joins the thread. Safe to call twice.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// One JSON object.
std::string stats_json(const SimulatorStats& stats);

}  // namespace flashgate

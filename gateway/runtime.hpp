#pragma once
// What all workers share: the configuration snapshot and the live state of its profiles. Limits,
// breakers and gates are one per process, so that a limit of 8 means 8, not 8 per thread.
// Built before the workers start; every member may be used from any thread.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "net/dialer.hpp"
#include "routing/concurrency_gate.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

/// One replica of a profile.
struct Backend {
  Backend(const ProfileConfig& profile, const Url& address);

  Url url;
  std::size_t index = 0;  // over all backends; names the pool of each worker
  DialTarget dial{};
  std::string head{};   // Host, credentials and configured headers, ready to send
  std::string query{};  // configured parameters, "a=b&c=d"
  Breaker breaker;
  std::atomic<int> in_flight{0};
  std::atomic<bool> refuses_usage{false};  // answered 400 to stream_options once
};

struct ProfileState {
  ProfileState(const ProfileConfig& profile, TimePoint now);

  /// Multiply an estimate by it; learnt from usage.
  double correction() const { return correction_factor_.load(std::memory_order_relaxed); }
  void learn(double estimated, double actual);

  const ProfileConfig& config;
  std::vector<std::unique_ptr<Backend>> backends{};
  ConcurrencyGate gate;
  RateLimiter limiter;
  std::atomic<unsigned> turn{0};  // round robin over equally loaded replicas
  std::atomic<int> in_flight{0};

 private:
  std::mutex correction_mutex_;
  EstimateCorrection correction_{};
  std::atomic<double> correction_factor_{1.0};
};

class CallLog;

struct Runtime {
  Runtime(Config checked, CallLog& call_log, TimePoint now);

  const Config config;
  CallLog& log;
  std::vector<std::unique_ptr<ProfileState>> profiles{};
  std::vector<Backend*> backends{};
  RetryBudget retry_budget;
  unsigned families = 1;
  TlsContext server_tls{};  // null: plain listener
  std::atomic<int> connections{0};
  std::atomic<int> upstream_connections{0};
  std::atomic<bool> ready{false};
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> upstream_excess_bytes{0};
  std::atomic<std::uint64_t> stale_replays{0};
  std::atomic<std::uint64_t> upstream_auth_errors{0};
};

/// Builds TLS contexts and the rest; the error names the profile and file.
Result<std::unique_ptr<Runtime>> make_runtime(Config checked, CallLog& call_log, TimePoint now);

}  // namespace flashgate

#pragma once
// One worker: a thread, its io_context, and what its sessions share without locks: timer wheel,
// resolver, idle upstream connections, scratch memory, dice. Everything here is that thread's own.
#include <array>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "gateway/metrics.hpp"
#include "gateway/runtime.hpp"
#include "net/resolver.hpp"
#include "net/timer_wheel.hpp"
#include "net/upstream_pool.hpp"
#include "protocol/padded_body.hpp"

namespace flashgate {

class Session;

class Worker {
 public:
  static constexpr std::size_t scratch_bytes = 64 * 1024;
  static constexpr std::size_t read_bytes = 16 * 1024;

  Worker(Runtime& shared, Metrics::Slot& slot);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  asio::io_context& io() { return *io_; }
  Executor executor() { return io_->get_executor(); }
  TimePoint now() const { return std::chrono::steady_clock::now(); }
  /// In [0, 1).
  double roll();
  std::string make_request_id();

  BodyBuffer take_buffer();
  void give_buffer(BodyBuffer buffer);
  Resolver& resolver() { return *resolver_; }
  UpstreamPool& pool(const Backend& backend) { return pools_[backend.index]; }

  /// Lets everything that is ready run before this coroutine goes on; no system call.
  Task<void> yield();

  /// Runs until stop(); rethrows nothing.
  void run();
  void stop() { io_->stop(); }
  /// Idle sessions close; busy ones are told when `hard`.
  void drain_sessions(bool hard);

  Runtime& runtime;
  Metrics::Slot& metrics;
  TimerWheel wheel;
  std::array<char, scratch_bytes> scratch{};
  std::unordered_set<Session*> sessions{};

 private:
  Task<void> tick();

  std::unique_ptr<asio::io_context> io_;
  std::unique_ptr<Resolver> resolver_;
  std::vector<UpstreamPool> pools_;
  std::vector<BodyBuffer> buffers_{};
  std::array<std::uint64_t, 4> dice_{};
};

/// Runs a coroutine on its own; what escapes is logged under `name` and ends only it.
void spawn(Executor executor, const char* name, Task<void> task);

}  // namespace flashgate

#pragma once
// The data plane as a whole: one listener per worker on the same port (SO_REUSEPORT), one thread
// per worker. start() binds, so that errors come before anything runs; then drain and stop.
#include <memory>
#include <thread>
#include <vector>

#include "gateway/metrics.hpp"
#include "gateway/runtime.hpp"

namespace flashgate {

class Listener;
class Worker;

class Server {
 public:
  /// `runtime` and `metrics` outlive the server. `workers` 0: one per processor.
  Server(Runtime& runtime, Metrics& metrics, unsigned workers);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Result<void> start();
  std::uint16_t port() const { return port_; }
  /// Not ready, no new connections, idle ones closed; calls go on until `grace` ends, then they
  /// are told. Blocks until all is quiet. For the thread that handles signals.
  void drain(Duration grace);

 private:
  void stop_workers();

  Runtime& runtime_;
  std::uint16_t port_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::thread> threads_;
};

}  // namespace flashgate

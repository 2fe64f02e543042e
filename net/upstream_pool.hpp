#pragma once
// Idle connections to one backend address, last in first out. Dead ones are found before use;
// what did not end cleanly is never put back. One pool per worker and backend, that worker only.
#include <memory>
#include <vector>

#include "base/time.hpp"
#include "net/connection.hpp"

namespace flashgate {

class UpstreamPool {
 public:
  static constexpr std::size_t idle_max = 256;
  static constexpr Duration idle_time = std::chrono::seconds(60);
  /// Younger than this, a connection is taken without asking the kernel.
  static constexpr Duration surely_fresh = std::chrono::milliseconds(20);

  /// Null if there is none that lives.
  std::unique_ptr<Connection> take(TimePoint now);
  /// `keep`: the backend's hint of how long (Keep-Alive: timeout), less a second; or idle_time.
  void put(std::unique_ptr<Connection> connection, TimePoint now, Duration keep = idle_time);
  /// One was found stale at use: its contemporaries are no better.
  void purge() { idle_.clear(); }
  /// Drops what has been idle too long or was closed by the peer.
  void sweep(TimePoint now);
  std::size_t size() const { return idle_.size(); }

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    TimePoint since;
    TimePoint until;
  };
  std::vector<Idle> idle_;
};

}  // namespace flashgate

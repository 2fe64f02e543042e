#pragma once
// Something to wait for on a worker: set once, by that worker; or interrupted like a connection.
// `Interruptible` is what deadlines and departures act on, whatever a call is waiting for.
#include "net/io.hpp"

namespace flashgate {

class Interruptible {
 public:
  virtual ~Interruptible() = default;
  /// Makes the wait in progress, and any later one, end with operation_aborted.
  virtual void interrupt() = 0;
};

class Event final : public Interruptible {
 public:
  explicit Event(Executor executor) : timer_(executor) {}

  void set() {
    set_ = true;
    timer_.cancel();
  }
  void interrupt() override {
    interrupted_ = true;
    timer_.cancel();
  }
  bool is_set() const { return set_; }
  bool interrupted() const { return interrupted_; }

  /// Until set or interrupted.
  Task<void> wait() {
    if (set_ || interrupted_) co_return;
    timer_.expires_at(std::chrono::steady_clock::time_point::max());
    co_await timer_.async_wait(no_throw);
  }
  /// As wait(), but no longer than until `at`.
  Task<void> wait_until(std::chrono::steady_clock::time_point at) {
    if (set_ || interrupted_) co_return;
    timer_.expires_at(at);
    co_await timer_.async_wait(no_throw);
  }

 private:
  SteadyTimer timer_;
  bool set_ = false;
  bool interrupted_ = false;
};

}  // namespace flashgate

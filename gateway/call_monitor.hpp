#pragma once
// Ends waits: at deadlines, and when the client has left. A call waits for one thing at a time;
// the monitor knows it, and interrupts it. Nothing is armed on the client's socket: a coarse tick
// asks the kernel, and tells a half-close from a departure by one urgent byte
// (docs/decisions/0002). One session, one worker.
#include "net/connection.hpp"
#include "net/timer_wheel.hpp"

namespace flashgate {

/// Why a wait ended early.
enum class Stop {
  none,
  recheck,  // nothing ended: the caller asked to be woken to look again
  connect_timeout,
  first_byte_timeout,
  idle_timeout,
  client_stalled,
  client_idle,
  request_timeout,
  queue_timeout,
  attempt_timeout,
  // These hold for the rest of the call:
  total_timeout,
  client_left,
  shutting_down,
};

class CallMonitor {
 public:
  static constexpr Duration poll_interval = std::chrono::milliseconds(100);

  CallMonitor(TimerWheel& wheel, Connection& client) : wheel_(wheel), client_(client) {}
  CallMonitor(const CallMonitor&) = delete;
  CallMonitor& operator=(const CallMonitor&) = delete;

  /// From now on every watch ends at `total` too, and asks whether the client is still there.
  void begin_call(TimePoint total, bool probe_half_close);
  void set_total(TimePoint total) { total_ = total; }
  void end_call();

  /// `target` is interrupted at `at` with `reason`, or earlier with a reason of the whole call.
  void watch(Interruptible& target, TimePoint at, Stop reason, TimePoint now);
  /// As above; what an earlier watch did to the connection is forgotten first.
  void watch(Connection& target, TimePoint at, Stop reason, TimePoint now);
  void unwatch() {
    timer_.disarm();
    target_ = nullptr;
  }

  Stop stop() const { return stop_; }
  bool is_over() const { return stop_ >= Stop::total_timeout; }
  /// Ends the call, whatever it waits for.
  void end_now(Stop reason);
  TimePoint total() const { return total_; }

 private:
  void arm(TimePoint now);
  void fired();
  bool client_has_left();

  TimerWheel& wheel_;
  Connection& client_;
  TimerWheel::Entry timer_;
  Interruptible* target_ = nullptr;
  TimePoint at_{};
  TimePoint total_ = TimePoint::max();
  TimePoint poll_at_ = TimePoint::max();
  Stop reason_ = Stop::none;
  Stop stop_ = Stop::none;
  bool in_call_ = false;
  bool probe_half_close_ = false;
  bool probed_ = false;
};

}  // namespace flashgate

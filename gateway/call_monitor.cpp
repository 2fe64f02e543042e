#include "gateway/call_monitor.hpp"

#include <algorithm>

namespace flashgate {

void CallMonitor::begin_call(TimePoint total, bool probe_half_close) {
  total_ = total;
  probe_half_close_ = probe_half_close;
  in_call_ = true;
  stop_ = Stop::none;
}

void CallMonitor::end_call() {
  unwatch();
  in_call_ = false;
  total_ = TimePoint::max();
  stop_ = Stop::none;
}

void CallMonitor::watch(Connection& target, TimePoint at, Stop reason, TimePoint now) {
  target.clear_interrupt();
  watch(static_cast<Interruptible&>(target), at, reason, now);
}

void CallMonitor::watch(Interruptible& target, TimePoint at, Stop reason, TimePoint now) {
  if (is_over()) {
    target.interrupt();
    return;
  }
  stop_ = Stop::none;
  target_ = &target;
  at_ = at;
  reason_ = reason;
  poll_at_ = in_call_ ? now + poll_interval : TimePoint::max();
  arm(now);
}

void CallMonitor::arm(TimePoint now) {
  const TimePoint next = std::min({at_, total_, poll_at_});
  timer_.arm(
      wheel_, std::max(next, now), [](void* self) { static_cast<CallMonitor*>(self)->fired(); },
      this);
}

void CallMonitor::end_now(Stop reason) {
  if (is_over()) return;
  stop_ = reason;
  timer_.disarm();
  if (target_ != nullptr) target_->interrupt();
}

void CallMonitor::fired() {
  const TimePoint now = std::chrono::steady_clock::now();
  if (now >= total_) {
    end_now(Stop::total_timeout);
  } else if (in_call_ && client_has_left()) {
    end_now(Stop::client_left);
  } else if (now >= at_) {
    stop_ = reason_;
    if (target_ != nullptr) target_->interrupt();
  } else {
    poll_at_ = now + poll_interval;
    arm(now);
  }
}

bool CallMonitor::client_has_left() {
  switch (client_.peer()) {
    case Connection::Peer::open:
      return false;
    case Connection::Peer::gone:
      return true;
    case Connection::Peer::half_closed:
      break;
  }
  if (!probe_half_close_) return true;
  if (!probed_) client_.probe_peer();
  probed_ = true;
  return false;
}

}  // namespace flashgate

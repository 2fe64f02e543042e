#include "net/timer_wheel.hpp"

#include <algorithm>

namespace flashgate {

TimerWheel::TimerWheel(TimePoint now) : start_(now) {
  for (Entry& head : heads_) head.prev_ = head.next_ = &head;
}

void TimerWheel::Entry::arm(TimerWheel& wheel, TimePoint at, Callback callback, void* context) {
  disarm();
  wheel_ = &wheel;
  at_ = at;
  callback_ = callback;
  context_ = context;
  wheel.link(*this, wheel.slot_of(at));
}

void TimerWheel::Entry::disarm() {
  if (wheel_ == nullptr) return;
  prev_->next_ = next_;
  next_->prev_ = prev_;
  prev_ = next_ = nullptr;
  --wheel_->size_;
  wheel_ = nullptr;
}

/// The slot whose visit comes at or after `at`; what lies beyond the horizon is re-filed on the
/// way.
std::size_t TimerWheel::slot_of(TimePoint at) const {
  const auto ticks = (at - start_ + tick - Duration(1)) / tick;
  const auto wanted = static_cast<std::size_t>(std::max<decltype(ticks)>(ticks, 0));
  const std::size_t soonest = current_ + 1;
  return std::clamp(wanted, soonest, current_ + slots - 1) % slots;
}

void TimerWheel::link(Entry& entry, std::size_t slot) {
  Entry& head = heads_[slot];
  entry.prev_ = head.prev_;
  entry.next_ = &head;
  head.prev_->next_ = &entry;
  head.prev_ = &entry;
  ++size_;
}

void TimerWheel::visit_slot(std::size_t slot, TimePoint now) {
  Entry& head = heads_[slot];
  Entry due;  // entries move to a list of their own, so that callbacks may arm into this slot
  if (head.next_ == &head) return;
  due.next_ = head.next_;
  due.prev_ = head.prev_;
  due.next_->prev_ = due.prev_->next_ = &due;
  head.prev_ = head.next_ = &head;
  while (due.next_ != &due) {
    Entry& entry = *due.next_;
    const TimePoint at = entry.at_;
    const Entry::Callback callback = entry.callback_;
    void* const context = entry.context_;
    entry.disarm();
    if (at > now)
      entry.arm(*this, at, callback, context);
    else
      callback(context);
  }
  due.prev_ = due.next_ = nullptr;
}

void TimerWheel::advance(TimePoint now) {
  const auto target = static_cast<std::size_t>(std::max<Duration::rep>((now - start_) / tick, 0));
  if (size_ == 0) {
    current_ = std::max(current_, target);
    return;
  }
  for (std::size_t visited = 0; current_ < target && visited < slots; ++visited)
    visit_slot(++current_ % slots, now);
  current_ = std::max(current_, target);
}

}  // namespace flashgate

#pragma once
// Deadlines without one timer per operation: entries in coarse slots, looked at on a tick.
// Arming and disarming are O(1) and make no system call. One wheel per worker, that worker only.
#include <array>
#include <cstddef>

#include "base/time.hpp"

namespace flashgate {

class TimerWheel {
 public:
  static constexpr Duration tick = std::chrono::milliseconds(20);

  /// Fires once, at or up to a tick after `at`. Not copied or moved while armed.
  class Entry {
   public:
    using Callback = void (*)(void*);
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { disarm(); }
    void arm(TimerWheel& wheel, TimePoint at, Callback callback, void* context);
    void disarm();
    bool armed() const { return prev_ != nullptr; }

   private:
    friend class TimerWheel;
    Entry* prev_ = nullptr;
    Entry* next_ = nullptr;
    TimerWheel* wheel_ = nullptr;
    TimePoint at_{};
    Callback callback_ = nullptr;
    void* context_ = nullptr;
  };

  explicit TimerWheel(TimePoint now);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Fires what is due. Callbacks may arm and disarm any entry.
  void advance(TimePoint now);
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t slots = 512;
  std::size_t slot_of(TimePoint at) const;
  void link(Entry& entry, std::size_t slot);
  void visit_slot(std::size_t slot, TimePoint now);

  std::array<Entry, slots> heads_{};
  TimePoint start_;
  std::size_t current_ = 0;  // ticks visited since start_
  std::size_t size_ = 0;
};

}  // namespace flashgate

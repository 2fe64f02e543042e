#pragma once
// The state that the connections of one simulator share: options, counters, the line of requests
// that wait for a slot. The line belongs to the simulator's thread; what `mutex` guards is open to
// all.
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "simulator/sim_options.hpp"

namespace flashgate {

/// A request in line; the session that owns it is woken by `wake`.
class SlotWaiter {
 public:
  virtual void wake() = 0;
  bool granted = false;

 protected:
  ~SlotWaiter() = default;
};

class Engine {
 public:
  using Options = std::shared_ptr<const SimulatorOptions>;

  explicit Engine(SimulatorOptions options)
      : options_(std::make_shared<const SimulatorOptions>(std::move(options))) {}

  /// A snapshot: faults and timing may change at any moment.
  Options options() const;
  void set_faults(std::vector<FaultRule> faults);
  void set_timing(Timing timing);
  void set_started(TimePoint now);
  bool warm(TimePoint now) const;

  std::uint64_t count_connection();
  /// The ordinal of this request, from 1.
  std::uint64_t begin_request();
  /// How often this very body has been seen, this time included.
  std::uint64_t count_attempt(std::string_view body);
  void record(const std::string& head, const std::string& body);
  void count_answer(int status, const std::vector<FaultRule>& faults, std::int64_t input_tokens,
                    std::int64_t output_tokens);
  enum class End { completed, cancelled, broken };
  void end_request(End end);

  /// True: go ahead. False: in line, `waiter` is woken with granted set.
  bool take_slot(SlotWaiter& waiter);
  void leave_line(SlotWaiter& waiter);
  void release_slot();

  /// Requests beside the asking one that make it slower.
  int others_running() const { return running_ > 0 ? running_ - 1 : 0; }
  SimulatorStats stats() const;
  std::vector<RecordedRequest> recorded() const;
  /// Metrics under the names that vLLM uses.
  std::string metrics() const;

 private:
  mutable std::mutex mutex_;
  Options options_;
  TimePoint started_{};
  SimulatorStats stats_{};
  std::deque<RecordedRequest> recorded_{};
  std::unordered_map<std::uint64_t, std::uint64_t> attempts_{};
  std::deque<SlotWaiter*> line_{};
  int running_ = 0;
};

}  // namespace flashgate

#pragma once
// Circuit breaker of one backend x model. Closed while traffic flows; opens on failures in a row or
// on a failure ratio; after a jittered cool-down exactly one probe, leased, decides. Results carry
// the epoch they were admitted in, and late ones don't count. Any thread; short critical sections.
#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/time.hpp"

namespace flashgate {

struct BreakerPolicy {
  int consecutive_failures = 5;  // 0: this trigger is off
  double failure_ratio = 0.5;    // of the samples in `window`; 0: this trigger is off
  int min_samples = 20;
  Duration cooldown = std::chrono::seconds(10);  // doubles on each failed probe
  Duration cooldown_max = std::chrono::minutes(2);
  Duration window = std::chrono::seconds(10);
  Duration probe_lease = std::chrono::seconds(60);  // a probe that doesn't return frees its place
  Duration ramp = std::chrono::seconds(10);         // ramp_share() climbs to 1 after a recovery
};

/// Neutral: says nothing about the backend (4xx, our own deadline, the client left, 429).
enum class AttemptVerdict { success, failure, neutral };

class Breaker {
 public:
  explicit Breaker(BreakerPolicy policy) : policy_(policy) {}

  enum class State { closed, open, half_open };
  struct Permit {
    bool granted = false;
    std::uint64_t epoch = 0;
    bool probe = false;
    Duration retry_after{};  // when refused: the shortest time until it may be granted
  };

  /// Every granted permit must be released once. `roll` in [0, 1).
  Permit acquire(TimePoint now, double roll = 0);
  /// `roll` jitters the cool-down that a failure may start.
  void release(const Permit& permit, AttemptVerdict verdict, TimePoint now, double roll = 0);
  /// The backend asked for a pause (429, 503 with a hint): no traffic until then, but no failure.
  void cool_down(TimePoint until);

  State state(TimePoint now) const;
  /// True if acquire() would be granted now. A hint only: another thread may be faster.
  bool allows(TimePoint now) const;
  /// How long until allows() can be true; zero if it is.
  Duration retry_after(TimePoint now) const;
  /// 1 in normal times; after a recovery it climbs from 0.1: weight for balancing, never a refusal.
  double ramp_share(TimePoint now) const;
  /// How often it has opened.
  std::uint64_t openings() const;

 private:
  static constexpr int slice_count = 10;
  struct Slice {
    std::int64_t index = -1;
    int failures = 0;
    int samples = 0;
  };
  State state_locked(TimePoint now) const;
  Duration retry_after_locked(TimePoint now) const;
  void open(TimePoint now, double roll);
  void close(TimePoint now);
  void count(bool failed, TimePoint now);
  bool ratio_reached(TimePoint now) const;
  std::int64_t slice_index(TimePoint now) const;

  const BreakerPolicy policy_;
  mutable std::mutex mutex_;
  bool closed_ = true;
  bool probing_ = false;
  bool recovered_ = false;
  std::uint64_t epoch_ = 1;
  std::uint64_t openings_ = 0;
  int failures_in_row_ = 0;
  int failed_probes_ = 0;
  TimePoint open_until_{};
  TimePoint lease_until_{};
  TimePoint closed_at_{};
  TimePoint pause_until_ = TimePoint::min();
  std::array<Slice, slice_count> slices_{};
};

std::string_view name(Breaker::State state);

}  // namespace flashgate

#include "routing/breaker.hpp"

#include <algorithm>

namespace flashgate {
namespace {

constexpr double jitter_max = 0.2;  // a cool-down lasts 1 to 1.2 times its length
constexpr double ramp_share_min = 0.1;
constexpr int doublings_max = 16;

double unit(double roll) {
  return roll >= 0 && roll < 1 ? roll : 0;
}

Duration scaled(Duration d, double factor) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(d.count()) * factor));
}

}  // namespace

Breaker::Permit Breaker::acquire(TimePoint now, double) {
  const std::lock_guard lock(mutex_);
  Permit permit;
  permit.retry_after = retry_after_locked(now);
  if (permit.retry_after > Duration::zero()) return permit;
  permit.granted = true;
  if (!closed_) {
    // A new epoch for each probe, so that one whose lease ran out can't decide any more.
    ++epoch_;
    probing_ = true;
    lease_until_ = now + policy_.probe_lease;
    permit.probe = true;
  }
  permit.epoch = epoch_;
  return permit;
}

void Breaker::release(const Permit& permit, AttemptVerdict verdict, TimePoint now, double roll) {
  const std::lock_guard lock(mutex_);
  if (!permit.granted || permit.epoch != epoch_) return;
  if (!closed_) {
    if (!permit.probe || !probing_) return;
    probing_ = false;
    if (verdict == AttemptVerdict::success) close(now);
    if (verdict == AttemptVerdict::failure) {
      failed_probes_ = std::min(failed_probes_ + 1, doublings_max);
      open(now, roll);
    }
    return;
  }
  if (verdict == AttemptVerdict::neutral) return;
  const bool failed = verdict == AttemptVerdict::failure;
  failures_in_row_ = failed ? failures_in_row_ + 1 : 0;
  count(failed, now);
  if (!failed) return;
  const bool in_row =
      policy_.consecutive_failures > 0 && failures_in_row_ >= policy_.consecutive_failures;
  if (in_row || ratio_reached(now)) open(now, roll);
}

void Breaker::cool_down(TimePoint until) {
  const std::lock_guard lock(mutex_);
  pause_until_ = std::max(pause_until_, until);
}

void Breaker::open(TimePoint now, double roll) {
  closed_ = false;
  probing_ = false;
  ++epoch_;
  ++openings_;
  Duration wait = policy_.cooldown;
  const Duration longest = std::max(policy_.cooldown, policy_.cooldown_max);
  for (int i = 0; i < failed_probes_ && wait < longest; ++i) wait = std::min(wait * 2, longest);
  open_until_ = now + wait + scaled(wait, jitter_max * unit(roll));
}

void Breaker::close(TimePoint now) {
  closed_ = true;
  recovered_ = true;
  ++epoch_;
  failures_in_row_ = 0;
  failed_probes_ = 0;
  closed_at_ = now;
  slices_.fill(Slice{});
}

std::int64_t Breaker::slice_index(TimePoint now) const {
  const Duration::rep length = std::max<Duration::rep>(1, policy_.window.count() / slice_count);
  return now.time_since_epoch().count() / length;
}

void Breaker::count(bool failed, TimePoint now) {
  const std::int64_t index = std::max<std::int64_t>(0, slice_index(now));
  Slice& slice = slices_[static_cast<std::size_t>(index % slice_count)];
  if (slice.index != index) slice = Slice{index, 0, 0};
  ++slice.samples;
  if (failed) ++slice.failures;
}

bool Breaker::ratio_reached(TimePoint now) const {
  if (policy_.failure_ratio <= 0) return false;
  const std::int64_t oldest = slice_index(now) - slice_count;
  int failures = 0;
  int samples = 0;
  for (const Slice& slice : slices_) {
    if (slice.index <= oldest) continue;
    failures += slice.failures;
    samples += slice.samples;
  }
  return samples > 0 && samples >= policy_.min_samples &&
         static_cast<double>(failures) >= policy_.failure_ratio * samples;
}

Breaker::State Breaker::state_locked(TimePoint now) const {
  if (closed_) return State::closed;
  return now < open_until_ ? State::open : State::half_open;
}

Duration Breaker::retry_after_locked(TimePoint now) const {
  TimePoint free_at = pause_until_;
  if (!closed_) free_at = std::max(free_at, open_until_);
  if (!closed_ && probing_) free_at = std::max(free_at, lease_until_);
  return free_at > now ? free_at - now : Duration::zero();
}

Breaker::State Breaker::state(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return state_locked(now);
}

bool Breaker::allows(TimePoint now) const {
  return retry_after(now) == Duration::zero();
}

Duration Breaker::retry_after(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return retry_after_locked(now);
}

double Breaker::ramp_share(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  if (!closed_) return 0;
  if (!recovered_ || policy_.ramp <= Duration::zero() || now >= closed_at_ + policy_.ramp) return 1;
  const double part =
      std::chrono::duration<double>(now - closed_at_) / std::chrono::duration<double>(policy_.ramp);
  return std::clamp(part, ramp_share_min, 1.0);
}

std::uint64_t Breaker::openings() const {
  const std::lock_guard lock(mutex_);
  return openings_;
}

std::string_view name(Breaker::State state) {
  switch (state) {
    case Breaker::State::closed:
      return "closed";
    case Breaker::State::open:
      return "open";
    case Breaker::State::half_open:
      return "half_open";
  }
  return "closed";
}

}  // namespace flashgate

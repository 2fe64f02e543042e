#include "routing/token_bucket.hpp"

#include <algorithm>
#include <cmath>

namespace flashgate {
namespace {

// Sums of doubles drift; without this, waiting exactly as long as we said could fall short.
constexpr double rounding_slack = 1e-6;
constexpr double seconds_per_minute = 60;

double sane(double n) {
  return std::isfinite(n) && n > 0 ? n : 0;
}

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

double request_capacity(const RateLimitPolicy& policy) {
  if (sane(policy.requests_per_minute) == 0) return 0;
  if (sane(policy.burst_requests) > 0) return std::max(1.0, policy.burst_requests);
  return std::max(1.0, policy.requests_per_minute / seconds_per_minute);
}

}  // namespace

TokenBucket::TokenBucket(double capacity, double refill_per_second, TimePoint now)
    : capacity_(sane(capacity)),
      refill_per_second_(sane(refill_per_second)),
      level_(capacity_),
      at_(now) {}

double TokenBucket::available(TimePoint now) const {
  // Threads read the clock before they get here: `now` may be a little in the past.
  if (now <= at_) return level_;
  return std::min(capacity_, level_ + seconds(now - at_) * refill_per_second_);
}

void TokenBucket::refill(TimePoint now) {
  if (now <= at_) return;
  level_ = available(now);
  at_ = now;
}

bool TokenBucket::try_take(double n, TimePoint now) {
  refill(now);
  const double wanted = sane(n);
  if (wanted > level_ + rounding_slack) return false;
  level_ -= wanted;
  return true;
}

void TokenBucket::take(double n, TimePoint now) {
  refill(now);
  level_ = std::max(-capacity_, level_ - sane(n));
}

void TokenBucket::give_back(double n, TimePoint now) {
  refill(now);
  level_ = std::min(capacity_, level_ + sane(n));
}

Duration TokenBucket::time_until(double n, TimePoint now) const {
  const double wanted = sane(n);
  const double missing = wanted - available(now);
  if (missing <= 0) return Duration::zero();
  if (wanted > capacity_ + rounding_slack || refill_per_second_ <= 0) return Duration::max();
  const double nanoseconds = std::ceil(missing / refill_per_second_ * 1e9);
  if (nanoseconds >= 9e18) return Duration::max();
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

void TokenBucket::reshape(double capacity, double refill_per_second, TimePoint now) {
  refill(now);
  const double share = capacity_ > 0 ? level_ / capacity_ : 1;
  capacity_ = sane(capacity);
  refill_per_second_ = sane(refill_per_second);
  level_ = capacity_ * share;
  at_ = std::max(at_, now);
}

RateLimiter::RateLimiter(RateLimitPolicy policy, TimePoint now)
    : policy_(policy),
      requests_(request_capacity(policy), sane(policy.requests_per_minute) / seconds_per_minute,
                now),
      tokens_(sane(policy.tokens_per_minute), sane(policy.tokens_per_minute) / seconds_per_minute,
              now) {}

RateLimiter::Admission RateLimiter::reserve(double input_tokens, double output_tokens,
                                            TimePoint now) {
  const std::lock_guard lock(mutex_);
  const bool limits_requests = requests_.capacity() > 0;
  const bool limits_tokens = tokens_.capacity() > 0;
  const double input = sane(input_tokens);
  Admission out;
  if (limits_tokens && input > tokens_.capacity()) {
    out.limit = RateLimitKind::tokens;
    out.never_fits = true;
    out.wait = Duration::max();
    return out;
  }
  const Duration for_requests = limits_requests ? requests_.time_until(1, now) : Duration::zero();
  const Duration for_tokens = limits_tokens ? tokens_.time_until(input, now) : Duration::zero();
  if (for_requests > Duration::zero() || for_tokens > Duration::zero()) {
    out.limit = for_tokens > for_requests ? RateLimitKind::tokens : RateLimitKind::requests;
    out.wait = std::max(for_requests, for_tokens);
    return out;
  }
  out.admitted = true;
  out.reservation.open = true;
  if (limits_requests) requests_.take(1, now);
  if (limits_tokens) {
    const double left = std::max(0.0, tokens_.available(now) - input);
    out.reservation.tokens = input + std::min(sane(output_tokens), left);
    tokens_.take(out.reservation.tokens, now);
  }
  return out;
}

void RateLimiter::settle(Reservation& reservation, double actual_tokens, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!reservation.open) return;
  reservation.open = false;
  const double difference = reservation.tokens - sane(actual_tokens);
  if (difference >= 0) {
    tokens_.give_back(difference, now);
  } else {
    tokens_.take(-difference, now);
  }
}

void RateLimiter::settle(Reservation&& reservation, double actual_tokens, TimePoint now) {
  settle(reservation, actual_tokens, now);
}

void RateLimiter::refund(Reservation& reservation, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!reservation.open) return;
  reservation.open = false;
  tokens_.give_back(reservation.tokens, now);
  requests_.give_back(1, now);
}

void RateLimiter::refund(Reservation&& reservation, TimePoint now) {
  refund(reservation, now);
}

RateLimiter::Snapshot RateLimiter::snapshot(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  const auto meter = [now](const TokenBucket& bucket, double per_minute) {
    Meter out;
    if (bucket.capacity() <= 0) return out;
    out.limit = per_minute;
    out.remaining = std::max(0.0, std::floor(bucket.available(now) + rounding_slack));
    out.reset = bucket.time_until(bucket.capacity(), now);
    return out;
  };
  return {meter(requests_, policy_.requests_per_minute), meter(tokens_, policy_.tokens_per_minute)};
}

void RateLimiter::set_policy(RateLimitPolicy policy, TimePoint now) {
  const std::lock_guard lock(mutex_);
  policy_ = policy;
  requests_.reshape(request_capacity(policy), sane(policy.requests_per_minute) / seconds_per_minute,
                    now);
  tokens_.reshape(sane(policy.tokens_per_minute),
                  sane(policy.tokens_per_minute) / seconds_per_minute, now);
}

bool RateLimiter::limits_anything() const {
  const std::lock_guard lock(mutex_);
  return requests_.capacity() > 0 || tokens_.capacity() > 0;
}

}  // namespace flashgate

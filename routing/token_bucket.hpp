#pragma once
// Token buckets. TokenBucket is a plain value: monotonic, keeps fractions, never holds more than
// its capacity. RateLimiter guards a requests and a tokens bucket together: one atomic reserve,
// settled from the real usage or refunded, once. RateLimiter may be called from any thread.
#include <mutex>

#include "base/time.hpp"

namespace flashgate {

struct RateLimitPolicy {
  double requests_per_minute = 0;  // 0: no limit
  double tokens_per_minute = 0;    // 0: no limit; the bucket holds one minute
  double burst_requests = 0;       // 0: one second's worth, at least 1
};

class TokenBucket {
 public:
  TokenBucket() = default;
  /// Starts full. Nonsense (negative, not finite) counts as 0.
  TokenBucket(double capacity, double refill_per_second, TimePoint now);

  bool try_take(double n, TimePoint now);
  /// Takes without asking: a debt, never deeper than one capacity, so that nobody is locked out.
  void take(double n, TimePoint now);
  void give_back(double n, TimePoint now);
  double available(TimePoint now) const;
  /// How long until `try_take(n)` would succeed; Duration::max() if it never can.
  Duration time_until(double n, TimePoint now) const;
  double capacity() const { return capacity_; }
  /// New limits; the share that was used stays used.
  void reshape(double capacity, double refill_per_second, TimePoint now);

 private:
  void refill(TimePoint now);

  double capacity_ = 0;
  double refill_per_second_ = 0;
  double level_ = 0;
  TimePoint at_{};
};

enum class RateLimitKind { none, requests, tokens };

class RateLimiter {
 public:
  explicit RateLimiter(RateLimitPolicy policy, TimePoint now = {});

  struct Reservation {
    double tokens = 0;
    bool open = false;  // false: nothing to give back, or already settled
  };
  struct Admission {
    bool admitted = false;
    Reservation reservation{};
    RateLimitKind limit = RateLimitKind::none;  // which one refused
    Duration wait{};                            // until it would be admitted; when refused
    bool never_fits = false;                    // the input alone is over a full bucket: a 400
    explicit operator bool() const { return admitted; }
  };
  /// `output_tokens` is a wish: no more is reserved for it than the bucket holds now.
  Admission reserve(double input_tokens, double output_tokens, TimePoint now);
  Admission reserve(double tokens, TimePoint now) { return reserve(tokens, 0, now); }

  /// The first of settle or refund counts, a second one does nothing.
  void settle(Reservation& reservation, double actual_tokens, TimePoint now);
  void settle(Reservation&& reservation, double actual_tokens, TimePoint now);
  /// Gives back the tokens and the request: for work that never reached a backend or failed there.
  void refund(Reservation& reservation, TimePoint now);
  void refund(Reservation&& reservation, TimePoint now);

  struct Meter {
    double limit = 0;  // per minute; 0: not limited
    double remaining = 0;
    Duration reset{};  // until full
  };
  struct Snapshot {
    Meter requests{};
    Meter tokens{};
  };
  Snapshot snapshot(TimePoint now) const;
  void set_policy(RateLimitPolicy policy, TimePoint now);
  bool limits_anything() const;

 private:
  mutable std::mutex mutex_;
  RateLimitPolicy policy_;
  TokenBucket requests_;
  TokenBucket tokens_;
};

}  // namespace flashgate

#pragma once
// How often and how long to wait between attempts: full-jitter backoff, Retry-After as a floor, and
// a budget that keeps retries a fixed share of the traffic, so that an outage is not multiplied.
// Functions are pure; RetryBudget may be called from any thread.
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "protocol/http1_head.hpp"

namespace flashgate {

struct RetryPolicy {
  int attempts = 3;  // in all, every candidate included; 1: no retry
  Duration backoff = std::chrono::milliseconds(200);
  Duration backoff_max = std::chrono::seconds(8);
  double budget = 0.2;  // extra attempts / requests of the last 10 s; 0: none
};

class RetryBudget {
 public:
  static constexpr int window_seconds = 10;
  static constexpr int extra_min = 10;  // never fewer per window, so that quiet services can retry

  explicit RetryBudget(double budget = 0.2) : budget_(budget) {}
  /// Once per client request, before its first attempt.
  void count_request(TimePoint now);
  /// Once before each further attempt, fallbacks included. False: answer with the error you have.
  bool try_spend(TimePoint now);
  void set_budget(double budget);

 private:
  struct Second {
    std::int64_t index = -1;
    std::int64_t requests = 0;
    std::int64_t extra = 0;
  };
  Second& second(TimePoint now);

  std::mutex mutex_;
  double budget_;
  std::int64_t newest_ = INT64_MIN;
  std::array<Second, window_seconds> seconds_{};
};

/// Wait before attempt `attempt + 1` (so 1 after the first): roll × min(max, backoff ×
/// 2^(attempt-1)).
Duration backoff_delay(const RetryPolicy& policy, int attempt, double roll);

inline constexpr Duration retry_after_max = std::chrono::hours(1);
/// Seconds (a fraction is taken too), an HTTP date (RFC 9110 §5.6.7), or milliseconds in the
/// second; a valid retry-after-ms wins. Past: zero. Too long: retry_after_max. Garbage: nothing.
std::optional<Duration> parse_retry_after(std::string_view retry_after,
                                          std::string_view retry_after_ms, WallTime now);
/// From the fields of an answer; of several the longest valid one.
std::optional<Duration> parse_retry_after(const std::vector<HeaderField>& fields, WallTime now);
std::optional<WallTime> parse_http_date(std::string_view text, WallTime now);

/// Duration to wait before the next attempt: the hint is a floor, never a short cut.
inline Duration retry_delay(Duration own_backoff, std::optional<Duration> hint) {
  return hint && *hint > own_backoff ? *hint : own_backoff;
}

}  // namespace flashgate

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

#include "routing/token_bucket.hpp"

using namespace flashgate;
using namespace std::chrono_literals;

namespace {
const TimePoint start{1000s};

RateLimitPolicy tokens_only(double per_minute) {
  RateLimitPolicy policy;
  policy.tokens_per_minute = per_minute;
  return policy;
}
}  // namespace

TEST_CASE("without a policy everything is admitted") {
  RateLimiter limiter(RateLimitPolicy{}, start);
  CHECK_FALSE(limiter.limits_anything());
  for (int i = 0; i < 1000; ++i) REQUIRE(limiter.reserve(1e12, start));
  CHECK(limiter.snapshot(start).requests.limit == 0);
}

TEST_CASE("five requests of the whole limit at once: one is admitted") {
  RateLimiter limiter(tokens_only(100), start);
  std::barrier barrier(5);
  std::atomic<int> admitted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      barrier.arrive_and_wait();
      if (limiter.reserve(100, start)) ++admitted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(admitted == 1);
}

TEST_CASE("many threads never get more than the bucket holds") {
  RateLimitPolicy policy = tokens_only(10'000);
  policy.requests_per_minute = 6000;
  policy.burst_requests = 150;
  RateLimiter limiter(policy, start);
  std::barrier barrier(8);
  std::atomic<int> admitted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      barrier.arrive_and_wait();
      for (int i = 0; i < 100; ++i) {
        RateLimiter::Admission admission = limiter.reserve(100, start);
        if (!admission) continue;
        ++admitted;
        limiter.settle(admission.reservation, 100, start);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(admitted == 100);
  CHECK(limiter.snapshot(start).tokens.remaining == 0);
  CHECK(limiter.snapshot(start).requests.remaining == 50);
}

TEST_CASE("a refusal takes nothing from either bucket") {
  RateLimitPolicy policy = tokens_only(1000);
  policy.requests_per_minute = 60;
  policy.burst_requests = 2;
  RateLimiter limiter(policy, start);
  REQUIRE(limiter.reserve(900, start));
  const auto refused = limiter.reserve(500, start);
  CHECK_FALSE(refused);
  CHECK(refused.limit == RateLimitKind::tokens);
  CHECK_FALSE(refused.never_fits);
  CHECK(refused.wait == 24s);  // 400 missing at 1000 per minute
  CHECK(limiter.snapshot(start).requests.remaining == 1);
  REQUIRE(limiter.reserve(100, start));
  const auto no_request_left = limiter.reserve(0, start);
  CHECK(no_request_left.limit == RateLimitKind::requests);
  CHECK(no_request_left.wait == 1s);
  CHECK(limiter.reserve(0, start + no_request_left.wait));
}

TEST_CASE("an output wish is cut to what is left, and an input that never fits is told so") {
  RateLimiter limiter(tokens_only(100), start);
  const auto first = limiter.reserve(60, 1024, start);
  REQUIRE(first);
  CHECK(first.reservation.tokens == Approx(100));
  const auto never = limiter.reserve(101, 0, start + 1h);
  CHECK_FALSE(never);
  CHECK(never.never_fits);
}

TEST_CASE("each outcome leaves the bucket at limit minus actual, and counts once") {
  struct Row {
    const char* what;
    double actual;  // negative: refund
    double left;
  };
  for (const Row& row :
       {Row{"failed", -1, 1300}, Row{"used less", 50, 1250}, Row{"used all", 1000, 300},
        Row{"used more", 1200, 100}, Row{"used nothing", 0, 1300}}) {
    INFO(row.what);
    RateLimiter limiter(tokens_only(2000), start);
    auto admission = limiter.reserve(1000, start);
    REQUIRE(admission);
    REQUIRE(limiter.reserve(700, start));  // somebody else's, so that a full bucket hides nothing
    for (int i = 0; i < 2; ++i) {
      if (row.actual < 0) {
        limiter.refund(admission.reservation, start);
      } else {
        limiter.settle(admission.reservation, row.actual, start);
      }
    }
    limiter.refund(admission.reservation, start);
    CHECK(limiter.snapshot(start).tokens.remaining == row.left);
  }
}

TEST_CASE("a refund gives the request back too, a settlement doesn't") {
  RateLimitPolicy policy;
  policy.requests_per_minute = 60;
  RateLimiter limiter(policy, start);
  auto first = limiter.reserve(0, start);
  REQUIRE(first);
  REQUIRE_FALSE(limiter.reserve(0, start));
  limiter.refund(first.reservation, start);
  auto second = limiter.reserve(0, start);
  REQUIRE(second);
  limiter.settle(second.reservation, 10, start);
  CHECK_FALSE(limiter.reserve(0, start));
}

TEST_CASE("the meters say limit, remaining, and when it is full again") {
  RateLimitPolicy policy = tokens_only(6000);
  policy.requests_per_minute = 600;
  RateLimiter limiter(policy, start);
  REQUIRE(limiter.reserve(1500, start));
  const auto shot = limiter.snapshot(start);
  CHECK(shot.requests.limit == 600);
  CHECK(shot.requests.remaining == 9);  // burst 0: one second's worth
  CHECK(shot.requests.reset == 100ms);
  CHECK(shot.tokens.limit == 6000);
  CHECK(shot.tokens.remaining == 4500);
  CHECK(shot.tokens.reset == 15s);
}

TEST_CASE("a reservation outlives a change and the end of the limit") {
  RateLimiter limiter(tokens_only(1000), start);
  auto admission = limiter.reserve(1000, start);
  REQUIRE(admission);
  limiter.set_policy(RateLimitPolicy{}, start);
  CHECK(limiter.reserve(1e9, start));
  limiter.set_policy(tokens_only(500), start);
  limiter.refund(admission.reservation, start);
  const double remaining = limiter.snapshot(start).tokens.remaining;
  CHECK(remaining <= 500);
  CHECK(remaining >= 0);
}

TEST_CASE("over any random history the admitted never pass burst plus refill") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 dice(seed);
    const double per_minute = 60.0 * std::uniform_int_distribution<>(1, 200)(dice);
    RateLimiter limiter(tokens_only(per_minute), start);
    TimePoint now = start;
    double used = 0;
    for (int i = 0; i < 500; ++i) {
      now += std::chrono::milliseconds(std::uniform_int_distribution<>(0, 400)(dice));
      const double wish = std::uniform_int_distribution<>(1, 300)(dice);
      auto admission = limiter.reserve(wish, now);
      if (!admission) continue;
      const bool fails = dice() % 4 == 0;
      if (fails) {
        limiter.refund(admission.reservation, now);
      } else {
        limiter.settle(admission.reservation, wish, now);
        used += wish;
      }
    }
    const double seconds = std::chrono::duration<double>(now - start).count();
    CHECK(used <= per_minute + per_minute / 60 * seconds + 1);
  }
}

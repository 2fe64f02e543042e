#include "routing/token_bucket.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace flashgate;
using namespace std::chrono_literals;

namespace {
const TimePoint start{1000s};
}

TEST_CASE("a bucket that idled at full holds its capacity, no credit for idling") {
  TokenBucket bucket(10, 1, start);
  const TimePoint later = start + 10min;
  int admitted = 0;
  for (int i = 0; i < 20; ++i) admitted += bucket.try_take(1, later) ? 1 : 0;
  CHECK(admitted == 10);
}

TEST_CASE("after a hit the bucket recovers as fast as its refill") {
  TokenBucket bucket(60, 1, start);
  REQUIRE(bucket.try_take(60, start));
  REQUIRE_FALSE(bucket.try_take(1, start));
  TimePoint now = start;
  int admitted = 0;
  for (int i = 0; i < 120; ++i) {  // half the rate: one every two seconds
    now += 2s;
    admitted += bucket.try_take(1, now) ? 1 : 0;
  }
  CHECK(admitted == 120);
}

TEST_CASE("no double burst around a minute's edge") {
  TokenBucket bucket(60, 1, start);
  int admitted = 0;
  for (int i = 0; i < 200; ++i) {
    admitted += bucket.try_take(1, start + 59s + std::chrono::milliseconds(10 * i)) ? 1 : 0;
  }
  CHECK(admitted <= 62);
  CHECK(admitted >= 60);
}

TEST_CASE("fractions of a token are kept") {
  TokenBucket bucket(1, 0.1, start);
  REQUIRE(bucket.try_take(1, start));
  for (int i = 1; i < 100; ++i) {
    REQUIRE_FALSE(bucket.try_take(1, start + std::chrono::milliseconds(100 * i - 1)));
  }
  CHECK(bucket.try_take(1, start + 10s));
}

TEST_CASE("waiting as long as time_until says is enough") {
  for (const double rate : {0.1, 1.0 / 3, 7.7, 1234.5678}) {
    for (const double n : {0.3, 1.0, 9.99, 10.0}) {
      TokenBucket bucket(10, rate, start);
      REQUIRE(bucket.try_take(10, start));
      const Duration wait = bucket.time_until(n, start);
      INFO(rate << " " << n);
      CHECK_FALSE(bucket.try_take(n, start + wait / 2));
      CHECK(bucket.try_take(n, start + wait));
    }
  }
}

TEST_CASE("what can never be had is said so, not waited for") {
  TokenBucket bucket(10, 1, start);
  CHECK(bucket.time_until(11, start) == Duration::max());
  TokenBucket dry(10, 0, start);
  REQUIRE(dry.try_take(10, start));
  CHECK(dry.time_until(1, start) == Duration::max());
}

TEST_CASE("a debt is paid by refill and is never deeper than one capacity") {
  TokenBucket bucket(100, 10, start);
  bucket.take(1e9, start);
  CHECK(bucket.available(start) == Approx(-100));
  CHECK(bucket.time_until(1, start) <= 10100ms);
  CHECK(bucket.try_take(1, start + 10100ms));
}

TEST_CASE("a clock that steps back changes nothing") {
  TokenBucket bucket(10, 1, start);
  REQUIRE(bucket.try_take(10, start));
  CHECK_FALSE(bucket.try_take(1, start - 1h));
  CHECK(bucket.available(start - 1h) == Approx(0));
  CHECK(bucket.available(start + 5s) == Approx(5));
}

TEST_CASE("nonsense amounts count as nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  TokenBucket bucket(10, 1, start);
  for (const double n : {nan, inf, -inf, -5.0}) {
    CHECK(bucket.try_take(n, start));
    bucket.give_back(n, start);
    bucket.take(n, start);
    CHECK(bucket.available(start) == Approx(10));
  }
  CHECK(TokenBucket(nan, inf, start).available(start + 1h) == 0);
}

TEST_CASE("a new shape keeps the share that was used") {
  TokenBucket bucket(100, 1, start);
  REQUIRE(bucket.try_take(75, start));
  bucket.reshape(1000, 10, start);
  CHECK(bucket.available(start) == Approx(250));
}

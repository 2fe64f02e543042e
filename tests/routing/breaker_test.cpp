#include "routing/breaker.hpp"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

using namespace flashgate;
using namespace std::chrono_literals;

namespace {

const TimePoint start{1000s};
using State = Breaker::State;

void call(Breaker& breaker, AttemptVerdict verdict, TimePoint now) {
  const auto permit = breaker.acquire(now);
  REQUIRE(permit.granted);
  breaker.release(permit, verdict, now);
}

void fail_until_open(Breaker& breaker, TimePoint now) {
  for (int i = 0; i < 100 && breaker.state(now) == State::closed; ++i) {
    call(breaker, AttemptVerdict::failure, now);
  }
  REQUIRE(breaker.state(now) == State::open);
}

}  // namespace

TEST_CASE("the breaker opens at the given number of failures in a row, not before") {
  Breaker breaker(BreakerPolicy{});
  for (int i = 0; i < 4; ++i) call(breaker, AttemptVerdict::failure, start);
  CHECK(breaker.state(start) == State::closed);
  call(breaker, AttemptVerdict::success, start);
  for (int i = 0; i < 4; ++i) call(breaker, AttemptVerdict::failure, start);
  CHECK(breaker.state(start) == State::closed);
  call(breaker, AttemptVerdict::failure, start);
  CHECK(breaker.state(start) == State::open);
  const auto refused = breaker.acquire(start + 3s);
  CHECK_FALSE(refused.granted);
  CHECK(refused.retry_after == 7s);
  CHECK(breaker.openings() == 1);
}

TEST_CASE("client faults never open it and never heal it") {
  Breaker breaker(BreakerPolicy{});
  for (int i = 0; i < 1000; ++i) call(breaker, AttemptVerdict::neutral, start);
  CHECK(breaker.state(start) == State::closed);
  for (int i = 0; i < 5; ++i) {
    call(breaker, AttemptVerdict::failure, start);
    if (i < 4) call(breaker, AttemptVerdict::neutral, start);
  }
  CHECK(breaker.state(start) == State::open);
}

TEST_CASE("a failure ratio opens it, only with enough samples of the recent window") {
  BreakerPolicy policy;
  policy.consecutive_failures = 0;
  const auto alternate = [](Breaker& breaker, int calls, TimePoint now) {
    for (int i = 0; i < calls && breaker.state(now) == State::closed; ++i) {
      call(breaker, i % 2 == 0 ? AttemptVerdict::success : AttemptVerdict::failure, now);
    }
  };
  SECTION("too few samples") {
    Breaker breaker(policy);
    alternate(breaker, 19, start);
    CHECK(breaker.state(start) == State::closed);
    call(breaker, AttemptVerdict::failure, start);
    CHECK(breaker.state(start) == State::open);
  }
  SECTION("old samples are forgotten") {
    Breaker breaker(policy);
    for (int i = 0; i < 19; ++i) call(breaker, AttemptVerdict::failure, start);
    for (int i = 0; i < 19; ++i) call(breaker, AttemptVerdict::failure, start + 11s);
    CHECK(breaker.state(start + 11s) == State::closed);
    call(breaker, AttemptVerdict::failure, start + 11s);
    CHECK(breaker.state(start + 11s) == State::open);
  }
  SECTION("below the ratio") {
    Breaker breaker(policy);
    for (int i = 0; i < 300; ++i) {
      call(breaker, i % 3 == 0 ? AttemptVerdict::failure : AttemptVerdict::success, start);
    }
    CHECK(breaker.state(start) == State::closed);
  }
}

TEST_CASE("of 200 acquirers at the end of the cool-down exactly one is the probe") {
  Breaker breaker(BreakerPolicy{});
  fail_until_open(breaker, start);
  const TimePoint now = start + 13s;
  REQUIRE(breaker.state(now) == State::half_open);
  for (int round = 0; round < 5; ++round) {
    std::barrier barrier(200);
    std::atomic<int> granted = 0;
    std::atomic<int> with_hint = 0;
    std::vector<std::thread> threads;
    Breaker::Permit probe;
    for (int i = 0; i < 200; ++i) {
      threads.emplace_back([&] {
        barrier.arrive_and_wait();
        const auto permit = breaker.acquire(now);
        if (permit.granted) {
          ++granted;
          probe = permit;
        } else if (permit.retry_after > Duration::zero()) {
          ++with_hint;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(granted == 1);
    CHECK(with_hint == 199);
    CHECK(probe.probe);
    breaker.release(probe, AttemptVerdict::neutral, now);  // and the place is free for the next
  }
  call(breaker, AttemptVerdict::success, now);
  CHECK(breaker.state(now) == State::closed);
}

TEST_CASE("a neutral probe leaves half-open waiting for a real result") {
  Breaker breaker(BreakerPolicy{});
  fail_until_open(breaker, start);
  const TimePoint now = start + 13s;
  for (int i = 0; i < 10; ++i) {
    call(breaker, AttemptVerdict::neutral, now);
    REQUIRE(breaker.state(now) == State::half_open);
  }
  call(breaker, AttemptVerdict::success, now);
  CHECK(breaker.state(now) == State::closed);
}

TEST_CASE("failed probes double the cool-down up to its cap, a success resets it") {
  Breaker breaker(BreakerPolicy{});
  TimePoint now = start;
  fail_until_open(breaker, now);
  for (const Duration expected : {10s, 20s, 40s, 80s, 120s, 120s}) {
    CHECK(breaker.retry_after(now) == expected);
    now += expected;
    call(breaker, AttemptVerdict::failure, now);
  }
  now += 120s;
  call(breaker, AttemptVerdict::success, now);
  fail_until_open(breaker, now);
  CHECK(breaker.retry_after(now) == 10s);
}

TEST_CASE("the cool-down is jittered upwards only") {
  for (const double roll : {0.0, 0.5, 0.999, 1.0, -3.0}) {
    Breaker breaker(BreakerPolicy{});
    for (int i = 0; i < 5; ++i) {
      breaker.release(breaker.acquire(start), AttemptVerdict::failure, start, roll);
    }
    INFO(roll);
    CHECK(breaker.retry_after(start) >= 10s);
    CHECK(breaker.retry_after(start) < 12s);
  }
}

TEST_CASE("a probe that never returns frees its place after its lease, and is then not believed") {
  Breaker breaker(BreakerPolicy{});
  fail_until_open(breaker, start);
  const TimePoint now = start + 13s;
  const auto lost = breaker.acquire(now);
  REQUIRE(lost.probe);
  CHECK_FALSE(breaker.acquire(now + 59s).granted);
  const auto second = breaker.acquire(now + 60s);
  REQUIRE(second.probe);
  breaker.release(lost, AttemptVerdict::success, now + 61s);
  CHECK(breaker.state(now + 61s) == State::half_open);
  CHECK_FALSE(breaker.acquire(now + 61s).granted);  // the second still holds the place
  breaker.release(second, AttemptVerdict::success, now + 62s);
  CHECK(breaker.state(now + 62s) == State::closed);
}

TEST_CASE("results from before the opening don't count afterwards") {
  Breaker breaker(BreakerPolicy{});
  const auto early = breaker.acquire(start);
  fail_until_open(breaker, start);
  breaker.release(early, AttemptVerdict::success, start + 1s);
  CHECK(breaker.state(start + 1s) == State::open);
  const TimePoint now = start + 13s;
  call(breaker, AttemptVerdict::success, now);
  for (int i = 0; i < 50; ++i) breaker.release(early, AttemptVerdict::failure, now);
  CHECK(breaker.state(now) == State::closed);
}

TEST_CASE("a refused permit and a second release change nothing") {
  Breaker breaker(BreakerPolicy{});
  fail_until_open(breaker, start);
  const TimePoint now = start + 13s;
  const auto probe = breaker.acquire(now);
  const auto refused = breaker.acquire(now);
  breaker.release(refused, AttemptVerdict::success, now);
  CHECK(breaker.state(now) == State::half_open);
  breaker.release(probe, AttemptVerdict::neutral, now);
  breaker.release(probe, AttemptVerdict::failure, now);
  CHECK(breaker.state(now) == State::half_open);
}

TEST_CASE("a pause asked for by the backend stops traffic but is no failure") {
  Breaker breaker(BreakerPolicy{});
  for (int i = 0; i < 20; ++i) call(breaker, AttemptVerdict::neutral, start);
  breaker.cool_down(start + 5s);
  breaker.cool_down(start + 2s);  // a shorter one does not cut it
  CHECK(breaker.state(start) == State::closed);
  CHECK_FALSE(breaker.allows(start + 4s));
  CHECK(breaker.acquire(start + 4s).retry_after == 1s);
  CHECK(breaker.acquire(start + 5s).granted);
  CHECK(breaker.openings() == 0);
}

TEST_CASE("after a recovery the share climbs to one") {
  Breaker breaker(BreakerPolicy{});
  CHECK(breaker.ramp_share(start) == 1);
  fail_until_open(breaker, start);
  CHECK(breaker.ramp_share(start) == 0);
  const TimePoint now = start + 10s;
  call(breaker, AttemptVerdict::success, now);
  CHECK(breaker.ramp_share(now) == Approx(0.1));
  CHECK(breaker.ramp_share(now + 5s) == Approx(0.5));
  CHECK(breaker.ramp_share(now + 10s) == 1);
}

TEST_CASE("threads that acquire and release at random leave a breaker that still recovers") {
  BreakerPolicy policy;
  policy.cooldown = 1ms;
  policy.cooldown_max = 4ms;
  Breaker breaker(policy);
  std::atomic<std::int64_t> clock{start.time_since_epoch().count()};
  std::atomic<int> probes_out = 0;
  std::atomic<int> probes_out_max = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(t);
      for (int i = 0; i < 3000; ++i) {
        const TimePoint now{Duration(clock.fetch_add(10'000))};
        const auto permit = breaker.acquire(now, 0.5);
        if (!permit.granted) continue;
        if (permit.probe) {
          const int out = ++probes_out;
          int most = probes_out_max;
          while (out > most && !probes_out_max.compare_exchange_weak(most, out)) {
          }
          --probes_out;
        }
        breaker.release(permit, static_cast<AttemptVerdict>(dice() % 3), now, 0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(probes_out_max <= 1);
  TimePoint now{Duration(clock.load())};
  now += 1min;
  call(breaker, AttemptVerdict::success, now);
  CHECK(breaker.state(now) == State::closed);
}

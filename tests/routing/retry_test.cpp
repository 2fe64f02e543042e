#include "routing/retry.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace flashgate;
using namespace std::chrono_literals;

namespace {

const TimePoint start{1000s};
// Wed, 21 Oct 2015 07:28:00 GMT
const WallTime wall{1445412480s};

std::optional<Duration> seconds_field(std::string_view text) {
  return parse_retry_after(text, {}, wall);
}

}  // namespace

TEST_CASE("Retry-After: whole and broken seconds, capped, and garbage is no hint") {
  const std::string thirty_digits(30, '9');
  struct Row {
    std::string_view text;
    std::optional<Duration> expected;
  };
  const std::vector<Row> table{
      {"0", 0s},
      {"2", 2s},
      {" 2\t", 2s},
      {"2.5", 2500ms},
      {"007", 7s},
      {"3600", 1h},
      {"3601", 1h},
      {"9223372037", 1h},
      {"9223372036854775808", 1h},
      {thirty_digits, 1h},
      {"", std::nullopt},
      {" ", std::nullopt},
      {"-5", std::nullopt},
      {"+5", std::nullopt},
      {"NaN", std::nullopt},
      {"inf", std::nullopt},
      {"1e9", std::nullopt},
      {"0x10", std::nullopt},
      {"2.", std::nullopt},
      {".5", std::nullopt},
      {"2.5.1", std::nullopt},
      {"2, 5", std::nullopt},
      {"2s", std::nullopt},
      {"soon", std::nullopt},
      {std::string_view("2\0", 2), std::nullopt},
  };
  for (const Row& row : table) {
    INFO(row.text);
    CHECK(seconds_field(row.text) == row.expected);
  }
}

TEST_CASE("Retry-After: dates of the three forms, the past is now, bad ones are no hint") {
  struct Row {
    std::string_view text;
    std::optional<Duration> expected;
  };
  const std::vector<Row> table{
      {"Wed, 21 Oct 2015 07:28:30 GMT", 30s},
      {"Wed, 21 Oct 2015 07:27:30 GMT", 0s},
      {"Sun, 06 Nov 1994 08:49:37 GMT", 0s},
      {"Sunday, 06-Nov-94 08:49:37 GMT", 0s},
      {"Sun Nov  6 08:49:37 1994", 0s},
      {"Wednesday, 21-Oct-15 07:29:00 GMT", 60s},
      {"Wed Oct 21 07:29:00 2015", 60s},
      {"Wed, 21 Oct 2015 23:59:60 GMT", 1h},
      {"Fri, 31 Dec 9999 23:59:59 GMT", 1h},
      {"Sat, 01 Jan 0001 00:00:00 GMT", 0s},
      {"Wed, 21 Oct 2015 07:28:30", std::nullopt},
      {"Wed, 21 Oct 2015 07:28:30 UTC", std::nullopt},
      {"Wed, 21 Oct 2015 07:28:30 GMT ", 30s},
      {"Wed, 32 Oct 2015 07:28:30 GMT", std::nullopt},
      {"Mon, 30 Feb 2015 07:28:30 GMT", std::nullopt},
      {"Wed, 21 Oct 2015 24:00:00 GMT", std::nullopt},
      {"wed, 21 oct 2015 07:28:30 gmt", std::nullopt},
      {"2015-10-21T07:28:30Z", std::nullopt},
      {"Wed, 21 Oct", std::nullopt},
      {"Wed", std::nullopt},
  };
  for (const Row& row : table) {
    INFO(row.text);
    CHECK(seconds_field(row.text) == row.expected);
  }
}

TEST_CASE("retry-after-ms is the more exact one, if it is any good") {
  CHECK(parse_retry_after("2", "1500", wall) == 1500ms);
  CHECK(parse_retry_after("2", "garbage", wall) == 2s);
  CHECK(parse_retry_after("", "12.5", wall) == Duration(12'500us));
  CHECK(parse_retry_after("", "99999999999999999999", wall) == 1h);
  CHECK(parse_retry_after("", "-1", wall) == std::nullopt);
}

TEST_CASE("of several fields the longest valid one counts") {
  const std::vector<HeaderField> fields{
      {"retry-after", "3"}, {"Retry-After", "garbage"}, {"RETRY-AFTER", "9"}};
  CHECK(parse_retry_after(fields, wall) == 9s);
  const std::vector<HeaderField> with_ms{{"retry-after", "3"}, {"Retry-After-Ms", "200"}};
  CHECK(parse_retry_after(with_ms, wall) == 200ms);
  CHECK(parse_retry_after(std::vector<HeaderField>{}, wall) == std::nullopt);
}

TEST_CASE("backoff is the roll's share of a doubling, capped ceiling") {
  const RetryPolicy policy;
  CHECK(backoff_delay(policy, 1, 1.0) == 200ms);
  CHECK(backoff_delay(policy, 2, 1.0) == 400ms);
  CHECK(backoff_delay(policy, 3, 0.5) == 400ms);
  CHECK(backoff_delay(policy, 7, 1.0) == 8s);
  CHECK(backoff_delay(policy, 1'000'000, 1.0) == 8s);
  CHECK(backoff_delay(policy, 1, 0.0) == 0s);
  CHECK(backoff_delay(policy, -5, 1.0) == 200ms);
  RetryPolicy odd;
  odd.backoff = -1s;
  CHECK(backoff_delay(odd, 3, 0.7) == 0s);
  odd.backoff = Duration::max();
  odd.backoff_max = Duration::max();
  CHECK(backoff_delay(odd, 9, 0.5) > 0s);
}

TEST_CASE("a hint is a floor under our own backoff, never a short cut") {
  CHECK(retry_delay(400ms, std::nullopt) == 400ms);
  CHECK(retry_delay(400ms, 2s) == 2s);
  CHECK(retry_delay(400ms, 100ms) == 400ms);
}

TEST_CASE("the budget allows a fifth of the recent requests") {
  RetryBudget budget(0.2);
  for (int i = 0; i < 1000; ++i) budget.count_request(start);
  int spent = 0;
  for (int i = 0; i < 1000; ++i) spent += budget.try_spend(start + 1s) ? 1 : 0;
  CHECK(spent == 200);
  CHECK_FALSE(budget.try_spend(start + 9s));
  CHECK(budget.try_spend(start + 12s));  // forgotten: the floor again
}

TEST_CASE("a quiet service may always make ten extra attempts in ten seconds") {
  RetryBudget budget(0.2);
  budget.count_request(start);
  int spent = 0;
  for (int i = 0; i < 50; ++i) spent += budget.try_spend(start) ? 1 : 0;
  CHECK(spent == 10);
}

TEST_CASE("a budget of nothing means no extra attempts") {
  RetryBudget budget(0);
  for (int i = 0; i < 1000; ++i) budget.count_request(start);
  CHECK_FALSE(budget.try_spend(start));
  budget.set_budget(0.5);
  CHECK(budget.try_spend(start));
}

TEST_CASE("a thread whose clock reading is older does not renew the budget") {
  RetryBudget budget(0.2);
  for (int i = 0; i < 10; ++i) REQUIRE(budget.try_spend(start + 9s));
  CHECK_FALSE(budget.try_spend(start - 1s));
  CHECK_FALSE(budget.try_spend(start + 9s));
}

TEST_CASE("the budget holds under a storm from many threads") {
  RetryBudget budget(0.2);
  std::atomic<int> spent = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        budget.count_request(start);
        for (int retry = 0; retry < 4; ++retry) spent += budget.try_spend(start) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(spent == 320);
}

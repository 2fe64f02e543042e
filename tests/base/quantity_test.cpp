#include "base/quantity.hpp"

#include <catch2/catch.hpp>

using namespace flashgate;
using namespace std::chrono_literals;

TEST_CASE("durations are read in their units, and a bare number is seconds") {
  CHECK(*parse_duration("5s") == 5s);
  CHECK(*parse_duration("2m") == 2min);
  CHECK(*parse_duration("48h") == 48h);
  CHECK(*parse_duration("30d") == 720h);
  CHECK(*parse_duration("200ms") == 200ms);
  CHECK(*parse_duration("60") == 60s);
  CHECK(*parse_duration("1.5s") == 1500ms);
  CHECK(*parse_duration("0") == 0s);
  CHECK(*parse_duration("0.5") == 500ms);
  for (const auto* row :
       {"", "s", "5x", "5 s", "-5s", "+5s", "5S", "1e3", "05s", "5s5", "5..5s", ".5s", "5.s", "nan",
        "inf", "99999999999999999999d", "4000d", "0x10", "5\n"}) {
    INFO(row);
    CHECK_FALSE(parse_duration(row).has_value());
  }
}

TEST_CASE("sizes tell powers of 1024 from powers of 1000") {
  CHECK(*parse_size("32MiB") == 32u << 20);
  CHECK(*parse_size("64KiB") == 65536u);
  CHECK(*parse_size("1GiB") == 1u << 30);
  CHECK(*parse_size("1MB") == 1000000u);
  CHECK(*parse_size("10 kB") == 10000u);
  CHECK(*parse_size("7") == 7u);
  CHECK(*parse_size("0.5KiB") == 512u);
  for (const auto* row :
       {"", "MiB", "32Mi", "32mib", "-1", "010", "1TiBx", "99999999999999999999GiB"}) {
    INFO(row);
    CHECK_FALSE(parse_size(row).has_value());
  }
}

TEST_CASE("a rate needs its unit of time and comes out per minute") {
  CHECK(*parse_rate_per_minute("600/min") == 600);
  CHECK(*parse_rate_per_minute("10/s") == 600);
  CHECK(*parse_rate_per_minute("60/h") == Approx(1));
  CHECK(*parse_rate_per_minute("200k/min") == 200000);
  for (const auto* row : {"", "600", "/min", "600/", "600/day", "6.5/min", "-1/s", "600 / min"}) {
    INFO(row);
    CHECK_FALSE(parse_rate_per_minute(row).has_value());
  }
}

TEST_CASE("a share is always a percentage") {
  CHECK(*parse_share("20%") == Approx(0.2));
  CHECK(*parse_share("0%") == 0);
  CHECK(*parse_share("100%") == 1);
  CHECK(*parse_share("0.5%") == Approx(0.005));
  for (const auto* row : {"", "%", "0.2", "20", "101%", "-1%", "20 %", "20%%"}) {
    INFO(row);
    CHECK_FALSE(parse_share(row).has_value());
  }
}

TEST_CASE("a count is whole, with k and M, and never octal") {
  CHECK(*parse_count("16000") == 16000);
  CHECK(*parse_count("16k") == 16000);
  CHECK(*parse_count("1.5M") == 1500000);
  CHECK(*parse_count("0") == 0);
  for (const auto* row : {"", "010", "0x10", "1_000", "1,000", "-1", "+1", "1.5", "1.0005k", "k",
                          "16K", "1e3", "99999999999999999999"}) {
    INFO(row);
    CHECK_FALSE(parse_count(row).has_value());
  }
}

TEST_CASE("a duration is written in its largest whole unit") {
  CHECK(write_duration(0s) == "0s");
  CHECK(write_duration(250ms) == "250ms");
  CHECK(write_duration(90s) == "90s");
  CHECK(write_duration(120s) == "2m");
  CHECK(write_duration(48h) == "2d");
  for (const Duration d : {Duration(1ms), Duration(1500ms), Duration(59min), Duration(25h)}) {
    CHECK(*parse_duration(write_duration(d)) == d);
  }
}

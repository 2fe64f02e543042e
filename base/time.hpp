#pragma once
// The two clocks as values. Pure code takes a TimePoint or a WallTime as a parameter and never
// asks.
#include <chrono>

namespace flashgate {

using Duration = std::chrono::nanoseconds;
/// Monotonic: deadlines, limits, breakers.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// Wall clock: log lines, HTTP dates.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

}  // namespace flashgate

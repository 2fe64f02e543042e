#pragma once
// Small values as people type them in rules and flags: 50ms, 10%, 64k, 3-9. Pure, any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"

namespace flashgate {

/// 0, 250us, 50ms, 1.5s, 2m, 1h; at most a day.
std::optional<Duration> read_duration(std::string_view text);
/// 10%, 0.1, 1; within [0, 1].
std::optional<double> read_share(std::string_view text);
/// A plain number from 0 up, like 0.05 or 3.
std::optional<double> read_number(std::string_view text);
/// 12, 64k, 8m (powers of 1024).
std::optional<std::uint64_t> read_count(std::string_view text);
/// "3" (3 to 3), "3-9", "3-" (to the end). Both ends at least 1, in order.
std::optional<std::pair<std::uint64_t, std::uint64_t>> read_span(std::string_view text);
/// \r \n \t \0 \\ \xHH; empty when the escape is none of these.
std::optional<std::string> unescape(std::string_view text);

}  // namespace flashgate

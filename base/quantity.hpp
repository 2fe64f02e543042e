#pragma once
// Quantities as people write them: durations 5s, 2m, 48h (a bare number is seconds), sizes 32MiB,
// rates 600/min, shares 20%, counts 16k. A refusal says which form is wanted.
// Promises: any bytes, no exception, no overflow. Pure, any thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace flashgate {

/// ms, s, m, h, d; fractions are fine ("1.5s"); a bare number is seconds. At most ten years.
Result<Duration> parse_duration(std::string_view text);
/// B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024); a bare number is bytes.
Result<std::uint64_t> parse_size(std::string_view text);
/// "600/min", "10/s", "5k/h"; as a number per minute. The unit of time is required.
Result<double> parse_rate_per_minute(std::string_view text);
/// "20%" is 0.2. The sign is required; 0 … 100.
Result<double> parse_share(std::string_view text);
/// A whole number, with k or M: "16k" is 16,000. No sign, no leading zero (010 is 8 to YAML).
Result<std::int64_t> parse_count(std::string_view text);
/// A plain decimal number, zero or more.
Result<double> parse_number(std::string_view text);

/// In the largest unit that leaves a whole number: "2m", "90s", "250ms".
std::string write_duration(Duration duration);

}  // namespace flashgate

#include "routing/retry.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace flashgate {
namespace {

constexpr int doublings_max = 30;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "12", "2.5"; nothing else. `unit` is what 1 means. Any number of digits, capped.
std::optional<Duration> parse_count(std::string_view text, Duration unit) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  double value = 0;
  double place = 0;  // 0: before the point
  for (const char c : text) {
    if (c == '.' && place == 0) {
      place = 1;
    } else if (!is_digit(c)) {
      return std::nullopt;
    } else if (place == 0) {
      value = std::min(value * 10 + (c - '0'), 1e15);
    } else {
      place /= 10;
      value += (c - '0') * place;
    }
  }
  if (text.back() == '.') return std::nullopt;
  const double most = static_cast<double>(retry_after_max.count());
  const double nanoseconds = value * static_cast<double>(unit.count());
  if (nanoseconds >= most) return retry_after_max;
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

/// Reads a date piece by piece; the first piece that does not fit makes it not ok.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : rest_(text) {}

  void literal(std::string_view expected) {
    ok_ = ok_ && rest_.substr(0, expected.size()) == expected;
    if (ok_) rest_.remove_prefix(expected.size());
  }
  int number(std::size_t digits) {
    int value = 0;
    ok_ = ok_ && rest_.size() >= digits;
    for (std::size_t i = 0; ok_ && i < digits; ++i) {
      ok_ = is_digit(rest_[i]);
      value = value * 10 + (rest_[i] - '0');
    }
    if (ok_) rest_.remove_prefix(digits);
    return ok_ ? value : 0;
  }
  /// asctime pads the day with a space.
  int padded_day() {
    if (!rest_.empty() && rest_.front() == ' ') {
      rest_.remove_prefix(1);
      return number(1);
    }
    return number(2);
  }
  template <std::size_t n>
  int word(const std::array<std::string_view, n>& words) {
    for (std::size_t i = 0; ok_ && i < n; ++i) {
      if (rest_.substr(0, words[i].size()) != words[i]) continue;
      rest_.remove_prefix(words[i].size());
      return static_cast<int>(i);
    }
    ok_ = false;
    return 0;
  }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

constexpr std::array<std::string_view, 12> month_names{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> day_names{"Mon", "Tue", "Wed", "Thu",
                                                    "Fri", "Sat", "Sun"};
constexpr std::array<std::string_view, 7> long_day_names{
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

struct CivilTime {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

void read_clock(DateReader& in, CivilTime& out) {
  out.hour = in.number(2);
  in.literal(":");
  out.minute = in.number(2);
  in.literal(":");
  out.second = in.number(2);
}

/// Sun, 06 Nov 1994 08:49:37 GMT
bool read_imf(std::string_view text, CivilTime& out) {
  DateReader in(text);
  in.word(day_names);
  in.literal(", ");
  out.day = in.number(2);
  in.literal(" ");
  out.month = in.word(month_names);
  in.literal(" ");
  out.year = in.number(4);
  in.literal(" ");
  read_clock(in, out);
  in.literal(" GMT");
  return in.done();
}

/// Sunday, 06-Nov-94 08:49:37 GMT
bool read_rfc850(std::string_view text, CivilTime& out) {
  DateReader in(text);
  in.word(long_day_names);
  in.literal(", ");
  out.day = in.number(2);
  in.literal("-");
  out.month = in.word(month_names);
  in.literal("-");
  out.year = in.number(2);
  in.literal(" ");
  read_clock(in, out);
  in.literal(" GMT");
  return in.done();
}

/// Sun Nov  6 08:49:37 1994
bool read_asctime(std::string_view text, CivilTime& out) {
  DateReader in(text);
  in.word(day_names);
  in.literal(" ");
  out.month = in.word(month_names);
  in.literal(" ");
  out.day = in.padded_day();
  in.literal(" ");
  read_clock(in, out);
  in.literal(" ");
  out.year = in.number(4);
  return in.done();
}

/// Outside these years a 64-bit count of nanoseconds runs over.
constexpr int year_min = 1700;
constexpr int year_max = 2250;

std::optional<WallTime> to_wall_time(const CivilTime& t) {
  const std::chrono::year_month_day date{std::chrono::year(t.year),
                                         std::chrono::month(static_cast<unsigned>(t.month + 1)),
                                         std::chrono::day(static_cast<unsigned>(t.day))};
  if (!date.ok() || t.hour > 23 || t.minute > 59 || t.second > 60) return std::nullopt;
  const int year = std::clamp(t.year, year_min, year_max);
  const std::chrono::sys_days days{std::chrono::year(year) / date.month() /
                                   std::min(date.day(), std::chrono::day(28))};
  const std::chrono::sys_days exact = year == t.year ? std::chrono::sys_days(date) : days;
  return WallTime(exact) + std::chrono::hours(t.hour) + std::chrono::minutes(t.minute) +
         std::chrono::seconds(t.second);
}

/// RFC 9110 §5.6.7: a two-digit year that looks over 50 years ahead is in the past.
int full_year(int two_digits, WallTime now) {
  const auto today = std::chrono::floor<std::chrono::days>(now);
  const int year = static_cast<int>(std::chrono::year_month_day(today).year());
  const int guess = year - year % 100 + two_digits;
  return guess > year + 50 ? guess - 100 : guess;
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  CivilTime t;
  if (read_imf(text, t) || read_asctime(text, t)) return to_wall_time(t);
  if (!read_rfc850(text, t)) return std::nullopt;
  t.year = full_year(t.year, now);
  return to_wall_time(t);
}

std::optional<Duration> parse_retry_after(std::string_view retry_after,
                                          std::string_view retry_after_ms, WallTime now) {
  const auto exact = parse_count(trimmed(retry_after_ms), std::chrono::milliseconds(1));
  if (exact) return exact;
  const std::string_view text = trimmed(retry_after);
  const auto count = parse_count(text, std::chrono::seconds(1));
  if (count) return count;
  const auto date = parse_http_date(text, now);
  if (!date) return std::nullopt;
  if (*date <= now) return Duration::zero();
  return *date >= now + retry_after_max ? retry_after_max : Duration(*date - now);
}

std::optional<Duration> parse_retry_after(const std::vector<HeaderField>& fields, WallTime now) {
  std::optional<Duration> seconds;
  std::optional<Duration> exact;
  for (const HeaderField& field : fields) {
    if (iequals(field.name, "retry-after")) {
      seconds = std::max(seconds, parse_retry_after(field.value, {}, now));
    } else if (iequals(field.name, "retry-after-ms")) {
      exact = std::max(exact, parse_retry_after({}, field.value, now));
    }
  }
  return exact ? exact : seconds;
}

Duration backoff_delay(const RetryPolicy& policy, int attempt, double roll) {
  const Duration longest = std::max(Duration::zero(), policy.backoff_max);
  Duration ceiling = std::clamp(policy.backoff, Duration::zero(), longest);
  const int doublings = std::clamp(attempt - 1, 0, doublings_max);
  for (int i = 0; i < doublings && ceiling < longest; ++i) {
    ceiling = ceiling > longest / 2 ? longest : ceiling * 2;
  }
  const double share = roll >= 0 && roll <= 1 ? roll : 1;
  return Duration(static_cast<Duration::rep>(static_cast<double>(ceiling.count()) * share));
}

RetryBudget::Second& RetryBudget::second(TimePoint now) {
  const std::int64_t seconds =
      std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  // A thread that read the clock a little earlier must not reopen a slot that has moved on.
  newest_ = std::max(newest_, seconds);
  const auto slot =
      static_cast<std::size_t>(((newest_ % window_seconds) + window_seconds) % window_seconds);
  if (seconds_[slot].index != newest_) seconds_[slot] = Second{newest_, 0, 0};
  return seconds_[slot];
}

void RetryBudget::count_request(TimePoint now) {
  const std::lock_guard lock(mutex_);
  ++second(now).requests;
}

bool RetryBudget::try_spend(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!(budget_ > 0)) return false;
  Second& current = second(now);
  std::int64_t requests = 0;
  std::int64_t extra = 0;
  for (const Second& entry : seconds_) {
    if (entry.index < 0 || entry.index <= newest_ - window_seconds) continue;
    requests += entry.requests;
    extra += entry.extra;
  }
  const double share = std::floor(budget_ * static_cast<double>(requests));
  if (static_cast<double>(extra) >= std::max(static_cast<double>(extra_min), share)) return false;
  ++current.extra;
  return true;
}

void RetryBudget::set_budget(double budget) {
  const std::lock_guard lock(mutex_);
  budget_ = budget;
}

}  // namespace flashgate

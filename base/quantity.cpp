#include "base/quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace flashgate {
namespace {

constexpr std::size_t text_bytes_max = 40;
constexpr double count_max = 1e15;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 5> time_units{
    {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
constexpr std::array<Unit, 7> size_units{{{"B", 1},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"KiB", 1024},
                                          {"MiB", 1048576},
                                          {"GiB", 1073741824}}};
constexpr std::array<Unit, 5> rate_units{
    {{"s", 60}, {"sec", 60}, {"min", 1}, {"m", 1}, {"h", 1.0 / 60}}};

Error refuse(std::string message) {
  return Error{"bad_quantity", std::move(message)};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits with at most one point; leaves what follows in `rest`.
bool take_number(std::string_view text, double& number, std::string_view& rest) {
  if (text.size() > text_bytes_max) return false;
  std::size_t at = 0;
  int points = 0;
  while (at < text.size() && (is_digit(text[at]) || (text[at] == '.' && points++ == 0))) ++at;
  if (at == 0 || !is_digit(text[0]) || !is_digit(text[at - 1])) return false;
  const auto parsed = std::from_chars(text.data(), text.data() + at, number);
  rest = text.substr(at);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + at;
}

/// 010 is 8 to a YAML 1.1 reader and 10 to a person, so it is neither.
bool has_leading_zero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

std::string_view trim_front(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

template <std::size_t n>
const Unit* find_unit(const std::array<Unit, n>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr auto* form = "a duration is a number with ms, s, m, h or d, like 5s or 2m";
  double number = 0;
  std::string_view unit;
  if (has_leading_zero(text) || !take_number(text, number, unit)) return refuse(form);
  const Unit* known = unit.empty() ? &time_units[1] : find_unit(time_units, unit);
  if (known == nullptr) return refuse(form);
  const double seconds = number * known->factor;
  if (seconds > 10.0 * 365 * 86400) return refuse("a duration is at most ten years");
  return Duration(static_cast<std::int64_t>(std::llround(seconds * 1e9)));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  constexpr auto* form = "a size is a number with B, KiB, MiB or GiB (kB, MB, GB), like 32MiB";
  double number = 0;
  std::string_view unit;
  if (has_leading_zero(text) || !take_number(text, number, unit)) return refuse(form);
  unit = trim_front(unit);
  const Unit* known = unit.empty() ? &size_units[0] : find_unit(size_units, unit);
  if (known == nullptr) return refuse(form);
  const double bytes = number * known->factor;
  if (bytes > count_max) return refuse("a size is at most 1000 TB");
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Result<double> parse_rate_per_minute(std::string_view text) {
  constexpr auto* form = "a rate is a count per s, min or h, like 600/min";
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return refuse(form);
  const auto count = parse_count(text.substr(0, slash));
  const Unit* unit = find_unit(rate_units, text.substr(slash + 1));
  if (!count || unit == nullptr) return refuse(form);
  return static_cast<double>(*count) * unit->factor;
}

Result<double> parse_share(std::string_view text) {
  constexpr auto* form = "a share is a percentage from 0% to 100%, like 20%";
  double number = 0;
  std::string_view unit;
  if (has_leading_zero(text) || !take_number(text, number, unit) || unit != "%" || number > 100) {
    return refuse(form);
  }
  return number / 100;
}

Result<std::int64_t> parse_count(std::string_view text) {
  constexpr auto* form = "a count is a whole number, k and M allowed, like 16000 or 16k";
  double number = 0;
  std::string_view unit;
  if (has_leading_zero(text)) return refuse("a number has no leading zero (YAML reads 010 as 8)");
  if (!take_number(text, number, unit)) return refuse(form);
  double factor = 1;
  if (unit == "k") {
    factor = 1e3;
  } else if (unit == "M") {
    factor = 1e6;
  } else if (!unit.empty()) {
    return refuse(form);
  }
  const double whole = number * factor;
  const double rounded = std::nearbyint(whole);
  if (whole > count_max || std::abs(whole - rounded) > 1e-6) return refuse(form);
  return static_cast<std::int64_t>(rounded);
}

Result<double> parse_number(std::string_view text) {
  double number = 0;
  std::string_view rest;
  if (has_leading_zero(text) || !take_number(text, number, rest) || !rest.empty()) {
    return refuse("a plain decimal number is wanted, like 0.25");
  }
  if (number > count_max) return refuse("the number is too large");
  return number;
}

std::string write_duration(Duration duration) {
  using namespace std::chrono;
  const auto whole = duration.count();
  const std::array<std::pair<std::int64_t, std::string_view>, 5> units{{{86'400'000'000'000, "d"},
                                                                        {3'600'000'000'000, "h"},
                                                                        {60'000'000'000, "m"},
                                                                        {1'000'000'000, "s"},
                                                                        {1'000'000, "ms"}}};
  if (whole == 0) return "0s";
  for (const auto& [size, unit] : units) {
    if (whole % size == 0) return std::to_string(whole / size) + std::string(unit);
  }
  return std::to_string(whole / 1'000'000) + "ms";
}

}  // namespace flashgate

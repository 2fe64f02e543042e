#include "simulator/text_values.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace flashgate {

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

std::optional<Duration> read_duration(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.");
  const auto number = read_number(text.substr(0, unit_at));
  if (!number) return std::nullopt;
  if (unit_at == std::string_view::npos) {
    return *number == 0 ? std::optional<Duration>(Duration{}) : std::nullopt;
  }
  struct Unit {
    std::string_view name;
    double nanoseconds;
  };
  static constexpr Unit units[] = {{"ns", 1},  {"us", 1e3},   {"ms", 1e6},
                                   {"s", 1e9}, {"m", 60.0e9}, {"h", 3600.0e9}};
  constexpr double day = 24 * 3600.0e9;
  for (const Unit& unit : units) {
    if (text.substr(unit_at) != unit.name) continue;
    const double value = *number * unit.nanoseconds;
    if (value > day) return std::nullopt;
    return Duration(static_cast<Duration::rep>(value));
  }
  return std::nullopt;
}

std::optional<double> read_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  auto value = read_number(text);
  if (!value) return std::nullopt;
  if (percent) *value /= 100;
  return *value <= 1 ? value : std::nullopt;
}

std::optional<std::uint64_t> read_count(std::string_view text) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  std::uint64_t factor = 1;
  if (unit == "k" || unit == "K") {
    factor = 1024;
  } else if (unit == "m" || unit == "M") {
    factor = 1024 * 1024;
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (value > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
  return value * factor;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> read_span(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = read_count(text.substr(0, dash));
  if (!first || *first == 0) return std::nullopt;
  if (dash == std::string_view::npos) return std::pair{*first, *first};
  if (dash + 1 == text.size()) {
    return std::pair{*first, std::numeric_limits<std::uint64_t>::max()};
  }
  const auto last = read_count(text.substr(dash + 1));
  if (!last || *last < *first) return std::nullopt;
  return std::pair{*first, *last};
}

std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    static constexpr std::string_view names = "rnt0\\";
    static constexpr std::string_view bytes("\r\n\t\0\\", 5);
    if (const std::size_t at = names.find(text[i]); at != std::string_view::npos) {
      out += bytes[at];
      continue;
    }
    if (text[i] != 'x' || i + 2 >= text.size()) return std::nullopt;
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

}  // namespace flashgate

#include "config/check_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/quantity.hpp"
#include "base/url.hpp"
#include "config/findings.hpp"
#include "routing/rules.hpp"

namespace flashgate {
namespace {

constexpr std::size_t text_bytes_max = 4096;
constexpr std::size_t name_bytes_max = 64;

using Fault = std::optional<ValueFault>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

std::string plain_number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.10g", value);
  return buffer.data();
}

std::string write_bound(ValueType type, double value) {
  switch (type) {
    case ValueType::duration:
      return write_duration(Duration(static_cast<std::int64_t>(std::llround(value * 1e9))));
    case ValueType::share:
      return plain_number(value * 100) + "%";
    case ValueType::rate:
      return plain_number(value) + "/min";
    case ValueType::size: {
      const auto whole = static_cast<std::uint64_t>(value);
      if (whole >= (1u << 20) && whole % (1u << 20) == 0) {
        return std::to_string(whole >> 20) + "MiB";
      }
      if (whole >= 1024 && whole % 1024 == 0) return std::to_string(whole >> 10) + "KiB";
      return plain_number(value) + "B";
    }
    default:
      return plain_number(value);
  }
}

Fault check_bounds(const Key& key, double value) {
  if (value >= key.least && value <= key.most) return std::nullopt;
  std::string message = quoted(key.name) + " must be at least ";
  message += write_bound(key.type, key.least);
  if (key.most < 1e15) message += " and at most " + write_bound(key.type, key.most);
  return ValueFault{std::move(message), {}};
}

/// The number and what follows, for guessing what was meant by a wrong unit.
std::pair<std::string, std::string> split_unit(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (is_digit(text[at]) || text[at] == '.')) ++at;
  std::string_view unit = text.substr(at);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return {std::string(text.substr(0, at)), lower(unit.substr(0, 16))};
}

struct Synonym {
  std::string_view written;
  std::string_view meant;
};

std::string suggest_unit(std::string_view text, const std::vector<Synonym>& synonyms) {
  const auto [number, unit] = split_unit(text);
  if (number.empty()) return {};
  for (const Synonym& synonym : synonyms) {
    if (unit == synonym.written) return "write " + number + std::string(synonym.meant);
  }
  return {};
}

std::string suggest_duration(std::string_view text) {
  static const std::vector<Synonym> synonyms{
      {"sec", "s"},    {"secs", "s"},  {"second", "s"}, {"seconds", "s"}, {"s", "s"},
      {"min", "m"},    {"mins", "m"},  {"minute", "m"}, {"minutes", "m"}, {"m", "m"},
      {"hour", "h"},   {"hours", "h"}, {"hr", "h"},     {"hrs", "h"},     {"h", "h"},
      {"day", "d"},    {"days", "d"},  {"d", "d"},      {"msec", "ms"},   {"millis", "ms"},
      {"mssec", "ms"}, {"ms", "ms"}};
  return suggest_unit(text, synonyms);
}

std::string suggest_size(std::string_view text) {
  static const std::vector<Synonym> synonyms{
      {"k", "KiB"},  {"kb", "KiB"},  {"ki", "KiB"},  {"kib", "KiB"}, {"m", "MiB"},
      {"mb", "MiB"}, {"mi", "MiB"},  {"mib", "MiB"}, {"g", "GiB"},   {"gb", "GiB"},
      {"gi", "GiB"}, {"gib", "GiB"}, {"b", "B"},     {"bytes", "B"}};
  return suggest_unit(text, synonyms);
}

std::string suggest_share(std::string_view text) {
  const auto number = parse_number(text);
  if (!number) return {};
  return "write " + plain_number(*number <= 1 ? *number * 100 : *number) + "%";
}

std::string suggest_rate(std::string_view text) {
  if (parse_count(text)) return "write " + std::string(text) + "/min";
  static const std::vector<Synonym> synonyms{{"/minute", "/min"}, {"/second", "/s"},
                                             {"/hour", "/h"},     {"rpm", "/min"},
                                             {"tpm", "/min"},     {"rps", "/s"}};
  return suggest_unit(text, synonyms);
}

std::string suggest_count(std::string_view text) {
  const std::size_t first = text.find_first_not_of('0');
  if (!text.empty() && text[0] == '0' && first != std::string_view::npos && first > 0 &&
      parse_count(text.substr(first))) {
    return "write " + std::string(text.substr(first));
  }
  std::string digits;
  for (const char c : text) {
    if (is_digit(c)) digits += c;
    if (!is_digit(c) && c != '_' && c != ',') return {};
  }
  return parse_count(digits) ? "write " + digits : std::string{};
}

template <class Value>
Fault check_quantity(const Key& key, const Result<Value>& value, double scale,
                     std::string suggestion) {
  if (!value) return ValueFault{value.error().message, std::move(suggestion)};
  return check_bounds(key, static_cast<double>(*value) * scale);
}

Fault check_duration(const Key& key, std::string_view text) {
  if (key.off_allowed && text == "off") return std::nullopt;
  const auto value = parse_duration(text);
  if (!value) return ValueFault{value.error().message, suggest_duration(text)};
  return check_bounds(key, std::chrono::duration<double>(*value).count());
}

Fault check_flag(const YamlNode& node) {
  if (node.plain && (node.text == "true" || node.text == "false")) return std::nullopt;
  const std::string word = lower(node.text.substr(0, 8));
  std::string suggestion;
  if (word == "yes" || word == "on" || word == "true" || word == "1") suggestion = "write true";
  if (word == "no" || word == "off" || word == "false" || word == "0") suggestion = "write false";
  return ValueFault{"true or false is expected, not " + quoted(node.text), suggestion};
}

Fault check_choice(const Key& key, std::string_view text) {
  if (std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end()) return {};
  if (key.path_allowed && text.substr(0, 4) == "/v1/") return std::nullopt;
  const auto known = strings(key.choices);
  std::string suggestion = did_you_mean(text, known);
  return ValueFault{quoted(text) + " is not known here; it is " + one_of(known),
                    std::move(suggestion)};
}

Fault check_variable(std::string_view text) {
  bool fine = !text.empty() && text.size() <= 256 && !is_digit(text[0]);
  for (const char c : text) fine = fine && (is_letter(c) || is_digit(c) || c == '_');
  if (fine) return std::nullopt;
  return ValueFault{"this is not the name of an environment variable",
                    "write the name, like CLOUD_KEY; never the key itself"};
}

Fault check_address(std::string_view text) {
  const auto value = parse_host_port(text);
  if (value) return std::nullopt;
  const auto port = parse_count(text);
  std::string suggestion;
  if (port && *port <= 65535) suggestion = "write 127.0.0.1:" + std::string(text);
  return ValueFault{value.error().message, std::move(suggestion)};
}

Fault check_url(std::string_view text) {
  const auto value = parse_url(text);
  if (value) return std::nullopt;
  std::string suggestion;
  if (text.find("://") == std::string_view::npos && parse_url("http://" + std::string(text))) {
    suggestion = "write http://" + std::string(text);
  }
  return ValueFault{value.error().message, std::move(suggestion)};
}

Fault check_range(std::string_view text) {
  const auto range = parse_token_range(text);
  if (range && range->min <= range->max) return std::nullopt;
  if (range) return ValueFault{"this range holds no number", "the smaller number comes first"};
  return ValueFault{"a range is like '>16000', '<2000' or '1000..4000'", {}};
}

/// No control characters: a text may end up in a header field, a log line or a path.
Fault check_text(std::string_view text) {
  if (text.empty()) return ValueFault{"the text is empty", {}};
  if (text.size() > text_bytes_max) return ValueFault{"the text is longer than 4096 bytes", {}};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      return ValueFault{"the text holds a line break or another control character", {}};
    }
  }
  return std::nullopt;
}

/// ${NAME} would be sent as it stands, even as a key (CFG-01).
Fault check_interpolation(const Key& key, std::string_view text) {
  const auto begin = text.find("${");
  if (begin == std::string_view::npos) return std::nullopt;
  const auto end = text.find('}', begin);
  std::string variable(
      text.substr(begin + 2, end == std::string_view::npos ? 64 : end - begin - 2));
  const auto colon = variable.find_first_of(":-");
  if (colon != std::string::npos) variable.resize(colon);
  const bool is_name = !check_variable(variable);
  std::string shown = is_name ? "${" + variable + "}" : "${…}";
  std::string suggestion = "keys come from api_key_env: NAME";
  if (is_name) {
    suggestion = key.type == ValueType::variable ? "write " + variable
                                                 : "for a key write api_key_env: " + variable;
  }
  return ValueFault{shown + " is not replaced: variables are not put into values", suggestion};
}

}  // namespace

std::optional<ValueFault> check_value(const Key& key, const YamlNode& node) {
  const std::string& text = node.text;
  if (auto fault = check_text(text)) return fault;
  if (auto fault = check_interpolation(key, text)) return fault;
  switch (key.type) {
    case ValueType::flag:
      return check_flag(node);
    case ValueType::count:
      return check_quantity(key, parse_count(text), 1, suggest_count(text));
    case ValueType::number:
      return check_quantity(key, parse_number(text), 1, {});
    case ValueType::duration:
      return check_duration(key, text);
    case ValueType::size:
      return check_quantity(key, parse_size(text), 1, suggest_size(text));
    case ValueType::rate:
      return check_quantity(key, parse_rate_per_minute(text), 1, suggest_rate(text));
    case ValueType::share:
      return check_quantity(key, parse_share(text), 1, suggest_share(text));
    case ValueType::range:
      return check_range(text);
    case ValueType::url:
    case ValueType::urls:
      return check_url(text);
    case ValueType::address:
      return check_address(text);
    case ValueType::variable:
      return check_variable(text);
    case ValueType::choice:
      return check_choice(key, text);
    case ValueType::texts:
      return key.choices.empty() ? std::nullopt : check_choice(key, text);
    default:
      return std::nullopt;
  }
}

std::string_view describe(ValueType type) {
  switch (type) {
    case ValueType::flag:
      return "true or false";
    case ValueType::count:
    case ValueType::number:
      return "a number";
    case ValueType::duration:
      return "a duration, like 5s";
    case ValueType::size:
      return "a size, like 32MiB";
    case ValueType::rate:
      return "a rate, like 600/min";
    case ValueType::share:
      return "a share, like 20%";
    case ValueType::range:
      return "a range, like '>16000'";
    case ValueType::url:
      return "a URL";
    case ValueType::address:
      return "host:port";
    case ValueType::variable:
      return "the name of a variable";
    case ValueType::texts:
      return "a text or a list of texts";
    case ValueType::urls:
      return "a list of URLs";
    case ValueType::text_map:
      return "a map of names and texts";
    case ValueType::section:
    case ValueType::sections:
      return "a map of keys";
    case ValueType::section_list:
      return "a list";
    case ValueType::text:
    case ValueType::choice:
      break;
  }
  return "a text";
}

std::optional<ValueFault> check_name(std::string_view name) {
  bool fine = !name.empty() && name.size() <= name_bytes_max;
  for (const char c : name) {
    fine = fine && (is_letter(c) || is_digit(c) ||
                    std::string_view("-_.:/@").find(c) != std::string_view::npos);
  }
  if (fine) return std::nullopt;
  return ValueFault{quoted(name) + " is not a name",
                    "use up to 64 of the letters a-z, A-Z, digits and - _ . : / @"};
}

bool is_field_name(std::string_view name) {
  if (name.empty() || name.size() > 256) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

}  // namespace flashgate

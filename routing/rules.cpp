#include "routing/rules.hpp"

#include <algorithm>
#include <array>

namespace flashgate {
namespace {

constexpr std::int64_t count_max = INT64_MAX / 10'000'000;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  text = trimmed(text);
  std::int64_t unit = 1;
  if (!text.empty() && (text.back() == 'k' || text.back() == 'K')) unit = 1000;
  if (!text.empty() && text.back() == 'M') unit = 1'000'000;
  if (unit != 1) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  std::int64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || n > count_max) return std::nullopt;
    n = n * 10 + (c - '0');
  }
  if (n > INT64_MAX / unit) return std::nullopt;
  return n * unit;
}

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [text](const std::string& p) { return wildcard_match(p, text); });
}

template <class T>
bool holds(const std::vector<T>& wanted, T value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool range_holds(const std::optional<TokenRange>& range, std::int64_t n) {
  return !range || range->holds(n);
}

bool flag_holds(const std::optional<bool>& wanted, bool value) {
  return !wanted || *wanted == value;
}

bool tag_holds(const When& when, const RuleFacts& in) {
  if (when.tag.empty()) return true;
  if (!in.key_tags) return false;
  return std::any_of(in.key_tags->begin(), in.key_tags->end(),
                     [&](const std::string& tag) { return any_matches(when.tag, tag); });
}

bool headers_hold(const When& when, const RuleFacts& in) {
  for (const auto& pair : when.header) {
    const std::string& name = pair.first;
    const std::string& wanted = pair.second;
    if (!in.headers) return false;
    const bool found =
        std::any_of(in.headers->begin(), in.headers->end(), [&](const HeaderField& field) {
          return iequals(field.name, name) && (wanted == "*" || field.value == wanted);
        });
    if (!found) return false;
  }
  return true;
}

std::string_view request_language(const RequestFacts& facts) {
  return name(detect_language(facts.last_user_text));
}

bool language_holds(const When& when, const RequestFacts& facts) {
  if (when.language.empty()) return true;
  const std::string_view language = request_language(facts);
  return std::find(when.language.begin(), when.language.end(), language) != when.language.end();
}

std::string_view format_name(ResponseFormat format) {
  constexpr std::array<std::string_view, 4> names{"none", "text", "json_object", "json_schema"};
  const auto index = static_cast<std::size_t>(format);
  return index < names.size() ? names[index] : "none";
}

}  // namespace

std::optional<TokenRange> parse_token_range(std::string_view text) {
  text = trimmed(text);
  TokenRange range;
  if (starts_with(text, ">=") || starts_with(text, ">")) {
    const bool with_end = starts_with(text, ">=");
    const auto n = parse_count(text.substr(with_end ? 2 : 1));
    if (!n || (!with_end && *n == INT64_MAX)) return std::nullopt;
    range.min = with_end ? *n : *n + 1;
    return range;
  }
  if (starts_with(text, "<=") || starts_with(text, "<")) {
    const bool with_end = starts_with(text, "<=");
    const auto n = parse_count(text.substr(with_end ? 2 : 1));
    if (!n || (!with_end && *n == 0)) return std::nullopt;  // "<0" could never hold
    range.max = with_end ? *n : *n - 1;
    return range;
  }
  const std::size_t dots = text.find("..");
  if (dots != std::string_view::npos) {
    const auto low = parse_count(text.substr(0, dots));
    const auto high = parse_count(text.substr(dots + 2));
    if (!low || !high || *low > *high) return std::nullopt;
    return TokenRange{*low, *high};
  }
  const auto exact = parse_count(text);
  if (!exact) return std::nullopt;
  return TokenRange{*exact, *exact};
}

bool wildcard_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool rule_matches(const When& when, const RuleFacts& in) {
  const RequestFacts& facts = *in.facts;
  if (!when.model.empty() && !any_matches(when.model, in.model)) return false;
  if (!when.key.empty() && !any_matches(when.key, in.key_name)) return false;
  if (when.max_tokens && !facts.max_tokens) return false;
  return tag_holds(when, in) && holds(when.task, in.task) &&
         holds(when.response_format, facts.response_format) &&
         range_holds(when.input_tokens, in.input_tokens) &&
         range_holds(when.max_tokens, facts.max_tokens.value_or(0)) &&
         range_holds(when.turns, facts.turns) && flag_holds(when.stream, facts.stream) &&
         flag_holds(when.tools, facts.tools) && flag_holds(when.images, facts.images) &&
         headers_hold(when, in) && language_holds(when, facts);
}

std::string describe_match(const When& when, const RuleFacts& in) {
  std::string out;
  const auto add = [&out](std::string_view what, std::string_view value) {
    if (!out.empty()) out += ", ";
    out += what;
    if (!value.empty()) out.append(" ").append(value);
  };
  const RequestFacts& facts = *in.facts;
  if (!when.model.empty()) add("model", in.model);
  if (!when.key.empty()) add("key", in.key_name);
  if (!when.tag.empty()) add("key tag", {});
  if (!when.task.empty()) add("task", name(in.task));
  if (!when.response_format.empty()) add("response_format", format_name(facts.response_format));
  if (when.input_tokens) add("input_tokens", std::to_string(in.input_tokens));
  if (when.max_tokens) add("max_tokens", std::to_string(facts.max_tokens.value_or(0)));
  if (when.turns) add("turns", std::to_string(facts.turns));
  if (when.stream) add(*when.stream ? "stream" : "no stream", {});
  if (when.tools) add(*when.tools ? "tools" : "no tools", {});
  if (when.images) add(*when.images ? "images" : "no images", {});
  if (!when.language.empty()) add("language", request_language(facts));
  for (const auto& [header, value] : when.header) add("header", header);
  return out;
}

}  // namespace flashgate

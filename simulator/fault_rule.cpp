#include "simulator/fault_rule.hpp"

#include <algorithm>
#include <array>

#include "simulator/dice.hpp"
#include "simulator/text_values.hpp"

namespace flashgate {
namespace {

constexpr std::size_t rules_max = 64;
constexpr std::size_t rule_bytes_max = 256 * 1024;

struct KindRow {
  FaultKind kind;
  std::string_view name;
  std::string_view value;      // the argument that `kind=value` sets; empty: none
  std::string_view arguments;  // space-separated
  std::string_view about;
};

constexpr std::string_view places = "after_bytes after_body_bytes after_events plus_bytes";

constexpr std::array kinds{
    KindRow{FaultKind::none, "none", "", "", "a clean answer; later rules are not asked"},
    KindRow{FaultKind::refuse, "refuse", "", "", "reset right after accept, nothing read"},
    KindRow{FaultKind::reset, "reset", "after_bytes", "PLACES", "RST at a position"},
    KindRow{FaultKind::cut, "cut", "after_bytes", "PLACES", "FIN at a position"},
    KindRow{FaultKind::stall, "stall", "for", "for at PLACES",
            "silence at a position (at=before_headers|after_headers), then the rest"},
    KindRow{FaultKind::garbage, "garbage", "bytes", "bytes PLACES",
            "random bytes instead of the answer or at a position, then FIN"},
    KindRow{FaultKind::wrong_length, "wrong_length", "delta", "delta",
            "Content-Length off by delta (default +10), then FIN"},
    KindRow{FaultKind::no_last_chunk, "no_last_chunk", "", "", "no last chunk, then FIN"},
    KindRow{FaultKind::bad_chunk, "bad_chunk", "text", "text after_events",
            "a chunk-size line that is not a number (default zz)"},
    KindRow{FaultKind::cl_te, "cl_te", "", "", "Content-Length beside Transfer-Encoding"},
    KindRow{FaultKind::until_close, "until_close", "", "", "no framing; FIN ends the body"},
    KindRow{FaultKind::http10, "http10", "", "", "HTTP/1.0, FIN ends the body"},
    KindRow{FaultKind::interim, "interim", "status", "status count",
            "1xx answers before the real one (default 103)"},
    KindRow{FaultKind::status, "status", "status",
            "status shape code message retry_after retry_after_ms header",
            "an error answer; shape=openai|detail|object|string|anthropic|html|text|empty"},
    KindRow{FaultKind::redirect, "redirect", "to", "to status", "3xx (default 307) with Location"},
    KindRow{FaultKind::error_event, "error_event", "after_events",
            "after_events code message status named done",
            "an error inside a 200: an event of the stream, or the unary body"},
    KindRow{FaultKind::empty, "empty", "", "", "200 with empty content"},
    KindRow{FaultKind::role_only, "role_only", "then", "then",
            "the first event, then then=reset|cut"},
    KindRow{FaultKind::no_done, "no_done", "", "", "the end marker is missing"},
    KindRow{FaultKind::no_finish, "no_finish", "", "", "the finish reason is missing"},
    KindRow{FaultKind::sse, "sse", "style", "style",
            "style=crlf|cr|mixed|bom|no_space|comments|preamble|usage_null|split"},
    KindRow{FaultKind::one_byte, "one_byte", "", "", "every byte its own send"},
    KindRow{FaultKind::tiny_chunks, "tiny_chunks", "", "", "every byte its own chunk"},
    KindRow{FaultKind::drip, "drip", "bytes", "bytes pause",
            "so many bytes (default 1), then a pause (default 20ms)"},
    KindRow{FaultKind::huge_line, "huge_line", "bytes", "bytes style after_events",
            "an event of so many bytes (default 1m); style=endless: no line end, then FIN"},
    KindRow{FaultKind::big_header, "big_header", "bytes", "bytes count",
            "count headers of so many bytes (default one of 100k)"},
    KindRow{FaultKind::gzip, "gzip", "", "", "Content-Encoding: gzip"},
    KindRow{FaultKind::close_idle, "close_idle", "for", "for",
            "FIN after the answer although it was kept alive"},
    KindRow{FaultKind::extra, "extra", "text", "text",
            "more bytes after the answer (default: a second answer)"},
    KindRow{FaultKind::raw, "raw", "text", "text keep", "exactly these bytes, then FIN"},
};

constexpr std::string_view conditions = "probability every requests attempts path model on stream";

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t space = list.find(' ');
    if (list.substr(0, space) == word) return true;
    if (space == std::string_view::npos) return false;
    list.remove_prefix(space + 1);
  }
  return false;
}

bool takes(const KindRow& row, std::string_view argument) {
  return has_word(row.arguments, argument) ||
         (has_word(row.arguments, "PLACES") && has_word(places, argument));
}

std::string arguments_of(const KindRow& row) {
  std::string out(row.arguments);
  if (const std::size_t at = out.find("PLACES"); at != std::string::npos) {
    out.replace(at, 6, places);
  }
  return out;
}

Error refusal(std::string message) {
  return {"bad_fault", std::move(message)};
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 80)) + (text.size() > 80 ? "…'" : "'");
}

template <class T, class U>
bool assign(T& to, const std::optional<U>& from) {
  if (!from) return false;
  to = static_cast<T>(*from);
  return true;
}

bool assign_bool(bool& to, std::string_view value) {
  to = value == "true" || value == "yes" || value == "1";
  return to || value == "false" || value == "no" || value == "0";
}

bool assign_span(std::uint64_t& first, std::uint64_t& last, std::string_view value) {
  const auto span = read_span(value);
  if (!span) return false;
  first = span->first;
  last = span->second;
  return true;
}

bool assign_status(int& to, std::string_view value) {
  const auto status = read_count(value);
  if (!status || *status < 100 || *status > 999) return false;
  to = static_cast<int>(*status);
  return true;
}

bool assign_delta(std::int64_t& to, std::string_view value) {
  const bool minus = value.starts_with('-');
  if (minus || value.starts_with('+')) value.remove_prefix(1);
  const auto amount = read_count(value);
  if (!amount || *amount > (1ull << 40)) return false;
  to = static_cast<std::int64_t>(*amount) * (minus ? -1 : 1);
  return true;
}

bool assign_header(FaultRule& rule, std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view content = value.substr(colon + 1);
  while (content.starts_with(' ')) content.remove_prefix(1);
  rule.headers.emplace_back(std::string(value.substr(0, colon)), std::string(content));
  return true;
}

/// A condition. False: the value is not understood.
bool set_condition(FaultWhen& when, std::string_view key, std::string_view value) {
  if (key == "probability") return assign(when.probability, read_share(value));
  if (key == "every") return assign(when.every, read_count(value)) && when.every > 0;
  if (key == "requests") return assign_span(when.request_first, when.request_last, value);
  if (key == "attempts") return assign_span(when.attempt_first, when.attempt_last, value);
  if (key == "path") return !(when.path = value).empty();
  if (key == "model") return !(when.model = value).empty();
  if (key == "on") return !(when.on = value).empty();
  bool stream = false;
  if (!assign_bool(stream, value)) return false;
  when.stream = stream;
  return true;
}

bool set_style(FaultRule& rule, std::string_view value) {
  static constexpr std::array<std::pair<FaultKind, std::string_view>, 5> styles{{
      {FaultKind::stall, "before_headers after_headers"},
      {FaultKind::status, "openai detail object string anthropic html text empty"},
      {FaultKind::role_only, "reset cut"},
      {FaultKind::sse, "crlf cr mixed bom no_space comments preamble usage_null split"},
      {FaultKind::huge_line, "event endless"},
  }};
  for (const auto& [kind, words] : styles) {
    if (kind == rule.kind && !has_word(words, value)) return false;
  }
  rule.style = value;
  return true;
}

bool set_argument(FaultRule& rule, std::string_view key, std::string_view value) {
  if (key == "after_bytes") return assign(rule.place.after_bytes.emplace(), read_count(value));
  if (key == "after_body_bytes") {
    return assign(rule.place.after_body_bytes.emplace(), read_count(value));
  }
  if (key == "after_events") return assign(rule.place.after_events.emplace(), read_count(value));
  if (key == "plus_bytes") return assign(rule.place.plus_bytes, read_count(value));
  if (key == "status") return assign_status(rule.status, value);
  if (key == "bytes") return assign(rule.bytes, read_count(value)) && rule.bytes <= (1ull << 30);
  if (key == "count") return assign(rule.count, read_count(value)) && rule.count <= 10000;
  if (key == "delta") return assign_delta(rule.delta, value);
  if (key == "for" || key == "pause") return assign(rule.duration, read_duration(value));
  if (key == "at" || key == "shape" || key == "style" || key == "then") {
    return set_style(rule, value);
  }
  if (key == "text" || key == "message" || key == "to") {
    rule.text = value;
    return true;
  }
  if (key == "code") return !(rule.code = value).empty();
  if (key == "retry_after") return rule.headers.emplace_back("retry-after", value), true;
  if (key == "retry_after_ms") return rule.headers.emplace_back("retry-after-ms", value), true;
  if (key == "header") return assign_header(rule, value);
  if (key == "named") {
    rule.style = "named";
    bool named = false;
    return assign_bool(named, value) && named;
  }
  return assign_bool(rule.keep, value);  // keep, done
}

void fill_defaults(FaultRule& rule) {
  if (rule.kind == FaultKind::interim && rule.status == 0) rule.status = 103;
  if (rule.kind == FaultKind::status && rule.status == 0) rule.status = 500;
  if (rule.kind == FaultKind::redirect && rule.status == 0) rule.status = 307;
  if (rule.kind == FaultKind::garbage && rule.bytes == 0) rule.bytes = 64;
  if (rule.kind == FaultKind::wrong_length && rule.delta == 0) rule.delta = 10;
  if (rule.kind == FaultKind::bad_chunk && rule.text.empty()) rule.text = "zz";
  if (rule.kind == FaultKind::drip && rule.bytes == 0) rule.bytes = 1;
  if (rule.kind == FaultKind::drip && rule.duration == Duration{}) {
    rule.duration = std::chrono::milliseconds(20);
  }
  if (rule.kind == FaultKind::huge_line && rule.bytes == 0) rule.bytes = 1024 * 1024;
  if (rule.kind == FaultKind::big_header && rule.bytes == 0) rule.bytes = 100 * 1024;
}

const KindRow* find_kind(std::string_view word) {
  const auto at = std::find_if(kinds.begin(), kinds.end(),
                               [word](const KindRow& row) { return row.name == word; });
  return at == kinds.end() ? nullptr : &*at;
}

Error unknown_kind(std::string_view word) {
  std::string message = "unknown fault " + quoted(word) + "; one of:";
  for (const KindRow& row : kinds) message += " " + std::string(row.name);
  return refusal(std::move(message));
}

/// `key=value` of a rule whose kind is known.
Result<void> set_item(FaultRule& rule, const KindRow& row, std::string_view key,
                      std::string_view raw_value) {
  const auto value = unescape(raw_value);
  if (!value) {
    return refusal("the value of " + quoted(key) +
                   " has an unknown escape; use \\r \\n \\t \\0 \\\\ \\xHH");
  }
  bool understood = false;
  if (takes(row, key)) {
    understood = set_argument(rule, key, *value);
  } else if (has_word(conditions, key)) {
    understood = set_condition(rule.when, key, *value);
  } else {
    return refusal("fault '" + std::string(row.name) + "' has no argument " + quoted(key) +
                   "; it takes: " + arguments_of(row) + (row.arguments.empty() ? "" : " ") +
                   std::string(conditions));
  }
  if (understood) return {};
  return refusal("fault '" + std::string(row.name) + "': " + quoted(*value) + " is no value for " +
                 quoted(key) + "; " + std::string(row.about));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool holds(const FaultRule& rule, const FaultFacts& facts, std::uint64_t seed, std::size_t index) {
  const FaultWhen& when = rule.when;
  if (facts.ordinal < when.request_first || facts.ordinal > when.request_last) return false;
  if (facts.attempt < when.attempt_first || facts.attempt > when.attempt_last) return false;
  if (when.every > 0 && facts.ordinal % when.every != 0) return false;
  if (!facts.path.starts_with(when.path)) return false;
  if (!when.model.empty() && facts.model != when.model) return false;
  if (!when.on.empty() && facts.name != when.on) return false;
  if (when.stream && *when.stream != facts.stream) return false;
  if (when.probability >= 1) return true;
  Dice dice(mix_bits(seed ^ mix_bits(facts.ordinal * 64 + index)));
  return dice.unit() < when.probability;
}

}  // namespace

std::string_view name(FaultKind kind) {
  for (const KindRow& row : kinds) {
    if (row.kind == kind) return row.name;
  }
  return "none";
}

Result<FaultRule> parse_fault_rule(std::string_view text) {
  if (text.size() > rule_bytes_max) return refusal("a fault rule has at most 256 KiB");
  text = trimmed(text);
  const std::size_t kind_end = text.find_first_of("=:,");
  const KindRow* const row = find_kind(trimmed(text.substr(0, kind_end)));
  if (row == nullptr) return unknown_kind(text.substr(0, kind_end));
  FaultRule rule{};
  rule.kind = row->kind;
  bool first = kind_end != std::string_view::npos && text[kind_end] != ',';
  std::string_view rest = kind_end == std::string_view::npos ? "" : text.substr(kind_end + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const bool keyed = equals != std::string_view::npos &&
                       (takes(*row, key) || has_word(conditions, key) || !first);
    if (!keyed && (!first || row->value.empty())) {
      return refusal("fault '" + std::string(row->name) + "': " + quoted(item) +
                     " is not argument=value");
    }
    const Result<void> set = keyed ? set_item(rule, *row, key, item.substr(equals + 1))
                                   : set_item(rule, *row, row->value, item);
    if (set.has_error()) return set.error();
    first = false;
  }
  fill_defaults(rule);
  return rule;
}

Result<std::vector<FaultRule>> parse_fault_rules(std::string_view text) {
  std::vector<FaultRule> rules;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    if (rules.size() == rules_max) return refusal("at most 64 fault rules");
    auto rule = parse_fault_rule(text.substr(0, end));
    if (rule.has_error()) return rule.error();
    rules.push_back(std::move(*rule));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return rules;
}

bool is_for_accept(const FaultRule& rule) {
  const FaultWhen& when = rule.when;
  return rule.kind == FaultKind::refuse && when.path.empty() && when.model.empty() &&
         !when.stream && when.attempt_first == 1 &&
         when.attempt_last == std::numeric_limits<std::uint64_t>::max();
}

std::vector<FaultRule> choose_faults(const std::vector<FaultRule>& rules, const FaultFacts& facts,
                                     std::uint64_t seed) {
  std::vector<FaultRule> chosen;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!holds(rules[i], facts, seed, i)) continue;
    if (rules[i].kind == FaultKind::none) break;
    chosen.push_back(rules[i]);
  }
  return chosen;
}

std::string describe_faults() {
  std::string out;
  for (const KindRow& row : kinds) {
    out += std::string(row.name) + ": " + std::string(row.about);
    if (!row.arguments.empty()) out += " [" + arguments_of(row) + "]";
    out += '\n';
  }
  out += "conditions: " + std::string(conditions) + '\n';
  return out;
}

}  // namespace flashgate

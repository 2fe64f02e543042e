#include "protocol/exchange.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <iterator>

#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::array<std::string_view, outcome_count> outcome_names = {
    "ok",
    "client_error",
    "unauthorized",
    "rate_limited",
    "overloaded",
    "no_backend",
    "client_closed",
    "client_stalled",
    "upstream_error",
    "upstream_timeout",
    "upstream_idle",
    "upstream_reset",
    "upstream_protocol_error",
    "truncated",
    "in_band_error",
    "shutting_down",
    "internal_error",
};

constexpr std::size_t text_bytes_max = 512;  // of any one field in the line

class Line {
 public:
  explicit Line(std::string& out) : out_(out) { out_ += '{'; }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json_string(out_, value.substr(0, utf8_prefix(value, text_bytes_max)));
  }
  void text_or_null(std::string_view key, std::string_view value) {
    if (value.empty())
      null(key);
    else
      text(key, value);
  }
  void number(std::string_view key, std::int64_t value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), FMT_STRING("{}"), value);
  }
  void boolean(std::string_view key, bool value) {
    begin(key);
    out_ += value ? "true" : "false";
  }
  void milliseconds(std::string_view key, Duration value) {
    begin(key);
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(value).count();
    fmt::format_to(std::back_inserter(out_), FMT_STRING("{}.{:03}"), micros / 1000, micros % 1000);
  }
  void null(std::string_view key) {
    begin(key);
    out_ += "null";
  }
  void real(std::string_view key, double value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), FMT_STRING("{:.9g}"), value);
  }
  void time(std::string_view key, WallTime value) {
    begin(key);
    out_ += '"';
    append_utc(out_, value);
    out_ += '"';
  }
  void end() { out_ += "}\n"; }

 private:
  void begin(std::string_view key) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }
  std::string& out_;
};

void append_tokens(Line& line, const Exchange& exchange) {
  line.number("system_tokens", exchange.system_tokens);
  line.number("input_tokens", exchange.input_tokens);
  line.number("output_tokens", exchange.output_tokens);
  line.number("cached_tokens", exchange.cached_tokens);
  line.number("reasoning_tokens", exchange.reasoning_tokens);
  line.text("token_source", name(exchange.token_source));
}

void append_times(Line& line, const Exchange& exchange) {
  line.milliseconds("queue_ms", exchange.queue);
  if (exchange.ttft < Duration::zero())
    line.null("ttft_ms");
  else
    line.milliseconds("ttft_ms", exchange.ttft);
  line.milliseconds("total_ms", exchange.total);
  const bool has_tpot = exchange.ttft >= Duration::zero() && exchange.output_tokens > 1;
  if (has_tpot)
    line.milliseconds("tpot_ms", (exchange.total - exchange.ttft) / (exchange.output_tokens - 1));
  else
    line.null("tpot_ms");
}

}  // namespace

std::string_view name(Outcome outcome) {
  return outcome_names[static_cast<std::size_t>(outcome)];
}

std::string_view name(TokenSource source) {
  switch (source) {
    case TokenSource::usage:
      return "usage";
    case TokenSource::tokenizer:
      return "tokenizer";
    case TokenSource::estimate:
      break;
  }
  return "estimate";
}

void append_utc(std::string& out, WallTime time) {
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(millis / 1000);
  // The broken-down time changes once a second; formatting it is most of the cost of a line.
  thread_local std::time_t cached_second = -1;
  thread_local std::array<char, 32> cached{};
  thread_local std::size_t cached_size = 0;
  if (seconds != cached_second) {
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    cached_size = std::strftime(cached.data(), cached.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    cached_second = seconds;
  }
  out.append(cached.data(), cached_size);
  fmt::format_to(std::back_inserter(out), FMT_STRING(".{:03}Z"), millis % 1000);
}

void append_log_line(std::string& out, const Exchange& exchange) {
  Line line(out);
  line.time("ts", exchange.started);
  line.text("request_id", exchange.request_id);
  line.text_or_null("client_request_id", exchange.client_request_id);
  line.null("key");
  line.text("method", exchange.method);
  line.text("path", exchange.path);
  line.text_or_null("model", exchange.model);
  line.boolean("stream", exchange.stream);
  line.text_or_null("rule", exchange.rule);
  line.text_or_null("reason", exchange.reason);
  line.text_or_null("profile", exchange.profile);
  line.number("attempts", exchange.attempts);
  line.text_or_null("arm", exchange.arm);
  if (exchange.has_task)
    line.text("task", name(exchange.task));
  else
    line.null("task");
  line.number("turns", exchange.turns);
  append_tokens(line, exchange);
  append_times(line, exchange);
  line.number("status", exchange.status);
  line.text("outcome", name(exchange.outcome));
  line.text_or_null("error_code", exchange.error_code);
  line.text_or_null("finish_reason", exchange.finish_reason);
  line.boolean("retried", exchange.retried);
  line.boolean("repaired", false);
  line.boolean("format_failed", false);
  line.boolean("possible_duplicate", exchange.possible_duplicate);
  if (exchange.done_missing) line.boolean("done_missing", true);
  if (exchange.finish_missing) line.boolean("finish_missing", true);
  line.text_or_null("template", exchange.template_id);
  if (exchange.has_cost)
    line.real("cost", exchange.cost);
  else
    line.null("cost");
  line.end();
}

}  // namespace flashgate

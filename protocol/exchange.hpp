#pragma once
// One finished call: what the recorder knows, and its line in the call log (names: gateway
// contract, "Records"). The outcome is not the status. Plain value; formatting is pure, any thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "text/task_class.hpp"

namespace flashgate {

enum class Outcome {
  ok,
  client_error,
  unauthorized,
  rate_limited,
  overloaded,
  no_backend,
  client_closed,
  client_stalled,
  upstream_error,
  upstream_timeout,
  upstream_idle,
  upstream_reset,
  upstream_protocol_error,
  truncated,
  in_band_error,
  shutting_down,
  internal_error,
};
inline constexpr int outcome_count = static_cast<int>(Outcome::internal_error) + 1;
std::string_view name(Outcome outcome);

enum class TokenSource { estimate, tokenizer, usage };
std::string_view name(TokenSource source);

struct Exchange {
  WallTime started{};
  std::string request_id{};
  std::string client_request_id{};
  std::string method{};
  std::string path{};
  std::string model{};  // as the client wrote it
  std::string rule{};
  std::string reason{};
  std::string profile{};
  std::string arm{};
  std::string error_code{};
  std::string finish_reason{};
  std::string template_id{};
  TaskClass task = TaskClass::chat;
  bool has_task = false;
  bool stream = false;
  int attempts = 0;
  int turns = 0;
  int status = 0;
  Outcome outcome = Outcome::internal_error;
  std::int64_t system_tokens = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t reasoning_tokens = 0;
  TokenSource token_source = TokenSource::estimate;
  Duration queue{};
  Duration ttft{-1};  // negative: no content came
  Duration total{};
  Duration upstream{};  // spent waiting for backends; total less this is our own overhead
  bool retried = false;
  bool possible_duplicate = false;
  bool done_missing = false;
  bool finish_missing = false;
  double cost = 0;
  bool has_cost = false;
  std::string currency{};
};

/// One JSON object and a newline; always valid JSON, whatever the fields hold.
void append_log_line(std::string& out, const Exchange& exchange);
/// 2026-11-30T23:07:29.123Z
void append_utc(std::string& out, WallTime time);

}  // namespace flashgate

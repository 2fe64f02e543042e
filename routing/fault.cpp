#include "routing/fault.hpp"

#include <array>
#include <string>

namespace flashgate {
namespace {

constexpr AttemptVerdict ok = AttemptVerdict::success;
constexpr AttemptVerdict bad = AttemptVerdict::failure;
constexpr AttemptVerdict neutral = AttemptVerdict::neutral;

//                                                      breaker  same   other  larger duplicate
constexpr AttemptFault nothing_wrong{FaultClass::none, ok, false, false, false, false};
constexpr AttemptFault client_fault{FaultClass::client_fault, neutral, false, false, false, false};
constexpr AttemptFault too_long{FaultClass::context_length, neutral, false, true, true, false};
constexpr AttemptFault backpressure{FaultClass::backpressure, neutral, true, true, false, false};
constexpr AttemptFault quota{FaultClass::quota, neutral, false, true, false, false};
constexpr AttemptFault our_key{FaultClass::upstream_auth, neutral, false, true, false, false};
constexpr AttemptFault server_error{FaultClass::transient, bad, true, true, false, false};
/// Retryable by its status, but it says nothing about the backend's health.
constexpr AttemptFault try_again{FaultClass::transient, neutral, true, true, false, false};
/// This backend can't do it and says so; another may.
constexpr AttemptFault not_here{FaultClass::transient, neutral, false, true, false, false};
constexpr AttemptFault in_band{FaultClass::in_band, bad, true, true, false, true};
constexpr AttemptFault ours{FaultClass::local, neutral, false, false, false, false};

constexpr std::size_t message_bytes_max = 4096;

std::string lower_head(std::string_view text) {
  std::string out(text.substr(0, message_bytes_max));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

template <std::size_t n>
bool holds_one_of(std::string_view text, const std::array<std::string_view, n>& parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// How backends in use say "too long". Wrong guesses are harmless: a larger window is tried, once.
constexpr std::array<std::string_view, 4> long_codes{
    "context_length_exceeded", "exceed_context_size", "context_window", "string_above_max_length"};
constexpr std::array<std::string_view, 12> long_words{
    "maximum context length", "context length",        "context window",
    "context size",           "prompt is too long",    "input is too long",
    "too many tokens",        "reduce the length",     "max_model_len",
    "maximum model length",   "longer than the model", "input length and `max_tokens` exceed"};
constexpr std::array<std::string_view, 5> quota_codes{
    "insufficient_quota", "billing", "credit_balance", "quota_exceeded", "insufficient_balance"};
constexpr std::array<std::string_view, 8> quota_words{
    "exceeded your current quota", "usage limit", "credit balance",   "insufficient balance",
    "insufficient credit",         "billing",     "payment required", "spending limit"};
constexpr std::array<std::string_view, 4> not_loaded_words{"not loaded", "try pulling",
                                                           "model is loading", "currently loading"};

bool is_quota(std::string_view code, std::string_view message) {
  return holds_one_of(code, quota_codes) || holds_one_of(message, quota_words);
}

bool is_too_long(std::string_view code, std::string_view message) {
  return holds_one_of(code, long_codes) || holds_one_of(message, long_words);
}

AttemptFault classify_server_error(int status, bool has_hint) {
  if (status == 503 || status == 529) {
    // 529 is how one vendor says "overloaded".
    return has_hint || status == 529 ? backpressure : server_error;
  }
  if (status == 501 || status == 505 || status == 508) return not_here;
  return server_error;
}

}  // namespace

AttemptFault classify_status(int status, std::string_view error_code,
                             std::string_view error_message, bool has_hint) {
  if (status >= 200 && status < 300) return nothing_wrong;
  // A redirect is not followed: it would carry the backend's key elsewhere.
  if (status >= 300 && status < 400) return not_here;
  if (status < 400 || status > 599) return classify_transport(TransportFault::protocol_error);
  const std::string code = lower_head(error_code);
  const std::string message = lower_head(error_message);
  switch (status) {
    case 401:
      return our_key;
    case 402:
      return quota;
    case 403:
      return is_quota(code, message) ? quota : our_key;
    case 408:
    case 409:
    case 425:
      return try_again;
    case 429:
      return is_quota(code, message) ? quota : backpressure;
    default:
      break;
  }
  if (is_too_long(code, message)) return too_long;
  if (status >= 500) return classify_server_error(status, has_hint);
  if (status == 400 && is_quota(code, message)) return quota;
  if (status == 404 && holds_one_of(message, not_loaded_words)) return not_here;
  return client_fault;
}

AttemptFault classify_in_band(int status, std::string_view error_code,
                              std::string_view error_message) {
  if (status >= 400 && status <= 599) {
    const AttemptFault named = classify_status(status, error_code, error_message);
    if (named.fault != FaultClass::transient) return named;
    return in_band;
  }
  const std::string code = lower_head(error_code);
  const std::string message = lower_head(error_message);
  if (is_too_long(code, message)) return too_long;
  if (is_quota(code, message)) return quota;
  if (code.find("rate_limit") != std::string::npos) return backpressure;
  return in_band;
}

AttemptFault classify_transport(TransportFault fault) {
  switch (fault) {
    case TransportFault::none:
      return nothing_wrong;
    case TransportFault::connect_refused:
    case TransportFault::connect_timeout:
    case TransportFault::connect_failed:
    case TransportFault::reset_before_response:
      return server_error;
    case TransportFault::tls_error:
      return {FaultClass::transient, bad, false, true, false, false};
    case TransportFault::stale_connection:
      return try_again;
    case TransportFault::first_byte_timeout:
      return {FaultClass::transient, bad, true, true, false, true};
    case TransportFault::reset_after_request:
    case TransportFault::idle_timeout:
    case TransportFault::protocol_error:
    case TransportFault::response_too_large:
      return {FaultClass::transient, bad, false, true, false, true};
    case TransportFault::truncated:
      return {FaultClass::truncated, bad, false, true, false, true};
    case TransportFault::empty_reply:
      return {FaultClass::empty_reply, bad, true, true, false, true};
    case TransportFault::total_timeout:
    case TransportFault::client_left:
    case TransportFault::shutting_down:
      return ours;
  }
  return ours;
}

std::string_view name(FaultClass fault) {
  switch (fault) {
    case FaultClass::none:
      return "none";
    case FaultClass::client_fault:
      return "client_fault";
    case FaultClass::context_length:
      return "context_length";
    case FaultClass::backpressure:
      return "backpressure";
    case FaultClass::quota:
      return "quota";
    case FaultClass::upstream_auth:
      return "upstream_auth";
    case FaultClass::transient:
      return "transient";
    case FaultClass::in_band:
      return "in_band";
    case FaultClass::truncated:
      return "truncated";
    case FaultClass::empty_reply:
      return "empty_reply";
    case FaultClass::local:
      return "local";
  }
  return "none";
}

std::string_view name(TransportFault fault) {
  constexpr std::array<std::string_view, 17> names{"none",
                                                   "connect_refused",
                                                   "connect_timeout",
                                                   "connect_failed",
                                                   "tls_error",
                                                   "stale_connection",
                                                   "reset_before_response",
                                                   "reset_after_request",
                                                   "first_byte_timeout",
                                                   "idle_timeout",
                                                   "protocol_error",
                                                   "response_too_large",
                                                   "truncated",
                                                   "empty_reply",
                                                   "total_timeout",
                                                   "client_left",
                                                   "shutting_down"};
  const auto index = static_cast<std::size_t>(fault);
  return index < names.size() ? names[index] : "none";
}

}  // namespace flashgate

#pragma once
// The one table of errors that clients see: situation -> HTTP status, OpenAI `type` and `code`.
// docs: gateway contract "Errors". Pure values, any thread.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace flashgate {

enum class ApiErrorKind {
  invalid_request,
  request_timeout,
  unsupported_encoding,
  loop_detected,
  invalid_api_key,
  model_not_allowed,
  model_not_found,
  unknown_path,
  wrong_method,
  body_too_large,
  headers_too_large,
  target_too_long,
  unsupported_transfer_coding,
  rate_limit_exceeded,
  overloaded,
  no_backend_available,
  shutting_down,
  upstream_connect_refused,
  upstream_connect_failed,
  upstream_reset,
  upstream_protocol_error,
  upstream_truncated,
  upstream_empty,
  upstream_in_band_error,
  upstream_error,
  upstream_tls_error,
  upstream_connect_timeout,
  upstream_first_byte_timeout,
  upstream_idle_timeout,
  total_timeout,
  client_closed,
  upstream_quota,
  upstream_auth_error,
  context_length_exceeded,
  internal_error,
};

struct ApiErrorRow {
  int status = 500;
  std::string_view type{};
  std::string_view code{};  // empty: null
};

const ApiErrorRow& api_error_row(ApiErrorKind kind);

/// What we answer. `message` says what was wrong and what would fix it.
struct ApiError {
  ApiErrorKind kind = ApiErrorKind::internal_error;
  std::string message{};
  std::string param{};                                // empty: null
  std::optional<std::chrono::seconds> retry_after{};  // sent as Retry-After, at least 1
  std::string allow{};                                // 405 only
};

/// {"error":{"message","type","param","code"}}; always valid JSON, bad UTF-8 replaced.
std::string error_body(const ApiError& error);
/// The same object as one SSE event: `data: {"error":{…}}` and an empty line.
std::string error_event(const ApiError& error);

}  // namespace flashgate

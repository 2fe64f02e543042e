#include "protocol/api_error.hpp"

#include <array>

#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::string_view invalid = "invalid_request_error";
constexpr std::string_view server = "server_error";
constexpr std::string_view upstream = "upstream_error";

ApiErrorRow row_of(ApiErrorKind kind) {
  switch (kind) {
    case ApiErrorKind::invalid_request:
      return {400, invalid, "invalid_request"};
    case ApiErrorKind::request_timeout:
      return {408, invalid, "request_timeout"};
    case ApiErrorKind::unsupported_encoding:
      return {415, invalid, "unsupported_encoding"};
    case ApiErrorKind::loop_detected:
      return {508, invalid, "loop_detected"};
    case ApiErrorKind::invalid_api_key:
      return {401, invalid, "invalid_api_key"};
    case ApiErrorKind::model_not_allowed:
      return {403, invalid, "model_not_allowed"};
    case ApiErrorKind::model_not_found:
      return {404, invalid, "model_not_found"};
    case ApiErrorKind::unknown_path:
      return {404, invalid, "unknown_path"};
    case ApiErrorKind::wrong_method:
      return {405, invalid, "method_not_allowed"};
    case ApiErrorKind::body_too_large:
      return {413, invalid, "request_too_large"};
    case ApiErrorKind::headers_too_large:
      return {431, invalid, "headers_too_large"};
    case ApiErrorKind::target_too_long:
      return {414, invalid, "target_too_long"};
    case ApiErrorKind::unsupported_transfer_coding:
      return {501, invalid, "unsupported_transfer_coding"};
    case ApiErrorKind::rate_limit_exceeded:
      return {429, "rate_limit_error", "rate_limit_exceeded"};
    case ApiErrorKind::overloaded:
      return {503, server, "overloaded"};
    case ApiErrorKind::no_backend_available:
      return {503, server, "no_backend_available"};
    case ApiErrorKind::shutting_down:
      return {503, server, "shutting_down"};
    case ApiErrorKind::upstream_connect_refused:
      return {502, upstream, "upstream_connect_refused"};
    case ApiErrorKind::upstream_connect_failed:
      return {502, upstream, "upstream_connect_failed"};
    case ApiErrorKind::upstream_reset:
      return {502, upstream, "upstream_reset"};
    case ApiErrorKind::upstream_protocol_error:
      return {502, upstream, "upstream_protocol_error"};
    case ApiErrorKind::upstream_truncated:
      return {502, upstream, "upstream_truncated"};
    case ApiErrorKind::upstream_empty:
      return {502, upstream, "upstream_empty"};
    case ApiErrorKind::upstream_in_band_error:
      return {502, upstream, "upstream_in_band_error"};
    case ApiErrorKind::upstream_error:
      return {502, upstream, "upstream_error"};
    case ApiErrorKind::upstream_tls_error:
      return {502, upstream, "upstream_tls_error"};
    case ApiErrorKind::upstream_connect_timeout:
      return {504, upstream, "upstream_connect_timeout"};
    case ApiErrorKind::upstream_first_byte_timeout:
      return {504, upstream, "upstream_first_byte_timeout"};
    case ApiErrorKind::upstream_idle_timeout:
      return {504, upstream, "upstream_idle_timeout"};
    case ApiErrorKind::total_timeout:
      return {504, upstream, "total_timeout"};
    case ApiErrorKind::client_closed:
      return {499, invalid, "client_closed"};
    case ApiErrorKind::upstream_quota:
      return {503, upstream, "upstream_quota"};
    case ApiErrorKind::upstream_auth_error:
      return {502, upstream, "upstream_auth_error"};
    case ApiErrorKind::context_length_exceeded:
      return {400, invalid, "context_length_exceeded"};
    case ApiErrorKind::internal_error:
      return {500, server, "internal_error"};
  }
  return {500, server, "internal_error"};
}

constexpr std::size_t kinds = static_cast<std::size_t>(ApiErrorKind::internal_error) + 1;

std::array<ApiErrorRow, kinds> make_table() {
  std::array<ApiErrorRow, kinds> table;
  for (std::size_t i = 0; i < kinds; ++i) table[i] = row_of(static_cast<ApiErrorKind>(i));
  return table;
}

void append_nullable(std::string& out, std::string_view text) {
  if (text.empty())
    out += "null";
  else
    append_json_string(out, text);
}

}  // namespace

const ApiErrorRow& api_error_row(ApiErrorKind kind) {
  static const std::array<ApiErrorRow, kinds> table = make_table();
  return table[static_cast<std::size_t>(kind)];
}

std::string error_body(const ApiError& error) {
  const ApiErrorRow& row = api_error_row(error.kind);
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, row.type);
  out += ",\"param\":";
  append_nullable(out, error.param);
  out += ",\"code\":";
  append_nullable(out, row.code);
  out += "}}";
  return out;
}

std::string error_event(const ApiError& error) {
  return "data: " + error_body(error) + "\n\n";
}

}  // namespace flashgate

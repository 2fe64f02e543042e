#include "gateway/recorder.hpp"

#include "gateway/call_log.hpp"

namespace flashgate {
namespace {

bool is_sound_id(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  for (const char c : id) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alnum && c != '-' && c != '_' && c != '.' && c != ':') return false;
  }
  return true;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += name;
  out += ": ";
  for (const char c : value) out += c >= 0x20 && c < 0x7F ? c : '?';
  out += "\r\n";
}

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

Outcome outcome_of(ApiErrorKind kind) {
  switch (kind) {
    case ApiErrorKind::invalid_api_key:
    case ApiErrorKind::model_not_allowed:
      return Outcome::unauthorized;
    case ApiErrorKind::rate_limit_exceeded:
      return Outcome::rate_limited;
    case ApiErrorKind::overloaded:
      return Outcome::overloaded;
    case ApiErrorKind::no_backend_available:
      return Outcome::no_backend;
    case ApiErrorKind::shutting_down:
      return Outcome::shutting_down;
    case ApiErrorKind::upstream_reset:
      return Outcome::upstream_reset;
    case ApiErrorKind::upstream_protocol_error:
      return Outcome::upstream_protocol_error;
    case ApiErrorKind::upstream_truncated:
      return Outcome::truncated;
    case ApiErrorKind::upstream_in_band_error:
      return Outcome::in_band_error;
    case ApiErrorKind::upstream_idle_timeout:
      return Outcome::upstream_idle;
    case ApiErrorKind::upstream_connect_timeout:
    case ApiErrorKind::upstream_first_byte_timeout:
    case ApiErrorKind::total_timeout:
      return Outcome::upstream_timeout;
    case ApiErrorKind::upstream_connect_refused:
    case ApiErrorKind::upstream_connect_failed:
    case ApiErrorKind::upstream_empty:
    case ApiErrorKind::upstream_error:
    case ApiErrorKind::upstream_tls_error:
    case ApiErrorKind::upstream_quota:
    case ApiErrorKind::upstream_auth_error:
      return Outcome::upstream_error;
    case ApiErrorKind::client_closed:
      return Outcome::client_closed;
    case ApiErrorKind::internal_error:
      return Outcome::internal_error;
    default:
      return Outcome::client_error;
  }
}

Recorder::Recorder(Session& session) : session_(session) {
  exchange_.started = std::chrono::system_clock::now();
  exchange_.request_id = session.worker().make_request_id();
  exchange_.method = session.head().method;
}

Recorder::~Recorder() {
  if (!finished_) finish(exchange_.status == 0 ? 499 : exchange_.status, Outcome::client_closed);
}

void Recorder::adopt_client_id() {
  const std::string_view id = field_value(session_.head().fields, "x-request-id");
  if (is_sound_id(id)) exchange_.client_request_id = id;
}

std::string_view Recorder::shared_id() const {
  return exchange_.client_request_id.empty() ? exchange_.request_id : exchange_.client_request_id;
}

void Recorder::append_headers(std::string& out) const {
  append_header(out, "x-request-id", shared_id());
  const Duration spent = session_.worker().now() - session_.started();
  append_header(out, "openai-processing-ms", std::to_string(milliseconds(spent)));
  append_header(out, "x-flashgate-profile", exchange_.profile);
  append_header(out, "x-flashgate-rule", exchange_.rule);
  append_header(out, "x-flashgate-reason", exchange_.reason);
  append_header(out, "x-flashgate-arm", exchange_.arm);
  if (exchange_.attempts > 0)
    append_header(out, "x-flashgate-attempts", std::to_string(exchange_.attempts));
}

Task<void> Recorder::refuse(const ApiError& error) {
  co_await refuse_with(error, outcome_of(error.kind), {});
}

Task<void> Recorder::refuse_with(const ApiError& error, Outcome outcome,
                                 std::string_view extra_headers) {
  const ApiErrorRow& row = api_error_row(error.kind);
  std::string headers(extra_headers);
  append_headers(headers);
  if (error.retry_after) {
    const auto seconds = std::max<std::chrono::seconds::rep>(1, error.retry_after->count());
    append_header(headers, "retry-after", std::to_string(seconds));
  }
  append_header(headers, "allow", error.allow);
  exchange_.error_code = row.code;
  const std::string body = error_body(error);
  // Recorded first: whoever has seen the answer finds the line.
  finish(row.status, outcome);
  co_await session_.answer(row.status, headers, "application/json", body);
}

void Recorder::finish(int status, Outcome outcome) {
  if (finished_) return;
  finished_ = true;
  exchange_.status = status;
  exchange_.outcome = outcome;
  exchange_.total = session_.worker().now() - session_.started();
  session_.worker().metrics.finished(exchange_, profile_);
  thread_local std::string line;
  line.clear();
  append_log_line(line, exchange_);
  session_.runtime().log.append(line);
}

}  // namespace flashgate

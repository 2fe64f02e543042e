#pragma once
// The fault taxonomy: one table from what went wrong to what it means for the breaker, for the same
// backend, and for the other candidates. All of it holds only before the commit point. Pure.
#include <string_view>

#include "routing/breaker.hpp"

namespace flashgate {

enum class FaultClass {
  none,
  client_fault,    // the same request gives the same answer anywhere: return it at once
  context_length,  // only a larger window helps
  backpressure,    // 429, or 503 with a hint: cool down by the hint
  quota,           // that credential is used up
  upstream_auth,   // the backend rejects our key
  transient,
  in_band,      // an error inside a 200
  truncated,    // the answer broke off
  empty_reply,  // 200 without content
  local         // ours: deadline, client left, shutting down
};

struct AttemptFault {
  FaultClass fault = FaultClass::none;
  AttemptVerdict breaker = AttemptVerdict::success;
  bool retry_same = false;
  bool try_other = false;
  bool larger_window_only = false;
  bool possible_duplicate = false;  // the backend may have done, and billed, the work
};

enum class TransportFault {
  none,
  connect_refused,
  connect_timeout,
  connect_failed,  // name not resolved, no route, proxy refused
  tls_error,
  stale_connection,       // a reused connection closed before a byte of the answer
  reset_before_response,  // while the request was still being sent
  reset_after_request,    // the whole request had been sent
  first_byte_timeout,
  idle_timeout,
  protocol_error,
  response_too_large,
  truncated,
  empty_reply,
  total_timeout,  // our own deadline
  client_left,
  shutting_down
};

/// `error_code` and `error_message` come from the body, if it had any. `has_hint`: a Retry-After
/// that we could read.
AttemptFault classify_status(int status, std::string_view error_code,
                             std::string_view error_message, bool has_hint = false);
AttemptFault classify_transport(TransportFault fault);
/// An error inside a 200. `status` is the one it names, or 0.
AttemptFault classify_in_band(int status, std::string_view error_code,
                              std::string_view error_message);

std::string_view name(FaultClass fault);
std::string_view name(TransportFault fault);

}  // namespace flashgate

#pragma once
// One proxied call from its head to its log line, and the steps it goes through. The steps stand in
// request_body, understand, attempts, attempt, reply and stream_relay; proxy_call is their order.
// One session's own; nothing here outlives the call.
#include <optional>
#include <string>
#include <vector>

#include "gateway/endpoints.hpp"
#include "gateway/recorder.hpp"
#include "protocol/body_edit.hpp"
#include "protocol/multipart.hpp"
#include "protocol/request_facts.hpp"
#include "routing/fault.hpp"
#include "routing/router.hpp"

namespace flashgate {

/// What an attempt that did not reach the client leaves behind.
struct Failure {
  AttemptFault fault{};
  ApiErrorKind kind = ApiErrorKind::internal_error;
  std::string message{};
  int status = 0;      // the backend's, when its error is passed on; 0: the row of `kind`
  std::string body{};  // that error in OpenAI shape
  std::optional<Duration> retry_after{};
  bool own_limit = false;       // ours: queue, rate limit, breaker; no backend was asked
  std::string spare_answer{};   // an empty 200, to be delivered if nothing better comes
  std::string spare_headers{};  // its content type and what else may pass
};

struct Call {
  Call(Session& owner, const Endpoint& found, NormalPath target)
      : session(owner), recorder(owner), endpoint(found), path(std::move(target)) {}

  Session& session;
  Recorder recorder;
  const Endpoint endpoint;
  const NormalPath path;

  BodyBuffer decoded{};     // when the body did not lie in the session's input as it is
  std::string_view body{};  // decoded, padded
  bool has_body = false;
  bool is_multipart = false;
  std::string content_type{};
  RequestFacts facts{};
  ByteRange multipart_model{};

  RouteDecision decision{};
  std::vector<Failure> failures{};
  bool stream_started = false;  // the head of a stream went out, no content yet (early commit)
  bool chunked = false;         // how the started stream is framed
  TimePoint deadline{};

  Worker& worker() { return session.worker(); }
  Runtime& runtime() { return session.runtime(); }
  Exchange& exchange() { return recorder.exchange(); }
  CallMonitor& monitor() { return session.monitor(); }
};

Task<void> proxy_call(Session& session, Endpoint endpoint, NormalPath path);

/// False: the call is over, answered and recorded.
Task<bool> read_body(Call& call);
/// Facts, task, route: an error to answer, or nothing.
std::optional<ApiError> understand(Call& call);
/// Attempts until one answers or none is left; answers in every case.
Task<void> run_attempts(Call& call);

/// With heartbeat.before_first_token: the head of the stream and a comment, before any backend has
/// answered. False: the client is gone.
Task<bool> beat_before_answer(Call& call);
/// The head of an event stream; `content_type` as the backend says, `fields` what else may pass.
std::string stream_head(Call& call, int status, std::string_view content_type,
                        std::string_view fields);

/// Ends a call whose client has left, stalled or must go, before anything was answered.
Task<void> end_interrupted(Call& call);

}  // namespace flashgate

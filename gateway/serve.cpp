#include <fmt/format.h>

#include "base/json_text.hpp"
#include "gateway/call.hpp"

namespace flashgate {
namespace {

constexpr std::string_view json_type = "application/json";

Task<void> serve_livez(Session& session) {
  co_await session.answer(200, "Cache-Control: no-store\r\n", json_type, "{\"status\":\"alive\"}");
}

Task<void> serve_readyz(Session& session) {
  Runtime& runtime = session.runtime();
  const bool ready = runtime.ready && !runtime.draining;
  co_await session.answer(ready ? 200 : 503, "Cache-Control: no-store\r\n", json_type,
                          ready ? "{\"status\":\"ready\"}" : "{\"status\":\"not ready\"}");
}

void append_model(std::string& out, std::string_view id) {
  out += "{\"id\":";
  append_json_string(out, id);
  out += ",\"object\":\"model\",\"created\":0,\"owned_by\":\"flashgate\"}";
}

Task<void> serve_models(Session& session, Recorder& recorder) {
  std::string body = "{\"object\":\"list\",\"data\":[";
  bool first = true;
  for (const std::string& id : visible_models(session.runtime().config.routes, {})) {
    if (!first) body += ',';
    first = false;
    append_model(body, id);
  }
  body += "]}";
  std::string headers;
  recorder.append_headers(headers);
  recorder.finish(200, Outcome::ok);
  co_await session.answer(200, headers, json_type, body);
}

Task<void> serve_model(Session& session, Recorder& recorder, const std::string& id) {
  const RouteTable& table = session.runtime().config.routes;
  const std::vector<std::string> known = visible_models(table, {});
  recorder.exchange().model = id;
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    const ApiError error{
        ApiErrorKind::model_not_found,
        "The model '" + id + "' does not exist here; GET /v1/models lists what does.", "model"};
    co_await recorder.refuse(error);
    co_return;
  }
  std::string body;
  append_model(body, id);
  std::string headers;
  recorder.append_headers(headers);
  recorder.finish(200, Outcome::ok);
  co_await session.answer(200, headers, json_type, body);
}

bool method_allowed(const Endpoint& endpoint, std::string_view method) {
  std::string_view rest = endpoint.allow;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    if (rest.substr(0, comma) == method) return true;
    rest.remove_prefix(std::min(comma + 2, rest.size()));
  }
  return false;
}

/// The next word of a field value; words are apart by spaces and tabs.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blank = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(blank));
  text.remove_prefix(word.size());
  return word;
}

/// RFC 9110 §7.6.3: our own pseudonym in Via means that the request has been here.
bool is_loop(const RequestHead& head) {
  for (const HeaderField& field : head.fields) {
    if (!iequals(field.name, "via")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view entry = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      (void)take_word(entry);  // the protocol's version
      if (iequals(take_word(entry), "flashgate")) return true;
    }
  }
  return false;
}

/// What is wrong before the body matters, if anything.
std::optional<ApiError> refuse_early(const Session& session, const Endpoint& endpoint,
                                     const NormalPath& path) {
  const RequestHead& head = session.head();
  if (!path.ok || endpoint.kind == EndpointKind::unknown)
    return ApiError{ApiErrorKind::unknown_path,
                    "There is nothing at this path; the API lives under /v1/."};
  if (!method_allowed(endpoint, head.method)) {
    ApiError error{ApiErrorKind::wrong_method, "This path does not take this method."};
    error.allow = endpoint.allow;
    return error;
  }
  if (is_loop(head))
    return ApiError{ApiErrorKind::loop_detected,
                    "The request has passed this gateway before; a base_url points back to it."};
  return std::nullopt;
}

bool body_unread(const Session& session) {
  const RequestHead& head = const_cast<Session&>(session).head();
  return head.framing == Framing::chunked ||
         (head.framing == Framing::length && head.content_length > 0);
}

}  // namespace

Task<void> proxy_call(Session& session, Endpoint endpoint, NormalPath path) {
  Call call(session, endpoint, std::move(path));
  call.recorder.adopt_client_id();
  call.exchange().path = call.path.path;
  const bool complete = co_await read_body(call);
  if (!complete) co_return;
  if (session.runtime().draining) {
    session.close_after();
    const ApiError error{
        ApiErrorKind::shutting_down, "The gateway is shutting down.", {}, std::chrono::seconds(1)};
    co_await call.recorder.refuse(error);
    co_return;
  }
  const std::optional<ApiError> refusal = understand(call);
  if (refusal) {
    co_await call.recorder.refuse(*refusal);
    co_return;
  }
  call.monitor().begin_call(call.deadline, true);
  co_await run_attempts(call);
}

Task<void> serve(Session& session) {
  NormalPath path = normalize_target(session.head().target);
  const Endpoint endpoint = find_endpoint(path.path);
  const std::optional<ApiError> error = refuse_early(session, endpoint, path);
  if (!error && endpoint.kind == EndpointKind::proxy) {
    co_await proxy_call(session, endpoint, std::move(path));
    co_return;
  }
  // None of the others reads a body; one that was announced ends the connection.
  const bool unread = body_unread(session);
  if (unread) session.close_after();
  if (!error && endpoint.kind == EndpointKind::livez) {
    co_await serve_livez(session);
  } else if (!error && endpoint.kind == EndpointKind::readyz) {
    co_await serve_readyz(session);
  } else {
    Recorder recorder(session);
    recorder.adopt_client_id();
    recorder.exchange().path = path.ok ? path.path : std::string(session.head().target);
    if (error)
      co_await recorder.refuse(*error);
    else if (endpoint.kind == EndpointKind::models)
      co_await serve_models(session, recorder);
    else {
      const std::string id = path.path.substr(11);
      co_await serve_model(session, recorder, id);
    }
  }
  if (unread) co_await session.close_gracefully();
}

}  // namespace flashgate

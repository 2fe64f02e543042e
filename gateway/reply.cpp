#include <fmt/format.h>

#include <array>

#include "gateway/attempt.hpp"
#include "protocol/content_coding.hpp"
#include "protocol/reply_facts.hpp"
#include "protocol/sse_scanner.hpp"
#include "protocol/status_phrase.hpp"

namespace flashgate {
namespace {

/// An answer up to this size is held until it is whole, so that a broken one can still be retried.
constexpr std::size_t held_bytes_max = 1U << 20;
constexpr std::size_t tail_bytes = 4096;
constexpr std::size_t error_bytes_max = 256U << 10;

/// The usage object near the end of a JSON answer that was too long to hold.
TokenUsage usage_in_tail(ApiKind api, std::string_view tail, TokenizerFamily family) {
  const std::size_t key = tail.rfind("\"usage\"");
  if (key == std::string_view::npos) return {};
  const std::size_t begin = tail.find('{', key);
  if (begin == std::string_view::npos) return {};
  std::size_t end = begin;
  int depth = 0;
  do {
    if (tail[end] == '{') ++depth;
    if (tail[end] == '}') --depth;
    ++end;
  } while (depth > 0 && end < tail.size());
  BodyBuffer object{"{\"object\":\"list\",\"data\":[],\"usage\":"};
  object.append(tail.substr(begin, end - begin));
  object.append("}");
  return read_reply_facts(api, object.view(), family).usage;
}

/// A whole answer, or as much of it as may be held.
class Reply {
 public:
  explicit Reply(Attempt& attempt) : attempt_(attempt), call_(attempt.call()) {}
  Task<bool> run();

 private:
  enum class Body { whole, too_long, ended };
  Task<Body> read_body(std::size_t bytes_max);
  void take(std::string_view input);
  bool body_ended(const IoResult& got);
  bool decode();
  bool judge_error();
  bool judge_success(ReplyFacts& facts);
  bool judge_events(ReplyFacts& facts);
  Task<bool> deliver(bool whole);
  Task<bool> pass_rest();
  std::string headers() const;
  bool is_json() const;

  Attempt& attempt_;
  Call& call_;
  BodyBuffer body_;
  std::string tail_{};  // of what was passed on
  bool begun_ = false;  // what came with the head has been taken
  bool over_ = false;
};

bool Reply::is_json() const {
  return attempt_.head().content_type.find("json") != std::string::npos;
}

void Reply::take(std::string_view input) {
  while (!input.empty()) {
    const BodyDecoder::Step step = attempt_.decoder().next(input);
    body_.append(step.payload);
    input.remove_prefix(step.consumed);
    if (step.state != BodyDecoder::State::more) break;
  }
  if (!input.empty() && attempt_.decoder().state() == BodyDecoder::State::done) {
    // More than was declared: another answer, perhaps. This connection is out of step.
    call_.runtime().upstream_excess_bytes.fetch_add(1, std::memory_order_relaxed);
    attempt_.drop_connection();
  }
}

/// An end before the end; sets the failure or `over_`.
bool Reply::body_ended(const IoResult& got) {
  if (got.error == asio::error::operation_aborted) {
    over_ = attempt_.interrupted("finish its answer");
    return false;
  }
  if (got.error == asio::error::eof && attempt_.decoder().closed()) return true;
  return attempt_.fail(TransportFault::truncated, ApiErrorKind::upstream_truncated,
                       "The backend's answer broke off");
}

Task<Reply::Body> Reply::read_body(std::size_t bytes_max) {
  BodyDecoder& decoder = attempt_.decoder();
  if (!begun_) take(attempt_.raw().view().substr(attempt_.raw_begin()));
  begun_ = true;
  attempt_.raw().clear();
  while (decoder.state() == BodyDecoder::State::more) {
    if (body_.size() > bytes_max) co_return Body::too_long;
    const TimePoint idle = call_.worker().now() + attempt_.profile().config.timeouts.idle;
    const bool by_idle = call_.facts.stream || idle < attempt_.unary_until();
    const TimePoint at = by_idle ? idle : attempt_.unary_until();
    char* const room = attempt_.raw().prepare(Worker::scratch_bytes);
    const IoResult got = co_await attempt_.read(
        room, Worker::scratch_bytes, at, by_idle ? Stop::idle_timeout : Stop::attempt_timeout);
    if (got.error) {
      if (body_ended(got)) break;
      co_return Body::ended;
    }
    take({room, got.bytes});
  }
  if (decoder.state() == BodyDecoder::State::failed) {
    attempt_.fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
                  "The backend's answer is malformed: " + std::string(decoder.why()));
    co_return Body::ended;
  }
  co_return Body::whole;
}

/// Codings are undone: what follows looks at the content, and not every client accepts them.
bool Reply::decode() {
  const std::string& coding = attempt_.head().content_encoding;
  if (coding.empty() || body_.empty()) return true;
  std::string plain;
  const std::size_t limit = call_.runtime().config.limits.body;
  if (decode_content(coding, body_.view(), limit, plain) != CodingOutcome::ok)
    return attempt_.fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
                         "The backend's Content-Encoding can't be undone");
  BodyBuffer decoded{std::string_view(plain)};
  body_ = std::move(decoded);
  return true;
}

/// A status of 300 and more; always false or, for a client's fault, left to be passed on.
bool Reply::judge_error() {
  const UpstreamHead& head = attempt_.head();
  Failure& failure = attempt_.failure();
  if (head.status < 400)
    return attempt_.fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
                         "The backend answered with a redirect, which is not followed; "
                         "base_url should name the final address");
  const ReplyFacts facts =
      read_reply_facts(call_.endpoint.api, body_.view(), attempt_.profile().config.tokenizer);
  const bool about_usage = head.status == 400 && attempt_.asked_usage() &&
                           body_.view().find("stream_options") != std::string_view::npos;
  if (about_usage) attempt_.backend().refuses_usage = true;
  failure.fault = classify_status(head.status, facts.error_code, facts.error_message,
                                  head.retry_after.has_value());
  if (about_usage) failure.fault.retry_same = true;
  attempt_.set_verdict(failure.fault.breaker);
  failure.retry_after = head.retry_after;
  failure.status = head.status;
  failure.body = normalize_error_body(head.status, body_.view());
  failure.message = "The backend of profile '" + attempt_.profile().config.name +
                    "' answered with status " + std::to_string(head.status) + ".";
  failure.kind = ApiErrorKind::upstream_error;
  switch (failure.fault.fault) {
    case FaultClass::upstream_auth:
      failure.kind = ApiErrorKind::upstream_auth_error;
      failure.status = 0;
      failure.message = "The backend rejects the gateway's key for profile '" +
                        attempt_.profile().config.name + "'; your own key is fine.";
      call_.runtime().upstream_auth_errors.fetch_add(1, std::memory_order_relaxed);
      break;
    case FaultClass::quota:
      failure.kind = ApiErrorKind::upstream_quota;
      failure.status = 0;
      failure.message = "The quota of profile '" + attempt_.profile().config.name +
                        "' at its provider is used up.";
      break;
    case FaultClass::context_length:
      failure.kind = ApiErrorKind::context_length_exceeded;
      break;
    default:
      break;
  }
  return false;
}

/// An event stream that came compressed, and so as a whole.
bool Reply::judge_events(ReplyFacts& facts) {
  SseOptions options;
  options.api = call_.endpoint.api;
  options.family = attempt_.profile().config.tokenizer;
  options.strip_usage = attempt_.asked_usage();
  options.choices = call_.facts.choices;
  SseScanner scanner(options);
  BodyBuffer kept;
  const auto keep = [&kept](const SseEvent& event) { kept.append(event.bytes); };
  scanner.feed(body_.view(), keep);
  scanner.finish(keep);
  const StreamFacts& seen = scanner.facts();
  if (seen.error_seen)
    return attempt_.fail(
        TransportFault::truncated, ApiErrorKind::upstream_in_band_error,
        "The backend sent an error in its stream: " + mask_secrets(seen.error_message));
  if (!seen.done_seen && !seen.finished)
    return attempt_.fail(TransportFault::truncated, ApiErrorKind::upstream_truncated,
                         "The backend ended the stream too early");
  facts.usage = seen.usage;
  facts.output_tokens_estimate = seen.output_tokens_estimate;
  facts.finish_reason = seen.finish_reason;
  body_ = std::move(kept);
  return true;
}

bool Reply::judge_success(ReplyFacts& facts) {
  attempt_.set_verdict(AttemptVerdict::success);
  const bool should_answer =
      may_change_model(call_.endpoint.api) || call_.endpoint.api == ApiKind::embeddings;
  const bool bodiless = attempt_.head().status == 204 || attempt_.head().status == 304;
  if (body_.empty() && should_answer && !bodiless)
    return attempt_.fail(TransportFault::empty_reply, ApiErrorKind::upstream_empty,
                         "The backend's answer is empty");
  if (attempt_.head().event_stream) return judge_events(facts);
  if (!is_json() || body_.empty()) return true;
  facts = read_reply_facts(call_.endpoint.api, body_.view(), attempt_.profile().config.tokenizer);
  Failure& failure = attempt_.failure();
  if (facts.has_error) {
    failure.fault = classify_in_band(facts.error_status, facts.error_code, facts.error_message);
    failure.kind = ApiErrorKind::upstream_in_band_error;
    failure.message = "The backend of profile '" + attempt_.profile().config.name +
                      "' sent an error with status 200: " + mask_secrets(facts.error_message);
    attempt_.set_verdict(failure.fault.breaker);
    return false;
  }
  // A refusal by a filter, or a limit that left no room, is an answer; an empty `stop` is not.
  const bool says_why = !facts.finish_reason.empty() && facts.finish_reason != "stop";
  if (!facts.empty || says_why || !should_answer) return true;
  failure.fault = classify_transport(TransportFault::empty_reply);
  failure.kind = ApiErrorKind::upstream_empty;
  failure.message = "The backend's answer is empty.";
  failure.spare_answer = body_.view();
  failure.spare_headers = attempt_.head().content_type;
  attempt_.set_verdict(failure.fault.breaker);
  attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
  call_.exchange().finish_reason = facts.finish_reason;
  return false;
}

std::string Reply::headers() const {
  std::string out = attempt_.head().forwarded;
  call_.recorder.append_headers(out);
  return out;
}

Task<bool> Reply::deliver(bool whole) {
  Session& session = call_.session;
  const UpstreamHead& head = attempt_.head();
  if (whole) {
    const std::string extra = headers();
    const bool written = co_await session.answer(head.status, extra,
                                                 head.content_type.empty()
                                                     ? std::string_view("application/octet-stream")
                                                     : std::string_view(head.content_type),
                                                 body_.view());
    if (!written) session.close_after();
    co_return written;
  }
  // Too long to hold: from here on it is passed as it comes, ended by close or chunk.
  const bool chunked = session.head().minor_version == 1;
  if (!chunked) session.close_after();
  std::string top = "HTTP/1.1 " + std::to_string(head.status) + " ";
  top += status_phrase(head.status);
  top += "\r\nContent-Type: " + head.content_type + "\r\n";
  if (!head.content_encoding.empty()) top += "Content-Encoding: " + head.content_encoding + "\r\n";
  top += headers();
  if (chunked) top += "Transfer-Encoding: chunked\r\n";
  if (!session.keeps_alive()) top += "Connection: close\r\n";
  top += "\r\n";
  const std::array<asio::const_buffer, 1> out{asio::buffer(top)};
  co_return co_await session.write(out);
}

/// After the commit: what was held and then the rest, a piece at a time.
Task<bool> Reply::pass_rest() {
  Session& session = call_.session;
  const bool chunked = session.head().minor_version == 1;
  bool written = co_await deliver(false);
  bool whole = false;
  while (written) {
    if (!body_.empty()) {
      const std::string size = fmt::format("{:x}\r\n", body_.size());
      const std::array<asio::const_buffer, 3> out{
          chunked ? asio::buffer(size) : asio::const_buffer{}, asio::buffer(body_.view()),
          chunked ? asio::const_buffer("\r\n", 2) : asio::const_buffer{}};
      written = co_await session.write(out);
      tail_.append(body_.view().substr(body_.size() - std::min(body_.size(), tail_bytes)));
      if (tail_.size() > tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
      body_.clear();
      if (!written) break;
    }
    if (attempt_.decoder().state() != BodyDecoder::State::more) {
      whole = attempt_.decoder().state() == BodyDecoder::State::done;
      break;
    }
    const Body more = co_await read_body(held_bytes_max);
    if (more == Body::ended) break;
  }
  if (whole && chunked) {
    const std::array<asio::const_buffer, 1> end{asio::const_buffer("0\r\n\r\n", 5)};
    written = co_await session.write(end);
  }
  if (!whole || !written) session.close_after();
  const TokenizerFamily family = attempt_.profile().config.tokenizer;
  if (whole) attempt_.learn_usage(usage_in_tail(call_.endpoint.api, tail_, family), 0);
  if (whole && written)
    call_.recorder.finish(attempt_.head().status, Outcome::ok);
  else if (!written || over_)
    co_await end_interrupted(call_);
  else
    call_.recorder.finish(attempt_.head().status, outcome_of(attempt_.failure().kind));
  co_return true;
}

Task<bool> Reply::run() {
  if (call_.stream_started && attempt_.head().status < 300)
    co_return attempt_.fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
                            "The backend answered a stream with something else");
  const bool success = attempt_.head().status < 300 || attempt_.head().status == 304;
  const std::size_t bytes_max = success ? held_bytes_max : error_bytes_max;
  const Body body = co_await read_body(bytes_max);
  if (body == Body::ended) co_return over_;
  if (body == Body::too_long && success) {
    attempt_.set_verdict(AttemptVerdict::success);
    co_return co_await pass_rest();
  }
  if (body == Body::too_long || !attempt_.head().keep_alive) attempt_.drop_connection();
  attempt_.release_connection();
  if (!decode()) co_return false;
  if (!success) co_return judge_error();
  ReplyFacts facts;
  if (!judge_success(facts)) co_return false;
  Exchange& exchange = call_.exchange();
  attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
  exchange.finish_reason = facts.finish_reason;
  exchange.ttft = call_.worker().now() - call_.session.started();
  attempt_.settle();
  const bool written = co_await deliver(true);
  if (written)
    call_.recorder.finish(attempt_.head().status, Outcome::ok);
  else
    co_await end_interrupted(call_);
  co_return true;
}

}  // namespace

Task<bool> relay_reply(Attempt& attempt) {
  Reply reply(attempt);
  co_return co_await reply.run();
}

}  // namespace flashgate

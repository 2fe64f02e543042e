#include <fmt/format.h>

#include <array>

#include "base/json_text.hpp"
#include "gateway/attempt.hpp"
#include "protocol/reply_facts.hpp"
#include "protocol/sse_scanner.hpp"

namespace flashgate {
namespace {

constexpr std::size_t preamble_bytes_max = 256U << 10;
/// How long a finished stream may still take to say so, and to end its framing.
constexpr Duration after_finish_wait = std::chrono::seconds(2);
constexpr Duration after_done_wait = std::chrono::milliseconds(20);
constexpr std::size_t buffer_bytes_kept = 4096;

/// The backend's error as an event in OpenAI shape, its secrets masked.
std::string in_band_event(const StreamFacts& facts) {
  std::string out = "data: {\"error\":{\"message\":";
  append_json_string(out, mask_secrets(facts.error_message));
  out += ",\"type\":";
  append_json_string(out, facts.error_type.empty() ? "upstream_error" : facts.error_type);
  out += ",\"param\":null,\"code\":";
  append_json_string(out, facts.error_code.empty() ? "upstream_in_band_error" : facts.error_code);
  return out + "}}\n\n";
}

/// Carries one event stream. Whole events go out at once; until the first content they are held,
/// so that a stream that dies after its role chunk can still move to another backend.
class StreamRelay {
 public:
  explicit StreamRelay(Attempt& attempt)
      : attempt_(attempt), call_(attempt.call()), scanner_(options(attempt)) {}
  Task<bool> run();

 private:
  enum class End { none, clean, cut, malformed, quiet, client_gone, call_over };
  static SseOptions options(Attempt& attempt);
  void take(std::string_view input);
  void on_event(const SseEvent& event);
  Task<End> read_more();
  Task<bool> flush(bool last);
  bool must_commit() const { return commit_ || call_.stream_started; }
  Task<bool> heartbeat();
  Task<bool> finish(End end);
  bool fail_before_content(End end);
  Task<bool> end_with_error(End end);
  Task<bool> end_well();
  Task<void> settle_connection();
  bool is_openai_chat() const;
  bool complete() const { return scanner_.facts().done_seen || scanner_.facts().finished; }

  Attempt& attempt_;
  Call& call_;
  SseScanner scanner_;
  std::string out_{};       // events for the client
  std::string own_read_{};  // TLS only
  TimePoint last_write_{};
  bool commit_ = false;        // content is here: what is held may go
  bool content_sent_ = false;  // content bytes are on their way to the client
  bool client_mid_event_ = false;
  bool error_event_ = false;
  std::string error_data_{};
};

SseOptions StreamRelay::options(Attempt& attempt) {
  SseOptions options;
  options.api = attempt.call().endpoint.api;
  options.family = attempt.profile().config.tokenizer;
  options.strip_usage = attempt.asked_usage();
  options.choices = attempt.call().facts.choices;
  return options;
}

bool StreamRelay::is_openai_chat() const {
  return call_.endpoint.api == ApiKind::chat || call_.endpoint.api == ApiKind::completions;
}

void StreamRelay::on_event(const SseEvent& event) {
  if (error_event_) return;  // what follows an error is not an answer
  switch (event.kind) {
    case SseKind::error:
      error_event_ = true;
      error_data_ = event.bytes;
      return;
    case SseKind::comment:
    case SseKind::preamble:
      break;
    case SseKind::finish:
    case SseKind::usage:
    case SseKind::done:
      break;
    case SseKind::content:
      if (call_.exchange().ttft < Duration::zero())
        call_.exchange().ttft = call_.worker().now() - call_.session.started();
      [[fallthrough]];
    case SseKind::other:
    case SseKind::unterminated:
      commit_ = true;
  }
  if (event.kind == SseKind::unterminated && !event.ends_event && !content_sent_ &&
      attempt_.decoder().state() == BodyDecoder::State::done)
    return;
  out_.append(event.bytes);
  client_mid_event_ = !event.ends_event;
  if (out_.size() > preamble_bytes_max) commit_ = true;
}

void StreamRelay::take(std::string_view input) {
  BodyDecoder& decoder = attempt_.decoder();
  while (!input.empty() && decoder.state() == BodyDecoder::State::more) {
    const BodyDecoder::Step step = decoder.next(input);
    input.remove_prefix(step.consumed);
    if (!step.payload.empty())
      scanner_.feed(step.payload, [this](const SseEvent& event) { on_event(event); });
    if (step.state == BodyDecoder::State::failed) break;
  }
  if (!input.empty() && decoder.state() == BodyDecoder::State::done) {
    call_.runtime().upstream_excess_bytes.fetch_add(1, std::memory_order_relaxed);
    attempt_.drop_connection();
  }
}

/// Writes what is due in one call: the head if it has not gone, the events, the last chunk.
Task<bool> StreamRelay::flush(bool last) {
  if (out_.empty() && !last && call_.stream_started) co_return true;
  std::string top;
  if (!call_.stream_started)
    top = stream_head(call_, attempt_.head().status, attempt_.head().content_type,
                      attempt_.head().forwarded);
  call_.stream_started = true;
  const bool chunked = call_.chunked;
  if (chunked && !out_.empty())
    fmt::format_to(std::back_inserter(top), FMT_STRING("{:x}\r\n"), out_.size());
  std::string_view tail;
  if (chunked && last)
    tail = out_.empty() ? "0\r\n\r\n" : "\r\n0\r\n\r\n";
  else if (chunked && !out_.empty())
    tail = "\r\n";
  if (commit_) content_sent_ = true;
  const std::array<asio::const_buffer, 3> pieces{asio::buffer(top), asio::buffer(out_),
                                                 asio::buffer(tail)};
  const bool written = co_await call_.session.write(pieces);
  last_write_ = call_.worker().now();
  out_.clear();
  if (out_.capacity() > buffer_bytes_kept) out_.shrink_to_fit();
  co_return written;
}

Task<bool> StreamRelay::heartbeat() {
  if (client_mid_event_) co_return true;
  // With `id:` in the stream an empty line would make old decoders dispatch an empty event.
  out_.insert(0, scanner_.facts().ids ? ": keep-alive\n" : ": keep-alive\n\n");
  co_return co_await flush(false);
}

Task<StreamRelay::End> StreamRelay::read_more() {
  const HeartbeatConfig& beat = call_.runtime().config.heartbeat;
  const Timeouts& timeouts = attempt_.profile().config.timeouts;
  const std::size_t bytes =
      std::min(Worker::scratch_bytes, call_.runtime().config.limits.stream_buffer);
  const bool tls = attempt_.upstream().is_tls();
  if (tls) own_read_.resize(Worker::read_bytes);
  const TimePoint quiet_since = call_.worker().now();
  Duration patience = content_sent_ ? timeouts.idle : timeouts.first_byte;
  if (scanner_.facts().finished) patience = std::min(patience, after_finish_wait);
  const TimePoint idle_at = quiet_since + patience;
  while (true) {
    const bool beats =
        beat.interval > Duration::zero() && (call_.stream_started || beat.before_first_token);
    const TimePoint beat_at =
        beats ? std::max(last_write_, attempt_.started()) + beat.interval : TimePoint::max();
    const bool beat_first = beat_at < idle_at;
    void* const to = tls ? own_read_.data() : call_.worker().scratch.data();
    const IoResult got =
        co_await attempt_.read(to, tls ? own_read_.size() : bytes, beat_first ? beat_at : idle_at,
                               beat_first ? Stop::recheck : Stop::idle_timeout);
    if (!got.error) {
      take({static_cast<const char*>(to), got.bytes});
      co_return End::none;
    }
    if (got.error != asio::error::operation_aborted) {
      const bool proper = got.error == asio::error::eof && attempt_.decoder().closed();
      co_return proper ? End::clean : End::cut;
    }
    if (call_.monitor().stop() == Stop::idle_timeout) co_return End::quiet;
    if (call_.monitor().stop() != Stop::recheck) co_return End::call_over;
    const bool written = co_await heartbeat();
    if (!written) co_return End::client_gone;
  }
}

Task<bool> StreamRelay::run() {
  last_write_ = attempt_.started();
  take(attempt_.raw().view().substr(attempt_.raw_begin()));
  call_.worker().give_buffer(std::move(attempt_.raw()));
  attempt_.raw() = BodyBuffer{};
  End end = End::none;
  while (end == End::none) {
    const BodyDecoder::State state = attempt_.decoder().state();
    if (state == BodyDecoder::State::done)
      end = End::clean;
    else if (state == BodyDecoder::State::failed)
      end = End::malformed;
    else if (scanner_.facts().done_seen || error_event_)
      end = End::clean;
    if (end != End::none) break;
    if (commit_ && !out_.empty()) {
      const bool written = co_await flush(false);
      if (!written) end = End::client_gone;
    }
    if (end == End::none) end = co_await read_more();
  }
  co_return co_await finish(end);
}

/// Before any content: the failure may still be mended by another attempt.
bool StreamRelay::fail_before_content(End end) {
  const StreamFacts& facts = scanner_.facts();
  if (error_event_) {
    Failure& failure = attempt_.failure();
    failure.fault = classify_in_band(facts.error_status, facts.error_code, facts.error_message);
    failure.kind = ApiErrorKind::upstream_in_band_error;
    failure.message = "The backend of profile '" + attempt_.profile().config.name +
                      "' sent an error in its stream: " + mask_secrets(facts.error_message);
    attempt_.set_verdict(failure.fault.breaker);
    attempt_.drop_connection();
    return false;
  }
  switch (end) {
    case End::quiet:
      return attempt_.interrupted("send the first token");
    case End::malformed:
      return attempt_.fail(
          TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
          "The backend's stream is malformed: " + std::string(attempt_.decoder().why()));
    case End::cut:
      return attempt_.fail(TransportFault::reset_after_request, ApiErrorKind::upstream_reset,
                           "The backend broke the stream off before its first token");
    default:
      break;
  }
  if (!complete())
    return attempt_.fail(TransportFault::truncated, ApiErrorKind::upstream_truncated,
                         "The backend ended the stream before its first token");
  Failure& failure = attempt_.failure();
  failure.fault = classify_transport(TransportFault::empty_reply);
  failure.kind = ApiErrorKind::upstream_empty;
  failure.message = "The backend's answer is empty.";
  failure.spare_answer = out_;
  failure.spare_headers = attempt_.head().content_type;
  call_.exchange().finish_reason = facts.finish_reason;
  attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
  attempt_.set_verdict(failure.fault.breaker);
  attempt_.drop_connection();
  return false;
}

Task<bool> StreamRelay::finish(End end) {
  if (end == End::call_over) {
    attempt_.drop_connection();
    attempt_.set_verdict(AttemptVerdict::neutral);
    if (call_.monitor().stop() == Stop::total_timeout ||
        call_.monitor().stop() == Stop::shutting_down) {
      if (content_sent_) co_return co_await end_with_error(end);
      co_return attempt_.interrupted("answer");
    }
    end = End::client_gone;
  }
  if (end == End::client_gone) {
    attempt_.drop_connection();
    attempt_.set_verdict(AttemptVerdict::neutral);
    const StreamFacts& facts = scanner_.facts();
    attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
    call_.exchange().finish_reason = facts.finish_reason;
    co_await end_interrupted(call_);
    co_return true;
  }
  scanner_.finish([this](const SseEvent& event) {
    // Without its blank line an event is not one, but for the end that needs no more data.
    if (event.kind != SseKind::done) return;
    on_event(event);
    if (client_mid_event_) out_.append("\n\n");
    client_mid_event_ = false;
  });
  const std::string& reason = scanner_.facts().finish_reason;
  const bool says_why = complete() && !reason.empty() && reason != "stop";
  if (!commit_ && (error_event_ || !says_why)) {
    const bool over = fail_before_content(end);
    co_return over;
  }
  commit_ = true;
  const bool broken =
      error_event_ || end == End::malformed || end == End::quiet || end == End::cut || !complete();
  const bool forgiven = !error_event_ && complete();  // all of the answer is here
  if (broken && !forgiven) co_return co_await end_with_error(end);
  co_return co_await end_well();
}

Task<bool> StreamRelay::end_with_error(End end) {
  const StreamFacts& facts = scanner_.facts();
  ApiError error{ApiErrorKind::upstream_truncated, "The backend ended the stream too early."};
  TransportFault fault = TransportFault::truncated;
  if (end == End::cut) {
    error = {ApiErrorKind::upstream_reset, "The backend broke off in mid-stream."};
    fault = TransportFault::reset_after_request;
  } else if (end == End::quiet) {
    error = {ApiErrorKind::upstream_idle_timeout, "The backend went silent in mid-stream."};
    fault = TransportFault::idle_timeout;
  } else if (end == End::malformed) {
    error = {ApiErrorKind::upstream_protocol_error, "The backend's stream is malformed."};
    fault = TransportFault::protocol_error;
  } else if (end == End::call_over) {
    const bool ours = call_.monitor().stop() == Stop::shutting_down;
    error = ours ? ApiError{ApiErrorKind::shutting_down, "The gateway is shutting down."}
                 : ApiError{ApiErrorKind::total_timeout, "The call's time limit ended."};
    fault = TransportFault::total_timeout;
  }
  attempt_.set_verdict(classify_transport(fault).breaker);
  if (client_mid_event_) out_.append("\n\n");
  if (error_event_) {
    error = {ApiErrorKind::upstream_in_band_error, facts.error_message};
    attempt_.set_verdict(
        classify_in_band(facts.error_status, facts.error_code, facts.error_message).breaker);
    if (is_openai_chat()) {
      out_ += in_band_event(facts);
    } else {
      out_ += mask_secrets(error_data_);
    }
  } else {
    out_ += error_event(error);
  }
  attempt_.drop_connection();
  attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
  Exchange& exchange = call_.exchange();
  exchange.finish_reason = facts.finish_reason;
  exchange.error_code = api_error_row(error.kind).code;
  // The monitor may have ended the call; its last words still go out.
  call_.monitor().end_call();
  attempt_.settle();
  (void)co_await flush(true);
  call_.recorder.finish(200, outcome_of(error.kind));
  co_return true;
}

Task<bool> StreamRelay::end_well() {
  const StreamFacts& facts = scanner_.facts();
  Exchange& exchange = call_.exchange();
  if (is_openai_chat() && !facts.done_seen) {
    out_ += "data: [DONE]\n\n";
    exchange.done_missing = true;
  }
  exchange.finish_missing = is_openai_chat() && !facts.finished;
  exchange.finish_reason = facts.finish_reason;
  attempt_.learn_usage(facts.usage, facts.output_tokens_estimate);
  attempt_.set_verdict(AttemptVerdict::success);
  attempt_.settle();
  const bool written = co_await flush(true);
  if (written) {
    call_.recorder.finish(200, Outcome::ok);
  } else {
    attempt_.drop_connection();
    co_await end_interrupted(call_);
    co_return true;
  }
  co_await settle_connection();
  co_return true;
}

/// The answer is complete for the client; a moment for the backend to end its framing too.
Task<void> StreamRelay::settle_connection() {
  if (!attempt_.head().keep_alive) attempt_.drop_connection();
  Worker& worker = call_.worker();
  std::array<char, 512> rest;
  const TimePoint until = worker.now() + after_done_wait;
  while (attempt_.has_connection() && attempt_.decoder().state() == BodyDecoder::State::more) {
    const IoResult got = co_await attempt_.read(rest.data(), rest.size(), until, Stop::recheck);
    if (got.error)
      attempt_.drop_connection();
    else
      take({rest.data(), got.bytes});
  }
  if (attempt_.decoder().state() == BodyDecoder::State::done)
    attempt_.release_connection();
  else
    attempt_.drop_connection();
}

}  // namespace

std::string stream_head(Call& call, int status, std::string_view content_type,
                        std::string_view fields) {
  Session& session = call.session;
  call.chunked = session.head().minor_version == 1;
  if (!call.chunked) session.close_after();
  std::string top = "HTTP/1.1 " + std::to_string(status) + " OK\r\nContent-Type: ";
  top += content_type;
  top += "\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  top += fields;
  call.recorder.append_headers(top);
  if (call.chunked) top += "Transfer-Encoding: chunked\r\n";
  if (!session.keeps_alive()) top += "Connection: close\r\n";
  top += "\r\n";
  return top;
}

Task<bool> beat_before_answer(Call& call) {
  constexpr std::string_view comment = ": keep-alive\n\n";
  std::string out;
  if (!call.stream_started) out = stream_head(call, 200, "text/event-stream", {});
  call.stream_started = true;
  if (call.chunked)
    out += fmt::format("{:x}\r\n{}\r\n", comment.size(), comment);
  else
    out += comment;
  const std::array<asio::const_buffer, 1> pieces{asio::buffer(out)};
  co_return co_await call.session.write(pieces);
}

Task<bool> relay_stream(Attempt& attempt) {
  StreamRelay relay(attempt);
  co_return co_await relay.run();
}

}  // namespace flashgate

#include "gateway/attempt.hpp"

#include <array>
#include <charconv>

#include "protocol/reply_facts.hpp"

namespace flashgate {
namespace {

constexpr int interim_max = 8;
constexpr Duration upload_recheck = std::chrono::milliseconds(50);

std::string at_profile(const ProfileState& profile) {
  return " (profile '" + profile.config.name + "')";
}

std::optional<Duration> keep_alive_hint(const ResponseHead& head) {
  std::string_view value = field_value(head.fields, "keep-alive");
  constexpr std::string_view key = "timeout=";
  const std::size_t at = value.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  value.remove_prefix(at + key.size());
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc{} || seconds > 3600) return std::nullopt;
  return std::chrono::seconds(seconds) - std::chrono::seconds(1);
}

}  // namespace

Attempt::Attempt(Call& call, ProfileState& profile, Backend& backend, const Candidate& candidate)
    : call_(call),
      profile_(profile),
      backend_(backend),
      candidate_(candidate),
      started_(call.worker().now()) {
  backend_.in_flight.fetch_add(1, std::memory_order_relaxed);
}

Attempt::~Attempt() {
  backend_.in_flight.fetch_sub(1, std::memory_order_relaxed);
  call_.worker().give_buffer(std::move(raw_));
}

bool Attempt::fail(TransportFault fault, ApiErrorKind kind, std::string message) {
  failure_.fault = classify_transport(fault);
  failure_.kind = kind;
  failure_.message = std::move(message) + at_profile(profile_) + ".";
  verdict_ = failure_.fault.breaker;
  drop_connection();
  return false;
}

bool Attempt::interrupted(const char* waiting_for) {
  const std::string what = std::string("The backend did not ") + waiting_for + " in time";
  drop_connection();
  switch (call_.monitor().stop()) {
    case Stop::connect_timeout:
      return fail(TransportFault::connect_timeout, ApiErrorKind::upstream_connect_timeout, what);
    case Stop::first_byte_timeout:
      return fail(TransportFault::first_byte_timeout, ApiErrorKind::upstream_first_byte_timeout,
                  what);
    case Stop::idle_timeout:
      return fail(TransportFault::idle_timeout, ApiErrorKind::upstream_idle_timeout, what);
    case Stop::attempt_timeout:
      return fail(TransportFault::first_byte_timeout, ApiErrorKind::total_timeout, what);
    case Stop::total_timeout:
      (void)fail(TransportFault::total_timeout, ApiErrorKind::total_timeout,
                 "The call's time limit ended while it waited for the backend to " +
                     std::string(waiting_for));
      return false;
    default:
      verdict_ = AttemptVerdict::neutral;
      return true;
  }
}

void Attempt::drop_connection() {
  if (connection_) connection_->close();
  connection_.reset();
}

void Attempt::release_connection() {
  if (!connection_) return;
  connection_->clear_interrupt();
  const TimePoint now = call_.worker().now();
  call_.worker().pool(backend_).put(std::move(connection_), now, head_.keep);
}

Task<IoResult> Attempt::read(void* to, std::size_t bytes, TimePoint at, Stop reason, bool eager) {
  call_.monitor().watch(*connection_, at, reason, call_.worker().now());
  IoResult got;
  if (connection_->is_tls()) {
    got = co_await connection_->read_some(to, bytes);
  } else if (eager) {
    got = co_await connection_->read_some(to, bytes);
  } else {
    do {
      got.error = co_await connection_->wait_readable();
      if (!got.error) got = connection_->try_read(to, bytes);
    } while (got.error == asio::error::would_block);
  }
  call_.monitor().unwatch();
  co_return got;
}

bool Attempt::dial_failed(DialFault fault, const std::string& detail) {
  const std::string where =
      " at " + backend_.url.authority() + (detail.empty() ? std::string() : ": " + detail);
  switch (fault) {
    case DialFault::refused:
      return fail(TransportFault::connect_refused, ApiErrorKind::upstream_connect_refused,
                  "The backend refuses connections");
    case DialFault::tls:
      return fail(TransportFault::tls_error, ApiErrorKind::upstream_tls_error,
                  "The TLS handshake with the backend failed" +
                      (detail.empty() ? std::string() : ": " + detail));
    case DialFault::proxy:
      return fail(TransportFault::connect_failed, ApiErrorKind::upstream_connect_failed,
                  "The outbound proxy does not connect to the backend: " + detail);
    case DialFault::name_not_found:
      return fail(TransportFault::connect_failed, ApiErrorKind::upstream_connect_failed,
                  "The backend's name does not resolve");
    case DialFault::interrupted:
      return interrupted("accept the connection");
    case DialFault::unreachable:
    case DialFault::none:
      break;
  }
  return fail(TransportFault::connect_failed, ApiErrorKind::upstream_connect_failed,
              "The backend is not reachable");
}

/// False and no failure set means: the call is over.
Task<bool> Attempt::connect_fresh() {
  reused_ = false;
  Worker& worker = call_.worker();
  Dial dial(worker.executor(), worker.resolver());
  const TimePoint now = worker.now();
  call_.monitor().watch(dial, now + profile_.config.timeouts.connect, Stop::connect_timeout, now);
  const DialFault fault = co_await dial.run(backend_.dial);
  call_.monitor().unwatch();
  if (fault != DialFault::none) {
    (void)dial_failed(fault, dial.detail());
    co_return false;
  }
  connection_ = dial.take();
  connection_->count_in(call_.runtime().upstream_connections);
  co_return true;
}

Task<bool> Attempt::connect() {
  Worker& worker = call_.worker();
  connection_ = worker.pool(backend_).take(worker.now());
  reused_ = connection_ != nullptr;
  if (reused_) co_return true;
  co_return co_await connect_fresh();
}

Task<Attempt::Sent> Attempt::send() {
  EditWishes wishes;
  wishes.model = profile_.config.model;
  if (candidate_.max_tokens_cap > 0) wishes.max_tokens_cap = candidate_.max_tokens_cap;
  wishes.ask_usage = !backend_.refuses_usage.load(std::memory_order_relaxed);
  std::vector<BodyEdit> edits;
  if (call_.is_multipart)
    edits.push_back(
        {call_.multipart_model.begin, call_.multipart_model.end, profile_.config.model});
  else if (call_.facts.has_model)
    edits = plan_edits(call_.facts, wishes);
  const bool may_ask =
      call_.endpoint.api == ApiKind::chat || call_.endpoint.api == ApiKind::completions;
  asked_usage_ = wishes.ask_usage && may_ask && call_.facts.stream && !call_.facts.include_usage;
  const std::string head =
      upstream_request_head(call_, backend_, edited_size(call_.body.size(), edits));
  const std::vector<std::string_view> body = edited_pieces(call_.body, edits);
  std::vector<asio::const_buffer> pieces;
  pieces.reserve(body.size() + 1);
  pieces.push_back(asio::buffer(head));
  for (const std::string_view piece : body)
    pieces.push_back(asio::const_buffer(piece.data(), piece.size()));
  sent_whole_ = false;
  const Sent sent = co_await send_rest(std::move(pieces), 0);
  sent_whole_ = sent == Sent::whole;
  co_return sent;
}

/// Uploads while watching for an early answer (RFC 9112 §9.5): a backend may refuse a large body
/// before it has read it, and then its answer counts, not our failed write.
Task<Attempt::Sent> Attempt::send_rest(std::vector<asio::const_buffer> pieces, std::size_t sent) {
  const std::size_t whole = asio::buffer_size(pieces);
  const TimePoint until = call_.worker().now() + profile_.config.timeouts.first_byte;
  while (true) {
    const TimePoint now = call_.worker().now();
    if (now >= until) {
      (void)fail(TransportFault::first_byte_timeout, ApiErrorKind::upstream_first_byte_timeout,
                 "The backend does not take the request");
      co_return Sent::failed;
    }
    // A TLS write can't be resumed at an offset, so it is not woken to look around.
    const bool tls = connection_->is_tls();
    call_.monitor().watch(*connection_, tls ? until : now + upload_recheck,
                          tls ? Stop::first_byte_timeout : Stop::recheck, now);
    const IoResult written = co_await connection_->write_all(pieces);
    call_.monitor().unwatch();
    sent += written.bytes;
    if (!written.error) co_return sent == whole ? Sent::whole : Sent::partly;
    if (written.error != asio::error::operation_aborted) co_return Sent::partly;
    if (call_.monitor().stop() != Stop::recheck) {
      (void)interrupted("take the request");
      co_return Sent::failed;
    }
    if (!connection_->is_quiet()) co_return Sent::partly;
    std::size_t skip = written.bytes;
    for (asio::const_buffer& piece : pieces) {
      const std::size_t cut = std::min(skip, piece.size());
      piece += cut;
      skip -= cut;
    }
  }
}

void Attempt::copy_head(const ResponseHead& head) {
  head_.status = head.status;
  head_.keep_alive = head.keep_alive;
  head_.content_type = field_value(head.fields, "content-type");
  head_.content_encoding = field_value(head.fields, "content-encoding");
  if (iequals(head_.content_encoding, "identity")) head_.content_encoding.clear();
  constexpr std::string_view events = "text/event-stream";
  head_.event_stream =
      head_.content_type.size() >= events.size() &&
      iequals(std::string_view(head_.content_type).substr(0, events.size()), events);
  head_.forwarded = forwarded_fields(head);
  if (head.status >= 400)
    head_.retry_after = parse_retry_after(head.fields, std::chrono::system_clock::now());
  if (const std::optional<Duration> keep = keep_alive_hint(head)) head_.keep = *keep;
  decoder_ = BodyDecoder(head.framing, head.content_length);
}

/// False: the head was refused, or was an interim one (status 1xx).
bool Attempt::take_head(std::size_t head_bytes) {
  HeadLimits limits;
  limits.bytes_max = call_.runtime().config.limits.headers;
  limits.fields_max = call_.runtime().config.limits.header_count;
  ResponseHead head;
  HeadRefusal refusal;
  const std::string_view bytes = raw_.view().substr(raw_begin_, head_bytes - raw_begin_);
  const bool to_head = call_.session.head().method == "HEAD";
  if (!parse_response_head(bytes, limits, to_head, head, refusal))
    return fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
                "The backend's answer is not valid HTTP: " + std::string(refusal.why));
  raw_begin_ = head_bytes;
  copy_head(head);
  return true;
}

bool Attempt::head_ended(const IoResult& got) {
  if (got.error == asio::error::operation_aborted) return interrupted("answer");
  const bool nothing_came = raw_.empty();
  if (reused_ && nothing_came) {
    stale_ = true;
    return false;
  }
  const bool eof = got.error == asio::error::eof;
  const TransportFault fault =
      sent_whole_ ? TransportFault::reset_after_request : TransportFault::reset_before_response;
  return fail(fault, ApiErrorKind::upstream_reset,
              eof ? "The backend closed the connection without an answer"
                  : "The backend reset the connection before it answered");
}

/// False and no failure: the call is over, or the connection was stale.
Task<bool> Attempt::receive_head() {
  HeadLimits limits;
  limits.bytes_max = call_.runtime().config.limits.headers;
  limits.fields_max = call_.runtime().config.limits.header_count;
  const TimePoint at_first = call_.worker().now() + profile_.config.timeouts.first_byte;
  const bool unary = !call_.facts.stream;
  const TimePoint at = unary ? std::min(at_first, unary_until()) : at_first;
  if (raw_.capacity() == 0) raw_ = call_.worker().take_buffer();
  raw_.clear();
  raw_begin_ = 0;
  scanner_.reset();
  int interim = 0;
  while (true) {
    const HeadScanner::State state =
        raw_.size() > raw_begin_ ? scanner_.scan(raw_.view().substr(raw_begin_), limits, false)
                                 : HeadScanner::State::incomplete;
    if (state == HeadScanner::State::refused) {
      fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
           "The backend's answer is not valid HTTP: " + std::string(scanner_.refusal().why));
      co_return false;
    }
    if (state == HeadScanner::State::complete) {
      if (!take_head(raw_begin_ + scanner_.end())) co_return false;
      if (head_.status >= 200) co_return true;
      if (head_.status == 101 || ++interim > interim_max) {
        fail(TransportFault::protocol_error, ApiErrorKind::upstream_protocol_error,
             "The backend sent interim answers without end");
        co_return false;
      }
      scanner_.reset();
      continue;
    }
    const HeartbeatConfig& beat = call_.runtime().config.heartbeat;
    const bool beats = !unary && beat.before_first_token && beat.interval > Duration::zero();
    const TimePoint beat_at = beats ? call_.worker().now() + beat.interval : TimePoint::max();
    const bool beat_first = beat_at < at;
    char* const room = raw_.prepare(Worker::read_bytes);
    const IoResult got = co_await read(room, Worker::read_bytes, beat_first ? beat_at : at,
                                       beat_first ? Stop::recheck : Stop::first_byte_timeout, true);
    raw_.commit(got.bytes);
    if (got.error && call_.monitor().stop() == Stop::recheck) {
      const bool written = co_await beat_before_answer(call_);
      if (written) continue;
      drop_connection();
      call_.monitor().end_now(Stop::client_left);
      co_return false;
    }
    if (got.error) {
      (void)head_ended(got);
      co_return false;
    }
  }
}

Task<bool> Attempt::run() {
  Runtime& runtime = call_.runtime();
  const bool connected = co_await connect();
  if (!connected) co_return failure_.fault.fault == FaultClass::none;
  for (bool fresh = false;; fresh = true) {
    const Sent sent = co_await send();
    bool has_head = false;
    // Others first: under load the answer is here when it is this call's turn again.
    if (sent == Sent::whole) co_await call_.worker().yield();
    if (sent != Sent::failed) has_head = co_await receive_head();
    if (has_head) break;
    if (!stale_ || fresh) co_return failure_.fault.fault == FaultClass::none;
    // The backend closed an idle connection as we took it; its contemporaries are gone too.
    stale_ = false;
    runtime.stale_replays.fetch_add(1, std::memory_order_relaxed);
    call_.worker().pool(backend_).purge();
    drop_connection();
    const bool again = co_await connect_fresh();
    if (!again) co_return failure_.fault.fault == FaultClass::none;
  }
  if (!sent_whole_) head_.keep_alive = false;
  const bool success = head_.status >= 200 && head_.status < 300;
  if (success && head_.event_stream && head_.content_encoding.empty())
    co_return co_await relay_stream(*this);
  co_return co_await relay_reply(*this);
}

void Attempt::learn_usage(const TokenUsage& usage, double output_estimate) {
  Exchange& exchange = call_.exchange();
  const auto family = static_cast<std::size_t>(profile_.config.tokenizer);
  const double estimated = call_.facts.input_tokens[family];
  if (usage.present) {
    exchange.token_source = TokenSource::usage;
    exchange.input_tokens = usage.input;
    exchange.output_tokens = usage.output;
    exchange.cached_tokens = usage.cached;
    exchange.reasoning_tokens = usage.reasoning;
    if (estimated > 0 && usage.input > 0)
      profile_.learn(estimated, static_cast<double>(usage.input));
    const Price& price = profile_.config.price;
    exchange.has_cost = price.set;
    exchange.cost = (static_cast<double>(usage.input - usage.cached) * price.input +
                     static_cast<double>(usage.cached) * price.cached +
                     static_cast<double>(usage.output) * price.output) /
                    1e6;
  } else {
    exchange.token_source = TokenSource::estimate;
    exchange.output_tokens = static_cast<std::int64_t>(output_estimate + 0.5);
  }
}

}  // namespace flashgate

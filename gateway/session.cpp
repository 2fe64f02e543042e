#include "gateway/session.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <boost/asio/write.hpp>

#include "gateway/endpoints.hpp"
#include "gateway/recorder.hpp"
#include "protocol/status_phrase.hpp"

namespace flashgate {
namespace {

constexpr Duration lingering_time = std::chrono::seconds(2);
constexpr int unsent_bytes_max = 128 * 1024;
constexpr std::size_t lingering_bytes_max = 64U << 20;

}  // namespace

Session::Session(Worker& worker, TcpSocket socket)
    : worker_(worker), client_(std::move(socket)), monitor_(worker.wheel, client_) {
  const LimitsConfig& limits = worker.runtime.config.limits;
  limits_.bytes_max = limits.headers;
  limits_.fields_max = limits.header_count;
  worker_.sessions.insert(this);
  worker_.runtime.connections.fetch_add(1, std::memory_order_relaxed);
  error_code ignored;
  client_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  // A client that vanished without a word acknowledges nothing: the kernel gives up for us.
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  const auto stall =
      std::chrono::duration_cast<std::chrono::milliseconds>(limits.client_stall).count();
  client_.socket().set_option(UserTimeout(static_cast<int>(stall)), ignored);
  // Writable means "has taken most of it": a slow reader shows progress in small steps.
  using NotSentLowAt = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
  client_.socket().set_option(NotSentLowAt(unsent_bytes_max), ignored);
  const auto peer = client_.socket().remote_endpoint(ignored);
  if (!ignored) peer_address_ = peer.address().to_string();
}

Session::~Session() {
  worker_.sessions.erase(this);
  worker_.runtime.connections.fetch_sub(1, std::memory_order_relaxed);
  worker_.give_buffer(std::move(in_));
}

void Session::drain(bool hard) {
  draining_ = true;
  if (idle_)
    client_.interrupt();
  else if (hard)
    monitor_.end_now(Stop::shutting_down);
}

Task<IoResult> Session::read_more(BodyBuffer& to, TimePoint at, Stop reason) {
  const TimePoint now = worker_.now();
  const char* const before = to.data();
  monitor_.watch(client_, at, reason, now);
  IoResult got;
  if (client_.is_tls()) {
    char* const room = to.prepare(Worker::read_bytes);
    got = co_await client_.read_some(room, Worker::read_bytes);
  } else {
    // Under load the bytes are here by now: one look saves arming the descriptor.
    got = client_.try_read(to.prepare(Worker::read_bytes), Worker::read_bytes);
    while (got.error == asio::error::would_block) {
      got.error = co_await client_.wait_readable();
      if (got.error) break;
      got = client_.try_read(to.prepare(Worker::read_bytes), Worker::read_bytes);
    }
  }
  monitor_.unwatch();
  to.commit(got.bytes);
  if (has_head_ && &to == &in_ && to.data() != before) renew_head();
  co_return got;
}

Task<bool> Session::write(std::span<const asio::const_buffer> buffers) {
  const TimePoint now = worker_.now();
  monitor_.watch(client_, now + runtime().config.limits.client_stall, Stop::client_stalled, now);
  const IoResult written = co_await client_.write_all(buffers);
  monitor_.unwatch();
  if (written.error == asio::error::timed_out) stalled_ = true;
  co_return !written.error;
}

Task<bool> Session::answer(int status, std::string_view extra_headers,
                           std::string_view content_type, std::string_view body) {
  std::string top = "HTTP/1.1 " + std::to_string(status) + " ";
  top += status_phrase(status);
  top += "\r\n";
  const bool has_content = status >= 200 && status != 204 && status != 304;  // RFC 9110 §8.6
  if (has_content) {
    top += "Content-Type: ";
    top += content_type;
    top += "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  top += extra_headers;
  if (!keeps_alive())
    top += "Connection: close\r\n";
  else if (head_.minor_version == 0)
    top += "Connection: keep-alive\r\n";
  top += "\r\n";
  const bool bodiless = head_.method == "HEAD";
  const std::array<asio::const_buffer, 2> out{
      asio::buffer(top), asio::const_buffer(body.data(), bodiless ? 0 : body.size())};
  co_return co_await write(out);
}

Task<void> Session::close_gracefully() {
  client_.shutdown_send();
  const TimePoint until = worker_.now() + lingering_time;
  std::size_t discarded = 0;
  BodyBuffer sink = worker_.take_buffer();
  while (discarded < lingering_bytes_max) {
    const IoResult got = co_await read_more(sink, until, Stop::client_idle);
    if (got.error) break;
    discarded += got.bytes;
    sink.clear();
  }
  worker_.give_buffer(std::move(sink));
}

Task<bool> Session::read_head() {
  const LimitsConfig& limits = runtime().config.limits;
  TimePoint until = worker_.now() + limits.no_data;
  Stop reason = Stop::client_idle;
  idle_ = in_.empty();
  if (!idle_) until = worker_.now() + limits.header_time;
  while (true) {
    if (!in_.empty()) {
      const HeadScanner::State state = scanner_.scan(in_.view(), limits_, true);
      if (state == HeadScanner::State::complete) break;
      if (state == HeadScanner::State::refused) {
        started_ = worker_.now();
        co_await refuse_head(scanner_.refusal());
        co_return false;
      }
    }
    if (idle_ && in_.capacity() == 0) in_ = worker_.take_buffer();
    const bool first = in_.empty();
    const IoResult got = co_await read_more(in_, until, reason);
    if (got.error) {
      if (monitor_.stop() == Stop::request_timeout)
        co_await refuse_head({ApiErrorKind::request_timeout, "the head took too long to arrive"});
      co_return false;
    }
    if (first) {
      started_ = worker_.now();
      until = started_ + limits.header_time;
      reason = Stop::request_timeout;
      idle_ = false;
    }
  }
  idle_ = false;
  HeadRefusal refusal;
  const std::string_view bytes =
      in_.view().substr(scanner_.begin(), scanner_.end() - scanner_.begin());
  if (parse_request_head(bytes, limits_, head_, refusal)) {
    keep_alive_ = head_.keep_alive;
    has_head_ = true;
    co_return true;
  }
  co_await refuse_head(refusal);
  co_return false;
}

Task<void> Session::refuse_head(HeadRefusal refusal) {
  keep_alive_ = false;
  const ApiErrorKind kind = refusal.kind;
  head_ = RequestHead{};
  Recorder recorder(*this);
  const ApiError error{kind, "the request was not understood: " + std::string(refusal.why) + "."};
  co_await recorder.refuse(error);
  co_await close_gracefully();
}

void Session::renew_head() {
  HeadRefusal ignored;
  const std::string_view bytes =
      in_.view().substr(scanner_.begin(), scanner_.end() - scanner_.begin());
  (void)parse_request_head(bytes, limits_, head_, ignored);
}

/// What the client sent ahead moves to the front; without any, the memory goes back.
void Session::next_request() {
  const std::string_view rest = in_.view().substr(std::min(consumed_, in_.size()));
  BodyBuffer next;
  if (!rest.empty()) {
    next = worker_.take_buffer();
    next.append(rest);
  }
  worker_.give_buffer(std::move(in_));
  in_ = std::move(next);
  scanner_.reset();
  has_head_ = false;
  consumed_ = 0;
}

Task<void> Session::run() {
  if (runtime().server_tls) {
    const TimePoint now = worker_.now();
    monitor_.watch(client_, now + runtime().config.limits.header_time, Stop::request_timeout, now);
    const error_code error = co_await client_.handshake_as_server(*runtime().server_tls);
    monitor_.unwatch();
    if (error) co_return;
  }
  while (keeps_alive()) {
    const bool has_head = co_await read_head();
    if (!has_head) break;
    consumed_ = scanner_.end();
    co_await serve(*this);
    monitor_.end_call();
    if (!keeps_alive() || !client_.is_open()) break;
    next_request();
    // Others first: by the time it is this session's turn again, the next request may be here.
    co_await worker_.yield();
  }
  client_.shutdown_send();
}

}  // namespace flashgate

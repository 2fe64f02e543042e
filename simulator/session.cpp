#include "simulator/session.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/write.hpp>

#include "protocol/body_decoder.hpp"

namespace flashgate {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t read_bytes = 16 * 1024;
constexpr std::size_t merge_bytes_max = 64 * 1024;
constexpr Duration idle_max = std::chrono::minutes(10);
constexpr Duration stall_max = std::chrono::hours(1);
constexpr Duration linger_max = std::chrono::seconds(2);
// Generous: huge headers are among the things that are tried on a gateway.
constexpr HeadLimits head_limits{1024 * 1024, 2000, 256 * 1024};

TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

std::int64_t unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

/// Gives back what a request holds, also when its coroutine is torn down.
struct Holdings {
  Engine& engine;
  const bool& counted;
  bool slot = false;
  Engine::End end = Engine::End::cancelled;

  ~Holdings() {
    if (slot) engine.release_slot();
    if (counted) engine.end_request(end);
  }
};

/// The status that the client can see; 0 where the faults leave none.
int visible_status(const Reply& reply, const std::vector<FaultRule>& faults) {
  for (const FaultRule& rule : faults) {
    const bool at_start = !rule.place.set() || rule.place.after_bytes == 0;
    switch (rule.kind) {
      case FaultKind::refuse:
      case FaultKind::raw:
        return 0;
      case FaultKind::reset:
      case FaultKind::cut:
      case FaultKind::garbage:
        if (at_start) return 0;
        break;
      default:
        break;
    }
  }
  return reply.status;
}

}  // namespace

Session::Session(tcp::socket socket, Engine& engine)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      idle_timer_(socket_.get_executor()),
      engine_(engine) {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  // The deadline of every write: a client that takes nothing for so long is cut by the kernel.
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  constexpr auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(idle_max);
  socket_.set_option(UserTimeout(static_cast<int>(idle.count())), ignored);
}

void Session::close() {
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  idle_timer_.cancel();
}

void Session::reset() {
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

asio::awaitable<void> Session::serve(std::shared_ptr<Session> self) {
  for (;;) {
    Incoming request;
    if (!co_await self->read_head(request.head)) break;
    if (!co_await self->read_body(request.head, request.body)) break;
    request.now = steady_now();
    request.unix_seconds = unix_now();
    const After after = co_await self->answer(request);
    if (after == After::keep) continue;
    if (after == After::close) co_await self->linger();
    break;
  }
  self->close();
}

asio::awaitable<bool> Session::fill() {
  if (closed_) co_return false;
  chunk_.resize(read_bytes);
  idle_timer_.expires_after(idle_max);
  idle_timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->close();
  });
  const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(chunk_), no_throw);
  idle_timer_.cancel();
  if (error) co_return false;
  buffer_.append(chunk_, 0, bytes);
  co_return true;
}

asio::awaitable<bool> Session::read_head(RequestHead& head) {
  HeadScanner scanner;
  auto state = scanner.scan(buffer_, head_limits, true);
  while (state == HeadScanner::State::incomplete) {
    if (!co_await fill()) co_return false;
    state = scanner.scan(buffer_, head_limits, true);
  }
  if (state == HeadScanner::State::refused) {
    co_return co_await refuse(api_error_row(scanner.refusal().kind).status, scanner.refusal().why);
  }
  // The buffer moves on while the body is read; the head's views need bytes that stay.
  head_text_ = buffer_.substr(scanner.begin(), scanner.end() - scanner.begin());
  buffer_.erase(0, scanner.end());
  HeadRefusal refusal;
  if (parse_request_head(head_text_, head_limits, head, refusal)) co_return true;
  co_return co_await refuse(api_error_row(refusal.kind).status, refusal.why);
}

asio::awaitable<bool> Session::read_body(const RequestHead& head, std::string& body) {
  const std::size_t bytes_max = engine_.options()->body_bytes_max;
  BodyDecoder decoder(head.framing, head.content_length);
  if (head.expect_continue && buffer_.empty() && decoder.state() == BodyDecoder::State::more) {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, sent] = co_await asio::async_write(socket_, asio::buffer(go_on), no_throw);
    if (error) co_return false;
  }
  if (head.framing == Framing::length && head.content_length <= bytes_max) {
    body.reserve(head.content_length);
  }
  while (decoder.state() == BodyDecoder::State::more) {
    std::size_t used = 0;
    for (;;) {
      const auto step = decoder.next(std::string_view(buffer_).substr(used));
      body += step.payload;
      used += step.consumed;
      if (step.consumed == 0 || step.state != BodyDecoder::State::more) break;
    }
    buffer_.erase(0, used);
    if (body.size() > bytes_max) co_return co_await refuse(413, "the body is too large");
    if (decoder.state() == BodyDecoder::State::more && !co_await fill()) co_return false;
  }
  if (decoder.state() == BodyDecoder::State::failed) co_return co_await refuse(400, decoder.why());
  co_return true;
}

/// Answers what is not a request; always false.
asio::awaitable<bool> Session::refuse(int status, std::string_view why) {
  const Reply reply = error_reply(status, why, "invalid_request_error", "bad_request");
  ScriptFacts facts;
  facts.keep_alive = false;
  const Script script = write_script(reply, {}, facts);
  for (const Step& step : script.steps) {
    if (!co_await send(step.bytes, script)) co_return false;
  }
  co_await linger();
  co_return false;
}

asio::awaitable<Session::After> Session::answer(const Incoming& request) {
  gone_ = false;
  answering_ = true;
  watch();
  engine_.record(head_text_, request.body);
  Outgoing out;
  Holdings held{engine_, out.counted};
  respond(request, engine_, out);
  apply_to_reply(out.reply, out.faults);
  ScriptFacts facts{request.head.minor_version, request.head.keep_alive,
                    request.head.method == "HEAD"};
  facts.early_headers = engine_.options()->timing.early_headers;
  facts.seed = out.ordinal;
  facts.request_id = out.request_id;
  const Script script = write_script(out.reply, out.faults, facts);
  if (out.counted && out.reply.status == 200) {
    held.slot = co_await wait_for_slot();
    if (!held.slot) co_return After::gone;
  }
  if (out.counted) {
    engine_.count_answer(visible_status(out.reply, out.faults), out.faults, out.reply.input_tokens,
                         out.reply.output_tokens);
  }
  held.end = co_await run(script);
  answering_ = false;
  if (held.end == Engine::End::cancelled) co_return After::gone;
  const bool keep = held.end == Engine::End::completed && !script.close;
  co_return keep ? After::keep : After::close;
}

asio::awaitable<bool> Session::wait_for_slot() {
  if (engine_.take_slot(*this)) co_return true;
  while (!granted && !gone_ && !closed_) {
    timer_.expires_at(TimePoint::max());
    co_await timer_.async_wait(no_throw);
  }
  if (granted) co_return true;
  engine_.leave_line(*this);
  co_return false;
}

asio::awaitable<Engine::End> Session::run(const Script& script) {
  TimePoint due = steady_now();
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    const Step& step = script.steps[i];
    if (step.what == Step::Do::stall) {
      if (co_await stall(step.wait) != Engine::End::completed) co_return Engine::End::cancelled;
      due = steady_now();
      continue;
    }
    if (step.wait > Duration{}) {
      const double growth =
          step.paced ? 1 + engine_.options()->timing.load_growth * engine_.others_running() : 1;
      due += Duration(static_cast<Duration::rep>(static_cast<double>(step.wait.count()) * growth));
      if (!co_await sleep_until(due)) co_return Engine::End::cancelled;
    }
    if (step.what == Step::Do::reset) reset();
    if (step.what != Step::Do::send) co_return Engine::End::broken;
    if (step.repeat > 1) {
      for (std::uint64_t k = 0; k < step.repeat; ++k) {
        if (!co_await send(step.bytes, script)) co_return Engine::End::cancelled;
      }
      continue;
    }
    // What is due at the same moment leaves in one segment, as from a real server.
    std::string bytes = step.bytes;
    while (i + 1 < script.steps.size() && bytes.size() < merge_bytes_max) {
      const Step& next = script.steps[i + 1];
      if (next.what != Step::Do::send || next.wait > Duration{} || next.repeat > 1) break;
      bytes += next.bytes;
      ++i;
    }
    if (!co_await send(bytes, script)) co_return Engine::End::cancelled;
  }
  co_return Engine::End::completed;
}

asio::awaitable<Engine::End> Session::stall(Duration duration) {
  const Duration wait = duration == Duration{} ? stall_max : duration;
  const bool stayed = co_await sleep_until(steady_now() + wait);
  co_return stayed ? Engine::End::completed : Engine::End::cancelled;
}

asio::awaitable<bool> Session::send(std::string_view bytes, const Script& script) {
  while (!bytes.empty()) {
    const std::size_t size = script.send_bytes_max == 0
                                 ? bytes.size()
                                 : std::min<std::size_t>(script.send_bytes_max, bytes.size());
    if (closed_) co_return false;
    const auto [error, sent] =
        co_await asio::async_write(socket_, asio::buffer(bytes.data(), size), no_throw);
    if (error) co_return false;
    bytes.remove_prefix(size);
    if (bytes.empty() || script.pause == Duration{}) continue;
    if (!co_await sleep_until(steady_now() + script.pause)) co_return false;
  }
  co_return true;
}

/// False if the client left or the simulator stops.
asio::awaitable<bool> Session::sleep_until(TimePoint due) {
  if (gone_ || closed_) co_return false;
  if (due <= steady_now()) co_return true;
  timer_.expires_at(due);
  co_await timer_.async_wait(no_throw);
  co_return !gone_ && !closed_;
}

/// FIN, then reads on for a while: closing with unread bytes would turn the FIN into a reset.
asio::awaitable<void> Session::linger() {
  if (closed_) co_return;
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  timer_.expires_after(linger_max);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->close();
  });
  chunk_.resize(read_bytes);
  while (!closed_) {
    const auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(chunk_), no_throw);
    if (error) break;
  }
}

void Session::watch() {
  if (watching_) return;
  watching_ = true;
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this()](boost::system::error_code error) {
                       self->watching_ = false;
                       if (!error && self->answering_) self->on_readable();
                     });
}

/// An end of the stream while we answer is a departure; bytes are the next request, left for later.
void Session::on_readable() {
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool nothing_yet = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (nothing_yet) {
    watch();
  } else if (got <= 0) {
    gone_ = true;
    timer_.cancel();
  }
}

}  // namespace flashgate

// A model server that costs almost nothing: one thread, raw epoll, canned replies.
// `GET /bench/set?delay_us=&deltas=&gap_us=&hold=` (directly, not through a proxy) sets what later
// requests get, answers with the counters so far and resets them. Checks every request: host and
// authorization as the proxy must write them, body whole. Usage: bench_backend --port N

#include <queue>

#include "tests/bench/chat_request.hpp"
#include "tests/bench/machine.hpp"

namespace flashgate {
namespace {

constexpr int events_max = 512;
constexpr std::size_t read_bytes_max = 256 * 1024;
constexpr int stamp_digits = 16;

// What requests get. `hold` streams send their first delta and then stay silent.
struct Behaviour {
  std::int64_t delay_us = 0;
  std::int64_t deltas = 64;
  std::int64_t gap_us = 20'000;
  bool hold = false;
};

struct Counters {
  std::int64_t requests = 0;
  std::int64_t bad = 0;
};

struct Session {
  int fd = -1;
  std::uint32_t generation = 0;
  std::string in;
  std::string out;
  std::string nonce;
  bool stream = false;
  bool usage = false;
  std::int64_t next_delta = 0;
};

struct Timer {
  std::int64_t due_ns;
  std::size_t session;
  std::uint32_t generation;
  bool operator>(const Timer& other) const { return due_ns > other.due_ns; }
};

const std::string unary_head =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
const std::string stream_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string chunk_begin =
    R"({"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"bench-model","choices":[{"index":0,"delta":)";
const std::string usage_event =
    R"({"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,)"
    R"("model":"bench-model","choices":[],"usage":{"prompt_tokens":380,"completion_tokens":64,)"
    R"("total_tokens":444}})";

std::string unary_reply(std::string_view nonce) {
  static const std::string begin =
      R"({"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,)"
      R"("model":"bench-model","choices":[{"index":0,"message":)"
      R"({"role":"assistant","content":"echo-)";
  static const std::string end =
      R"( The notice period is set by clause 7.2 of the agreement: ninety days, given in writing )"
      R"(to the registered office of the other party. The clause does not say when the period )"
      R"(begins; clause 1.4 lets it begin on the day of receipt."},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":380,"completion_tokens":64,"total_tokens":444},)"
      R"("system_fingerprint":"fp_bench"})";
  const std::string body = begin + std::string(nonce) + end;
  return unary_head + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// One server-sent event as one HTTP chunk.
std::string event(std::string_view data) {
  char size[8];
  const std::string payload = "data: " + std::string(data) + "\n\n";
  const auto end = std::to_chars(size, size + sizeof size, payload.size(), 16);
  return std::string(size, end.ptr) + "\r\n" + payload + "\r\n";
}

std::string delta_event(std::string_view nonce, std::int64_t sequence, std::int64_t stamp_ns) {
  std::string content = "n0000000000000000:00000:0000000000000000 and so on";
  std::copy(nonce.begin(), nonce.end(), content.begin() + 1);
  write_decimal(content.data() + 18, static_cast<std::uint64_t>(sequence), 5);
  write_decimal(content.data() + 24, static_cast<std::uint64_t>(stamp_ns), stamp_digits);
  return event(chunk_begin + R"({"content":")" + content + R"("},"finish_reason":null}]})");
}

class Backend {
 public:
  explicit Backend(int port)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        authority_("127.0.0.1:" + std::to_string(port)),
        buffer_(read_bytes_max, '\0') {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in address = loopback(port);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 4096) != 0) {
      fail("listen");
    }
    watch(epoll_, EPOLL_CTL_ADD, listener_, EPOLLIN, 0);
  }

  [[noreturn]] void run() {
    epoll_event events[events_max];
    for (;;) {
      fire_timers();
      timespec wait{};
      if (!timers_.empty()) {
        const std::int64_t left = std::max<std::int64_t>(0, timers_.top().due_ns - now_ns());
        wait = {left / 1'000'000'000, left % 1'000'000'000};
      }
      const int count =
          epoll_pwait2(epoll_, events, events_max, timers_.empty() ? nullptr : &wait, nullptr);
      if (count < 0 && errno != EINTR) fail("epoll_pwait2");
      for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 == 0) {
          accept_all();
        } else {
          ready(events[i].data.u64 - 1, events[i].events);
        }
      }
    }
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (free_.empty()) {
        free_.push_back(sessions_.size());
        sessions_.emplace_back();
      }
      sessions_[free_.back()].fd = fd;
      watch(epoll_, EPOLL_CTL_ADD, fd, EPOLLIN, free_.back() + 1);
      free_.pop_back();
    }
  }

  void close_session(std::size_t at) {
    Session& session = sessions_[at];
    close(session.fd);
    const std::uint32_t generation = session.generation + 1;
    session = Session{};
    session.generation = generation;
    free_.push_back(at);
  }

  void ready(std::size_t at, std::uint32_t events) {
    Session& session = sessions_[at];
    if (session.fd < 0) return;
    if (events & EPOLLOUT) {
      if (!send_out(at, {})) return;
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    const ssize_t got = recv(session.fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close_session(at);
    session.in.append(buffer_.data(), static_cast<std::size_t>(got));
    const auto head = parse_head(session.in);
    if (!head || session.in.size() < head->bytes + head->content_length) return;
    const std::string request = std::move(session.in);
    session.in.clear();
    serve(at, std::string_view(request).substr(0, head->bytes),
          std::string_view(request).substr(head->bytes));
  }

  void serve(std::size_t at, std::string_view head, std::string_view body) {
    if (head.starts_with("GET /bench/set")) return control(at, head);
    if (head.starts_with("GET ")) {
      const std::string models = R"({"object":"list","data":[{"id":"bench-model"}]})";
      send_out(at, unary_head + std::to_string(models.size()) + "\r\n\r\n" + models);
      return;
    }
    Session& session = sessions_[at];
    session.nonce = whole_body_nonce(body);
    ++counters_.requests;
    if (session.nonce.empty() || header_value(head, "host") != authority_ ||
        header_value(head, "authorization") != "Bearer bench-upstream-key") {
      ++counters_.bad;
    }
    const auto has = [&](std::string_view word) {
      const std::size_t edge = std::min<std::size_t>(body.size(), 256);
      return body.substr(0, edge).find(word) != std::string_view::npos ||
             body.substr(body.size() - edge).find(word) != std::string_view::npos;
    };
    session.stream = has(R"("stream":true)") || has(R"("stream": true)");
    session.usage = session.stream && has("include_usage");
    session.next_delta = -1;
    if (behaviour_.delay_us == 0) return advance(at, now_ns());
    schedule(at, now_ns() + behaviour_.delay_us * 1000);
  }

  void control(std::size_t at, std::string_view head) {
    const std::string_view line = head.substr(0, head.find(" HTTP"));
    const auto number = [&](std::string_view name, std::int64_t otherwise) {
      const std::size_t found = line.find(name);
      if (found != std::string_view::npos) {
        const std::size_t from = found + name.size();
        std::from_chars(line.data() + from, line.data() + line.size(), otherwise);
      }
      return otherwise;
    };
    behaviour_ = {.delay_us = number("delay_us=", 0),
                  .deltas = number("deltas=", 64),
                  .gap_us = number("gap_us=", 20'000),
                  .hold = number("hold=", 0) != 0};
    const std::string body = R"({"requests":)" + std::to_string(counters_.requests) + R"(,"bad":)" +
                             std::to_string(counters_.bad) + "}";
    counters_ = {};
    send_out(at, unary_head + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  void schedule(std::size_t at, std::int64_t due_ns) {
    timers_.push({due_ns, at, sessions_[at].generation});
  }

  void fire_timers() {
    while (!timers_.empty()) {
      const Timer timer = timers_.top();
      if (timer.due_ns > now_ns()) return;
      timers_.pop();
      if (sessions_[timer.session].generation == timer.generation) {
        advance(timer.session, timer.due_ns);
      }
    }
  }

  // Sends what is due: the whole reply, or the next part of a stream. The gap counts from the due
  // time, not from now, so a late wake-up does not stretch the stream.
  void advance(std::size_t at, std::int64_t due_ns) {
    Session& session = sessions_[at];
    if (!session.stream) {
      send_out(at, unary_reply(session.nonce));
      return;
    }
    if (session.next_delta < 0) {
      session.next_delta = 0;
      const std::string role =
          event(chunk_begin + R"({"role":"assistant","content":""},"finish_reason":null}]})");
      if (!send_out(at, stream_head + role)) return;
      return schedule(at, due_ns + behaviour_.gap_us * 1000);
    }
    if (session.next_delta < behaviour_.deltas) {
      const std::int64_t sequence = session.next_delta++;
      if (!send_out(at, delta_event(session.nonce, sequence, now_ns()))) return;
      if (!behaviour_.hold) schedule(at, due_ns + behaviour_.gap_us * 1000);
      return;
    }
    send_out(at, event(chunk_begin + R"({},"finish_reason":"stop"}]})") +
                     (session.usage ? event(usage_event) : "") + event("[DONE]") + "0\r\n\r\n");
  }

  // Sends, keeping what the socket does not take. False when the session is gone.
  bool send_out(std::size_t at, const std::string& bytes) {
    Session& session = sessions_[at];
    const bool waiting = !session.out.empty();
    if (waiting && !bytes.empty()) {
      session.out += bytes;
      return true;
    }
    const std::string& from = waiting ? session.out : bytes;
    const ssize_t sent = send(session.fd, from.data(), from.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      close_session(at);
      return false;
    }
    std::string left = from.substr(sent < 0 ? 0 : static_cast<std::size_t>(sent));
    if (waiting || !left.empty()) {
      const std::uint32_t events = left.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
      watch(epoll_, EPOLL_CTL_MOD, session.fd, events, at + 1);
    }
    session.out = std::move(left);
    return true;
  }

  int epoll_;
  int listener_ = -1;
  std::string authority_;
  std::string buffer_;
  Behaviour behaviour_;
  Counters counters_;
  std::vector<Session> sessions_;
  std::vector<std::size_t> free_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
};

}  // namespace
}  // namespace flashgate

int main(int argc, char** argv) {
  flashgate::raise_file_limit();
  const flashgate::Options options(argc, argv);
  flashgate::Backend(static_cast<int>(options.number("--port", 0))).run();
}

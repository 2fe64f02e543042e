// Closed-loop load: N keep-alive connections, each sends the next request when it has checked the
// reply to the last. Prints one JSON line. The CPU time of the processes named by --pids is read at
// the two ends of the measured window. One thread, raw epoll.
// Usage: bench_load --port N [--connections 64] [--seconds 2] [--warm 0.5] [--body 1536]
//   [--requests N] [--pids A,B] [--authorization V] [--header "Name: value"]...

#include <random>

#include "tests/bench/chat_request.hpp"
#include "tests/bench/machine.hpp"

namespace flashgate {
namespace {

constexpr int events_max = 512;
constexpr std::size_t read_bytes_max = 64 * 1024;
constexpr std::size_t reply_bytes_min = 500;

struct LoadOptions {
  ChatRequestOptions request;
  std::size_t connections = 64;
  double seconds = 2;
  double warm_seconds = 0.5;
  std::int64_t requests_max = 0;
  std::vector<int> pids;
};

struct LoadConnection {
  explicit LoadConnection(const ChatRequestOptions& options) : request(options) {}
  int fd = -1;
  ChatRequest request;
  std::size_t sent = 0;
  bool waits_for_room = false;
  std::int64_t started_ns = 0;
  std::string in;
};

// The reply must be whole, successful, and the answer to this very request.
bool correct(std::string_view head, std::string_view body, std::string_view nonce) {
  const std::size_t echo = body.find("\"echo-");
  return head.starts_with("HTTP/1.1 200") && body.size() >= reply_bytes_min &&
         echo != std::string_view::npos && body.substr(echo + 6, nonce.size()) == nonce &&
         body.find("\"usage\"") != std::string_view::npos && body.ends_with('}');
}

class Load {
 public:
  explicit Load(LoadOptions options)
      : options_(std::move(options)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        buffer_(read_bytes_max, '\0'),
        nonce_(std::random_device{}()) {}

  void run() {
    const std::int64_t begin = now_ns();
    measure_from_ns_ = begin + static_cast<std::int64_t>(options_.warm_seconds * 1e9);
    const std::int64_t end = measure_from_ns_ + static_cast<std::int64_t>(options_.seconds * 1e9);
    connections_.reserve(options_.connections);
    for (std::size_t i = 0; i < options_.connections; ++i) {
      connections_.emplace_back(options_.request);
      open(i);
    }
    std::int64_t window_from = 0;
    std::int64_t cpu_from = 0;
    epoll_event events[events_max];
    for (;;) {
      const std::int64_t now = now_ns();
      if (!measuring_ && now >= measure_from_ns_) {
        measuring_ = true;
        cpu_from = cpu_ns(options_.pids);
        window_from = now_ns();
      }
      if (now >= end || (options_.requests_max > 0 && done_ >= options_.requests_max)) break;
      const int count = epoll_wait(epoll_, events, events_max, 100);
      for (int i = 0; i < count; ++i) ready(events[i].data.u64, events[i].events);
    }
    const std::int64_t window_ns = now_ns() - window_from;
    report(window_ns, cpu_ns(options_.pids) - cpu_from);
  }

 private:
  void open(std::size_t at) {
    LoadConnection& connection = connections_[at];
    connection.fd = connect_to(options_.request.port);
    connection.waits_for_room = false;
    watch(epoll_, EPOLL_CTL_ADD, connection.fd, EPOLLIN, at);
    start(at);
  }

  void reopen(std::size_t at) {
    ++reconnects_;
    close(connections_[at].fd);
    open(at);
  }

  void start(std::size_t at) {
    LoadConnection& connection = connections_[at];
    connection.request.set_nonce(++nonce_ * 0x9e3779b97f4a7c15);
    connection.sent = 0;
    connection.in.clear();
    connection.started_ns = now_ns();
    push(at);
  }

  void push(std::size_t at) {
    LoadConnection& connection = connections_[at];
    const std::string_view left = connection.request.text().substr(connection.sent);
    const ssize_t sent = send(connection.fd, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) connection.sent += static_cast<std::size_t>(sent);
    const bool more = connection.sent < connection.request.text().size();
    if (more != connection.waits_for_room) {
      connection.waits_for_room = more;
      watch(epoll_, EPOLL_CTL_MOD, connection.fd, more ? EPOLLIN | EPOLLOUT : EPOLLIN, at);
    }
  }

  void ready(std::size_t at, std::uint32_t events) {
    LoadConnection& connection = connections_[at];
    if (events & EPOLLOUT) push(at);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      ++errors_;
      return reopen(at);
    }
    connection.in.append(buffer_.data(), static_cast<std::size_t>(got));
    const auto head = parse_head(connection.in);
    if (!head) return;
    const std::string_view rest = std::string_view(connection.in).substr(head->bytes);
    if (!head->chunked) {
      if (rest.size() >= head->content_length) finish(at, *head, rest);
      return;
    }
    std::string body;
    ChunkDecoder decoder;
    decoder.feed(rest, body);
    if (decoder.done() || decoder.failed()) finish(at, *head, body);
  }

  void finish(std::size_t at, const WireHead& head, std::string_view body) {
    LoadConnection& connection = connections_[at];
    const bool good = correct(head.text, body, connection.request.nonce());
    if (!good) {
      if (++errors_ == 1) std::fprintf(stderr, "bad reply: %.400s\n", connection.in.c_str());
    }
    ++done_;
    if (measuring_ && good) latencies_.push_back(now_ns() - connection.started_ns);
    if (head.close) return reopen(at);
    start(at);
  }

  void report(std::int64_t window_ns, std::int64_t spent_ns) {
    const auto requests = static_cast<double>(latencies_.size());
    std::printf(
        "{\"requests\":%zu,\"total\":%lld,\"errors\":%lld,\"reconnects\":%lld,\"seconds\":%.4f,"
        "\"per_second\":%.1f,\"cpu_us\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
        latencies_.size(), static_cast<long long>(done_), static_cast<long long>(errors_),
        static_cast<long long>(reconnects_), static_cast<double>(window_ns) / 1e9,
        requests * 1e9 / static_cast<double>(window_ns),
        requests > 0 ? static_cast<double>(spent_ns) / 1000 / requests : 0.0,
        quantile_us(latencies_, 0.50), quantile_us(latencies_, 0.99));
  }

  LoadOptions options_;
  int epoll_;
  std::string buffer_;
  std::uint64_t nonce_;
  std::vector<LoadConnection> connections_;
  std::vector<std::int64_t> latencies_;
  bool measuring_ = false;
  std::int64_t measure_from_ns_ = 0;
  std::int64_t done_ = 0;
  std::int64_t errors_ = 0;
  std::int64_t reconnects_ = 0;
};

}  // namespace
}  // namespace flashgate

int main(int argc, char** argv) {
  flashgate::raise_file_limit();
  const flashgate::Options given(argc, argv);
  flashgate::LoadOptions options;
  options.request.port = static_cast<int>(given.number("--port", 0));
  options.request.body_bytes = static_cast<std::size_t>(given.number("--body", 1536));
  options.request.authorization = given.text("--authorization", options.request.authorization);
  options.request.headers = given.all("--header");
  options.connections = static_cast<std::size_t>(given.number("--connections", 64));
  options.seconds = given.real("--seconds", 2);
  options.warm_seconds = given.real("--warm", 0.5);
  options.requests_max = given.number("--requests", 0);
  options.pids = flashgate::parse_pids(given.text("--pids", ""));
  flashgate::Load(std::move(options)).run();
}

// Server-sent event streams: opens N at once (spread over one gap), checks that every frame arrives
// once and in order, and how late. Prints one JSON line. One thread, raw epoll. Modes:
//   paced   every stream runs to [DONE];
//   window  endless streams; the CPU time of --pids and the frames of --seconds are measured;
//   hold    streams stay silent after the first frame; prints "open", leaves when stdin closes.
// Usage: bench_streams --port N --mode M [--streams N] [--gap_us 20000] [--deltas 64]
//   [--seconds 2] [--warm 0.5] [--pids A,B] [--authorization V] [--header "Name: value"]...

#include <poll.h>

#include <random>

#include "tests/bench/chat_request.hpp"
#include "tests/bench/machine.hpp"

namespace flashgate {
namespace {

constexpr int events_max = 512;
constexpr std::size_t read_bytes_max = 64 * 1024;
constexpr std::int64_t patience_ns = 20'000'000'000;

struct StreamOptions {
  ChatRequestOptions request;
  std::string mode = "paced";
  std::size_t streams = 200;
  std::int64_t gap_ns = 20'000'000;
  std::int64_t deltas = 64;
  double seconds = 2;
  double warm_seconds = 0.5;
  std::vector<int> pids;
};

struct Stream {
  explicit Stream(const ChatRequestOptions& options) : request(options) {}
  int fd = -1;
  ChatRequest request;
  ChunkDecoder decoder;
  std::string in;
  std::string events;
  bool headed = false;
  bool chunked = false;
  bool said_done = false;
  std::int64_t started_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t next_sequence = 0;
};

class Streams {
 public:
  explicit Streams(StreamOptions options)
      : options_(std::move(options)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        buffer_(read_bytes_max, '\0'),
        nonce_(std::random_device{}()) {
    streams_.reserve(options_.streams);
    for (std::size_t i = 0; i < options_.streams; ++i) {
      streams_.emplace_back(options_.request);
      streams_.back().fd = connect_to(options_.request.port);
      watch(epoll_, EPOLL_CTL_ADD, streams_.back().fd, EPOLLIN, i);
    }
  }

  void run() {
    begin_ns_ = now_ns();
    const auto warm = static_cast<std::int64_t>(options_.warm_seconds * 1e9);
    const auto window = static_cast<std::int64_t>(options_.seconds * 1e9);
    const std::int64_t measure_from = begin_ns_ + options_.gap_ns + warm;
    std::int64_t window_from = begin_ns_;
    std::int64_t cpu_from = cpu_ns(options_.pids);
    measuring_ = options_.mode != "window";
    while (!finished(measure_from + window)) {
      if (!measuring_ && now_ns() >= measure_from) {
        measuring_ = true;
        cpu_from = cpu_ns(options_.pids);
        window_from = now_ns();
      }
      turn();
    }
    report(now_ns() - window_from, cpu_ns(options_.pids) - cpu_from);
  }

 private:
  bool finished(std::int64_t window_end) {
    const std::int64_t now = now_ns();
    if (options_.mode == "window") return now >= window_end;
    if (options_.mode == "paced") {
      const std::int64_t nominal = options_.gap_ns * (options_.deltas + 2);
      return over_ == streams_.size() || now > begin_ns_ + nominal + patience_ns;
    }
    if (now > begin_ns_ + patience_ns && frames_ < static_cast<std::int64_t>(streams_.size())) {
      return true;
    }
    if (frames_ < static_cast<std::int64_t>(streams_.size())) return false;
    if (!told_open_) {
      told_open_ = true;
      std::printf("open\n");
      std::fflush(stdout);
    }
    pollfd input{0, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
  }

  // Starts the streams whose turn has come, then takes what has arrived.
  void turn() {
    const std::int64_t since = now_ns() - begin_ns_;
    const auto all = static_cast<std::int64_t>(streams_.size());
    while (started_ < all && started_ * options_.gap_ns / all <= since) {
      start(static_cast<std::size_t>(started_++));
    }
    epoll_event events[events_max];
    timespec wait{0, started_ < all ? 100'000 : 20'000'000};
    const int count = epoll_pwait2(epoll_, events, events_max, &wait, nullptr);
    for (int i = 0; i < count; ++i) ready(events[i].data.u64);
  }

  void start(std::size_t at) {
    Stream& stream = streams_[at];
    stream.request.set_nonce(++nonce_ * 0x9e3779b97f4a7c15);
    stream.started_ns = now_ns();
    const std::string_view text = stream.request.text();
    const ssize_t sent = send(stream.fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(text.size())) error(stream, "request not sent");
  }

  void error(const Stream& stream, const char* what) {
    if (++errors_ == 1) std::fprintf(stderr, "%s: %.400s\n", what, stream.in.c_str());
  }

  void ready(std::size_t at) {
    Stream& stream = streams_[at];
    const ssize_t got = recv(stream.fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      if (!stream.said_done) error(stream, "stream broke off");
      return end(stream);
    }
    std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
    if (!stream.headed) {
      stream.in.append(bytes);
      const auto head = parse_head(stream.in);
      if (!head) return;
      stream.headed = true;
      stream.chunked = head->chunked;
      if (!head->text.starts_with("HTTP/1.1 200")) error(stream, "bad status");
      bytes = std::string_view(stream.in).substr(head->bytes);
    }
    if (stream.chunked) {
      stream.decoder.feed(bytes, stream.events);
    } else {
      stream.events.append(bytes);
    }
    take_events(stream, now_ns());
    if (stream.decoder.failed()) error(stream, "bad chunk");
    if (stream.decoder.done() || stream.decoder.failed()) end(stream);
  }

  void take_events(Stream& stream, std::int64_t now) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t next = stream.events.find("\n\n", at);
      if (next == std::string::npos) break;
      take_event(stream, std::string_view(stream.events).substr(at, next - at), now);
      at = next + 2;
    }
    stream.events.erase(0, at);
  }

  void take_event(Stream& stream, std::string_view text, std::int64_t now) {
    if (text == "data: [DONE]") {
      stream.said_done = true;
      return;
    }
    const std::size_t mark = text.find(R"("content":"n)");
    if (mark == std::string_view::npos) return;
    const std::string_view content = text.substr(mark + 12);
    std::int64_t sequence = -1;
    std::int64_t stamp = 0;
    if (content.size() < 39 || content.substr(0, 16) != stream.request.nonce()) {
      return error(stream, "frame of another stream");
    }
    std::from_chars(content.data() + 17, content.data() + 22, sequence);
    std::from_chars(content.data() + 23, content.data() + 39, stamp);
    if (sequence < stream.next_sequence) return error(stream, "frame twice or out of order");
    lost_ += sequence - stream.next_sequence;
    stream.next_sequence = sequence + 1;
    if (sequence == 0) first_frames_.push_back(now - stream.started_ns - options_.gap_ns);
    ++frames_;
    if (measuring_) {
      ++measured_frames_;
      lateness_.push_back(now - stamp);
      if (sequence > 0) jitter_.push_back(std::abs(now - stream.last_ns - options_.gap_ns));
    }
    stream.last_ns = now;
  }

  void end(Stream& stream) {
    close(stream.fd);
    stream.fd = -1;
    ++over_;
    if (options_.mode != "paced") return error(stream, "stream ended early");
    lost_ += options_.deltas - stream.next_sequence;
    if (!stream.said_done) error(stream, "no [DONE]");
  }

  void report(std::int64_t window_ns, std::int64_t spent_ns) {
    if (options_.mode == "paced" && over_ < streams_.size()) {
      errors_ += static_cast<std::int64_t>(streams_.size() - over_);
    }
    const auto frames = static_cast<double>(measured_frames_);
    std::printf(
        "{\"frames\":%lld,\"lost\":%lld,\"errors\":%lld,\"seconds\":%.4f,\"cpu_us\":%.3f,"
        "\"first_p50_us\":%.1f,\"first_p99_us\":%.1f,\"late_p50_us\":%.1f,\"late_p99_us\":%.1f,"
        "\"jitter_p99_us\":%.1f}\n",
        static_cast<long long>(measured_frames_), static_cast<long long>(lost_),
        static_cast<long long>(errors_), static_cast<double>(window_ns) / 1e9,
        frames > 0 ? static_cast<double>(spent_ns) / 1000 / frames : 0.0,
        quantile_us(first_frames_, 0.50), quantile_us(first_frames_, 0.99),
        quantile_us(lateness_, 0.50), quantile_us(lateness_, 0.99), quantile_us(jitter_, 0.99));
  }

  StreamOptions options_;
  int epoll_;
  std::string buffer_;
  std::uint64_t nonce_;
  std::vector<Stream> streams_;
  std::vector<std::int64_t> first_frames_;
  std::vector<std::int64_t> lateness_;
  std::vector<std::int64_t> jitter_;
  std::int64_t begin_ns_ = 0;
  std::int64_t started_ = 0;
  std::size_t over_ = 0;
  std::int64_t frames_ = 0;
  std::int64_t measured_frames_ = 0;
  std::int64_t lost_ = 0;
  std::int64_t errors_ = 0;
  bool measuring_ = false;
  bool told_open_ = false;
};

}  // namespace
}  // namespace flashgate

int main(int argc, char** argv) {
  flashgate::raise_file_limit();
  const flashgate::Options given(argc, argv);
  flashgate::StreamOptions options;
  options.request.port = static_cast<int>(given.number("--port", 0));
  options.request.stream = true;
  options.request.authorization = given.text("--authorization", options.request.authorization);
  options.request.headers = given.all("--header");
  options.mode = given.text("--mode", options.mode);
  options.streams = static_cast<std::size_t>(given.number("--streams", 200));
  options.gap_ns = given.number("--gap_us", 20'000) * 1000;
  options.deltas = given.number("--deltas", 64);
  options.seconds = given.real("--seconds", 2);
  options.warm_seconds = given.real("--warm", 0.5);
  options.pids = flashgate::parse_pids(given.text("--pids", ""));
  flashgate::Streams(std::move(options)).run();
}

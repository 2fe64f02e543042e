#pragma once
// A blocking client of bytes for the simulator's tests: sends what it is told, notes when each read
// came and how the connection ended. One thread.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace flashgate::test {

enum class Ending { open, fin, reset, timeout };

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    set_timeout(std::chrono::seconds(10));
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("connect failed");
    }
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void set_timeout(std::chrono::milliseconds limit) const {
    const auto ms = limit.count();
    const timeval value{static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void post(std::string_view path, std::string_view body, std::string_view fields = {}) const {
    send("POST " + std::string(path) + " HTTP/1.1\r\nHost: sim\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" + std::string(body));
  }

  /// One read; false at the end of the connection or of our patience.
  bool read_some() {
    char buffer[64 * 1024];
    const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
    if (got > 0) {
      bytes_.append(buffer, static_cast<std::size_t>(got));
      reads_.push_back(std::chrono::steady_clock::now());
      return true;
    }
    ending_ = got == 0                                  ? Ending::fin
              : errno == EAGAIN || errno == EWOULDBLOCK ? Ending::timeout
                                                        : Ending::reset;
    return false;
  }
  Ending read_all() {
    while (read_some()) {
    }
    return ending_;
  }
  /// Reads until the bytes hold `text`; false if they never do.
  bool read_until(std::string_view text) {
    while (bytes_.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  /// Reads one answer with a Content-Length; returns its body and forgets it.
  std::string read_answer() {
    if (!read_until("\r\n\r\n")) return {};
    const std::size_t head_end = bytes_.find("\r\n\r\n") + 4;
    const std::size_t field = bytes_.find("content-length: ");
    if (field == std::string::npos) return {};
    const std::size_t length = std::stoul(bytes_.substr(field + 16));
    while (bytes_.size() < head_end + length) {
      if (!read_some()) return {};
    }
    std::string body = bytes_.substr(head_end, length);
    last_head_ = bytes_.substr(0, head_end);
    bytes_.erase(0, head_end + length);
    return body;
  }

  const std::string& bytes() const { return bytes_; }
  const std::string& last_head() const { return last_head_; }
  const std::vector<std::chrono::steady_clock::time_point>& reads() const { return reads_; }

 private:
  int fd_;
  std::string bytes_{};
  std::string last_head_{};
  std::vector<std::chrono::steady_clock::time_point> reads_{};
  Ending ending_ = Ending::open;
};

/// Polls until `holds` or ten seconds have gone.
template <class Condition>
bool eventually(Condition holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    ::usleep(200);
  }
  return true;
}

}  // namespace flashgate::test

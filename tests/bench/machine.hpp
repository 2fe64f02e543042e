#pragma once
// What the benchmark's programs need of the machine: clock, loopback sockets, epoll, the CPU time
// of a set of processes, and `--name value` options. Any failure here ends the program: a
// benchmark that half works is worse than none. Single-threaded.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace flashgate {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// `--name value` pairs; an option nobody asks for is ignored, a missing one takes its default.
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) values_.emplace(argv[i], argv[i + 1]);
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  std::vector<std::string> all(const std::string& name) const {
    std::vector<std::string> out;
    for (auto [at, end] = values_.equal_range(name); at != end; ++at) out.push_back(at->second);
    return out;
  }
  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    return std::stoll(text(name, std::to_string(otherwise)));
  }
  double real(const std::string& name, double otherwise) const {
    return std::stod(text(name, std::to_string(otherwise)));
  }

 private:
  std::multimap<std::string, std::string> values_;
};

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline void raise_file_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A connected, non-blocking, no-delay socket.
inline int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("connect");
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

inline void watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (epoll_ctl(epoll, operation, fd, &event) != 0) fail("epoll_ctl");
}

// CPU time spent so far by all threads of the processes, from the scheduler's own account.
inline std::int64_t cpu_ns(const std::vector<int>& pids) {
  std::int64_t total = 0;
  for (const int pid : pids) {
    std::error_code error;
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      std::int64_t spent = 0;
      std::ifstream(task.path() / "schedstat") >> spent;
      total += spent;
    }
  }
  return total;
}

inline std::vector<int> parse_pids(const std::string& text) {
  std::vector<int> pids;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    pids.push_back(std::stoi(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return pids;
}

// The q-quantile of the samples in microseconds (samples are nanoseconds); 0 without samples.
inline double quantile_us(std::vector<std::int64_t>& samples, double q) {
  if (samples.empty()) return 0;
  const auto at = static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1));
  const auto place = samples.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(samples.begin(), place, samples.end());
  return static_cast<double>(*place) / 1000.0;
}

}  // namespace flashgate

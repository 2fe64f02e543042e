#include "gateway/call_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace flashgate {
namespace {

/// Workers don't wake the writer: a futex call per request would cost more than the line.
constexpr std::chrono::milliseconds write_interval{20};
constexpr int sink_wait_ms = 100;
constexpr int shutdown_waits_max = 20;

std::uint64_t line_count(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

CallLog::CallLog(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  healthy_ = open_sink();
  thread_ = std::thread([this] { run(); });
}

CallLog::~CallLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

void CallLog::append(std::string_view line) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  if (queued_.size() + line.size() > queued_bytes_max) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  queued_.append(line);
}

void CallLog::run() {
  std::string batch;
  bool stopping = false;
  while (!stopping) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, write_interval, [this] { return stopping_; });
      stopping = stopping_;
      batch.swap(queued_);
    }
    if (!batch.empty()) write_out(batch);
    batch.clear();
  }
}

bool CallLog::open_sink() {
  if (path_ == "-") {
    fd_ = STDOUT_FILENO;
    return true;
  }
  if (fd_ >= 0) ::close(fd_);
  // Non-blocking, so that a FIFO without a reader is an error and not a hang.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
  return fd_ >= 0;
}

bool CallLog::sink_moved() const {
  if (path_ == "-" || fd_ < 0) return fd_ < 0;
  struct stat named {};
  struct stat opened {};
  if (::stat(path_.c_str(), &named) != 0 || ::fstat(fd_, &opened) != 0) return true;
  return named.st_ino != opened.st_ino || named.st_dev != opened.st_dev;
}

void CallLog::write_out(std::string_view lines) {
  if (sink_moved()) healthy_ = open_sink();
  int waits = 0;
  while (!lines.empty()) {
    const ssize_t count = fd_ < 0 ? -1 : ::write(fd_, lines.data(), lines.size());
    if (count > 0) {
      lines.remove_prefix(static_cast<std::size_t>(count));
      healthy_ = true;
      continue;
    }
    if (fd_ >= 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd waiting{fd_, POLLOUT, 0};
      ::poll(&waiting, 1, sink_wait_ms);
      bool stopping = false;
      {
        const std::lock_guard lock(mutex_);
        stopping = stopping_;
      }
      if (!stopping || ++waits < shutdown_waits_max) continue;
    }
    healthy_ = false;
    dropped_.fetch_add(line_count(lines), std::memory_order_relaxed);
    return;
  }
}

}  // namespace flashgate

#pragma once
// The call log: workers hand over finished lines, one thread writes them. A slow, full or broken
// sink never delays a request: the queue is bounded, and what does not fit is dropped and counted.
// append() may be called from any thread.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace flashgate {

class CallLog {
 public:
  static constexpr std::size_t queued_bytes_max = 8U << 20;

  /// `path` "-" is standard output, "" is nowhere. The file is appended to, and opened anew when it
  /// was moved or removed.
  explicit CallLog(std::string path);
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  /// `line` ends with a newline.
  void append(std::string_view line);
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  /// False: the file can't be opened now.
  bool healthy() const { return healthy_.load(std::memory_order_relaxed); }

 private:
  void run();
  void write_out(std::string_view lines);
  bool open_sink();
  bool sink_moved() const;

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string queued_{};
  bool stopping_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> healthy_{true};
  int fd_ = -1;
  std::thread thread_;
};

}  // namespace flashgate

#pragma once
// Growable bytes of a message body with zeroed, readable padding after the end, so that wide loads
// may run past it. Growth doubles; `release` gives the memory back while a stream is idle.
// Plain value, one thread at a time.
#include <cstddef>
#include <memory>
#include <string_view>

namespace flashgate {

class BodyBuffer {
 public:
  static constexpr std::size_t padding_bytes = 64;

  BodyBuffer() = default;
  explicit BodyBuffer(std::string_view bytes) { append(bytes); }
  BodyBuffer(BodyBuffer&& other) noexcept;
  BodyBuffer& operator=(BodyBuffer&& other) noexcept;

  void append(std::string_view bytes);
  void reserve(std::size_t bytes);
  /// Room for `bytes` more after the end, to be written to directly; then `commit` what came.
  char* prepare(std::size_t bytes);
  /// REQUIRES: at most what the last `prepare` asked for.
  void commit(std::size_t bytes);
  /// Forgets the bytes, keeps the memory.
  void clear();
  /// Forgets the bytes and frees the memory.
  void release();

  std::string_view view() const { return {data(), size_}; }
  const char* data() const;
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

 private:
  std::unique_ptr<char[]> bytes_{};
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;  // without the padding
};

}  // namespace flashgate

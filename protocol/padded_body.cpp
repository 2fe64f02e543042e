#include "protocol/padded_body.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace flashgate {
namespace {

constexpr std::size_t first_capacity_bytes = 4096 - BodyBuffer::padding_bytes;
constexpr char no_bytes[BodyBuffer::padding_bytes] = {};

}  // namespace

BodyBuffer::BodyBuffer(BodyBuffer&& other) noexcept
    : bytes_(std::move(other.bytes_)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

BodyBuffer& BodyBuffer::operator=(BodyBuffer&& other) noexcept {
  if (this == &other) return *this;
  bytes_ = std::move(other.bytes_);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

const char* BodyBuffer::data() const {
  return bytes_ ? bytes_.get() : no_bytes;
}

void BodyBuffer::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return;
  std::unique_ptr<char[]> larger(new char[bytes + padding_bytes]);
  if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
  std::memset(larger.get() + size_, 0, padding_bytes);
  bytes_ = std::move(larger);
  capacity_ = bytes;
}

char* BodyBuffer::prepare(std::size_t bytes) {
  if (bytes > capacity_ - size_) {
    reserve(std::max({size_ + bytes, capacity_ * 2, first_capacity_bytes}));
  }
  return bytes_.get() + size_;
}

void BodyBuffer::commit(std::size_t bytes) {
  assert(bytes <= capacity_ - size_);
  size_ += bytes;
  if (bytes_) std::memset(bytes_.get() + size_, 0, padding_bytes);
}

void BodyBuffer::append(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(prepare(bytes.size()), bytes.data(), bytes.size());
  commit(bytes.size());
}

void BodyBuffer::clear() {
  size_ = 0;
  if (bytes_) std::memset(bytes_.get(), 0, padding_bytes);
}

void BodyBuffer::release() {
  *this = BodyBuffer{};
}

}  // namespace flashgate

#pragma once
// What the classifier reads of a text: its head and its tail in lower case, with a mark at every
// place where a phrase of the vocabulary may begin. Promises: any bytes, no allocation, and time
// bounded by `bytes_max`. Works a block at a time, in loops that compilers turn into vectors.
// Thread rule: a value of its caller.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/task_class.hpp"

namespace flashgate {

class FoldedText {
 public:
  static constexpr std::size_t bytes_max = scanned_head_bytes + 1 + scanned_tail_bytes;
  static constexpr std::size_t block_bytes = 64;
  static constexpr std::size_t blocks_max = (bytes_max + block_bytes - 1) / block_bytes;

  /// Signs of code and of mathematics.
  struct MarkCounts {
    std::size_t braces = 0;
    std::size_t operators = 0;
    std::size_t digits = 0;
  };

  explicit FoldedText(std::string_view text);

  std::string_view view() const { return {bytes_.data(), size_}; }
  std::size_t blocks() const { return (size_ + block_bytes - 1) / block_bytes; }
  /// Bit i: a phrase may begin at byte i of the block. Letters count where a word begins.
  std::uint64_t starts(std::size_t block) const { return starts_[block]; }
  MarkCounts count_marks() const;

  /// Eight bytes, the first one lowest; zeros beyond the end. REQUIRES: at <= view().size().
  std::uint64_t load_8(std::size_t at) const {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + at, sizeof word);
    return word;
  }

 private:
  // Not cleared: the constructor writes whatever is read, zeros behind the end included.
  std::array<char, blocks_max * block_bytes + sizeof(std::uint64_t)> bytes_;
  std::array<std::uint64_t, blocks_max> starts_;
  std::size_t size_;
};

/// Whether a phrase may begin with this byte, given in lower case.
constexpr bool may_start_phrase(unsigned char byte) {
  const bool mark = byte - 0x21U < 15U || byte == '=' || byte == '\\' || byte == '_';
  return byte - std::uint32_t{'a'} < 26U || mark || byte >= 0xC0;
}

}  // namespace flashgate

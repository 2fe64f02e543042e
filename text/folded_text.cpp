#include "text/folded_text.hpp"

#include <algorithm>
#include <bit>

namespace flashgate {

namespace {

using Flags = std::array<std::uint8_t, FoldedText::block_bytes>;

static_assert(std::endian::native == std::endian::little);

/// One bit for each flag, which is 0 or 1.
std::uint64_t packed(const Flags& flags) {
  std::uint64_t bits = 0;
  for (std::size_t at = 0; at < flags.size(); at += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, flags.data() + at, sizeof eight);
    bits |= (eight * 0x0102040810204080U) >> 56U << at;
  }
  return bits;
}

constexpr std::uint8_t in_range(std::uint8_t byte, char first, char last) {
  const auto from_first = static_cast<std::uint8_t>(byte - static_cast<std::uint8_t>(first));
  return from_first <= static_cast<std::uint8_t>(last - first) ? 1 : 0;
}

/// Lower case in place; returns where phrases may begin. `letter_before` goes from block to block.
std::uint64_t fold_block(char* block, std::uint64_t& letter_before) {
  Flags letters;
  Flags others;
  for (std::size_t i = 0; i < FoldedText::block_bytes; ++i) {
    auto byte = static_cast<std::uint8_t>(block[i]);
    byte = static_cast<std::uint8_t>(byte + in_range(byte, 'A', 'Z') * 0x20);
    block[i] = static_cast<char>(byte);
    letters[i] = in_range(byte, 'a', 'z');
    others[i] = static_cast<std::uint8_t>(in_range(byte, '!', '/') | (byte == '=') |
                                          (byte == '\\') | (byte == '_') | (byte >= 0xC0));
  }
  const std::uint64_t is_letter = packed(letters);
  const std::uint64_t starts = (is_letter & ~(is_letter << 1U | letter_before)) | packed(others);
  letter_before = is_letter >> 63U;
  return starts;
}

}  // namespace

FoldedText::FoldedText(std::string_view text) {
  if (text.size() > scanned_head_bytes + scanned_tail_bytes) {
    std::memcpy(bytes_.data(), text.data(), scanned_head_bytes);
    bytes_[scanned_head_bytes] = '\n';
    std::memcpy(bytes_.data() + scanned_head_bytes + 1,
                text.data() + text.size() - scanned_tail_bytes, scanned_tail_bytes);
    size_ = bytes_max;
  } else {
    std::copy(text.begin(), text.end(), bytes_.begin());
    size_ = text.size();
  }
  const std::size_t padded = blocks() * block_bytes + sizeof(std::uint64_t);
  std::memset(bytes_.data() + size_, 0, padded - size_);
  std::uint64_t letter_before = 0;
  for (std::size_t block = 0; block < blocks(); ++block) {
    starts_[block] = fold_block(bytes_.data() + block * block_bytes, letter_before);
  }
}

FoldedText::MarkCounts FoldedText::count_marks() const {
  MarkCounts counts;
  for (std::size_t block = 0; block < blocks(); ++block) {
    const char* const bytes = bytes_.data() + block * block_bytes;
    std::uint8_t braces = 0;  // at most block_bytes
    std::uint8_t operators = 0;
    std::uint8_t digits = 0;
    for (std::size_t i = 0; i < block_bytes; ++i) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      const int brace = (byte == '{') | (byte == '}') | (byte == ';');
      const int sign = (byte == '^') | (byte == '+') | (byte == '*') | (byte == '=') |
                       (byte == '/') | (byte == '%');
      braces = static_cast<std::uint8_t>(braces + brace);
      operators = static_cast<std::uint8_t>(operators + sign);
      digits = static_cast<std::uint8_t>(digits + in_range(byte, '0', '9'));
    }
    counts.braces += braces;
    counts.operators += operators;
    counts.digits += digits;
  }
  return counts;
}

}  // namespace flashgate

#include "text/folded_text.hpp"

#include <algorithm>
#include <bit>

namespace flashgate {

namespace {

static_assert(std::endian::native == std::endian::little);

/// Sixteen bytes that are worked on at once, by whatever the target has for that.
using Wide [[gnu::vector_size(16)]] = std::uint8_t;
constexpr std::size_t wide_bytes = sizeof(Wide);

Wide load_wide(const char* at) {
  Wide bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

Wide every(std::uint8_t byte) {
  return Wide{} + byte;
}

/// All bits of a byte set where it is `c`; none elsewhere. So do the following.
Wide equals(Wide bytes, char c) {
  return reinterpret_cast<Wide>(bytes == every(static_cast<std::uint8_t>(c)));
}

Wide in_range(Wide bytes, int first, int last) {
  return reinterpret_cast<Wide>(bytes - static_cast<std::uint8_t>(first) <=
                                every(static_cast<std::uint8_t>(last - first)));
}

/// One bit for each byte of a mask.
std::uint64_t packed(Wide mask) {
  std::array<std::uint64_t, 2> halves;
  std::memcpy(halves.data(), &mask, sizeof mask);
  constexpr std::uint64_t lowest_bits = 0x0101010101010101U;
  constexpr std::uint64_t gather =
      0x0102040810204080U;  // byte i of the product's sum to bit 56 + i
  return ((halves[0] & lowest_bits) * gather >> 56U) |
         ((halves[1] & lowest_bits) * gather >> 56U << 8U);
}

/// Lower case in place; returns where phrases may begin. `letter_before` goes from block to block.
std::uint64_t fold_block(char* block, std::uint64_t& letter_before) {
  std::uint64_t letters = 0;
  std::uint64_t others = 0;
  for (std::size_t at = 0; at < FoldedText::block_bytes; at += wide_bytes) {
    Wide bytes = load_wide(block + at);
    bytes += in_range(bytes, 'A', 'Z') & every('a' - 'A');
    std::memcpy(block + at, &bytes, sizeof bytes);
    letters |= packed(in_range(bytes, 'a', 'z')) << at;
    others |= packed(in_range(bytes, '!', '/') | equals(bytes, '=') | equals(bytes, '\\') |
                     equals(bytes, '_') | in_range(bytes, 0xC0, 0xFF))
              << at;
  }
  const std::uint64_t starts = (letters & ~(letters << 1U | letter_before)) | others;
  letter_before = letters >> 63U;
  return starts;
}

std::size_t sum_of(Wide counts) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < wide_bytes; ++i) sum += counts[i];
  return sum;
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
  static_assert(blocks_max * block_bytes / wide_bytes <= 0xFF, "else a byte cannot hold its count");
  Wide braces{};
  Wide operators{};
  Wide digits{};
  for (std::size_t at = 0; at < size_; at += wide_bytes) {
    const Wide bytes = load_wide(bytes_.data() + at);
    // A mask is -1 where it holds.
    braces -= equals(bytes, '{') | equals(bytes, '}') | equals(bytes, ';');
    operators -= equals(bytes, '^') | equals(bytes, '+') | equals(bytes, '*') | equals(bytes, '=') |
                 equals(bytes, '/') | equals(bytes, '%');
    digits -= in_range(bytes, '0', '9');
  }
  return {sum_of(braces), sum_of(operators), sum_of(digits)};
}

}  // namespace flashgate

#pragma once
// The half of the shape scan that reads characters beyond ASCII: finds the script of each, counts
// its run, and tells bytes that are not UTF-8. Used by text_shape.cpp only; pure.

#include <cstddef>
#include <cstdint>

#include "text/text_shape.hpp"

namespace flashgate::detail {

enum class ByteKind : std::uint8_t { control, blank, digit, lower, upper, mark, high };

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: the byte here starts no well-formed sequence
};

/// REQUIRES: at < end.
CodePoint decode_at(const unsigned char* at, const unsigned char* end);

/// Bytes of the Latin letter beyond ASCII that stands here, 0 if there is none.
std::size_t latin_letter_bytes(const unsigned char* at, const unsigned char* end);

/// Eats at least one byte of what is not ASCII and counts it; returns where ASCII goes on.
const unsigned char* scan_wide(const unsigned char* at, const unsigned char* end,
                               ShapeCounts& counts);

}  // namespace flashgate::detail

// The values of JSON strings and numbers; declared beside the cursor that finds them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "protocol/json_cursor.hpp"

namespace flashgate {
namespace {

unsigned hex_value(char c) {
  if (c <= '9') return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a') + 10;
}

unsigned code_unit(const char* digits) {
  return hex_value(digits[0]) << 12 | hex_value(digits[1]) << 8 | hex_value(digits[2]) << 4 |
         hex_value(digits[3]);
}

std::size_t encode_utf8(char32_t c, char* out) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) {
    out[0] = byte(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = byte(0xC0 | c >> 6);
    out[1] = byte(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = byte(0xE0 | c >> 12);
    out[1] = byte(0x80 | (c >> 6 & 0x3F));
    out[2] = byte(0x80 | (c & 0x3F));
    return 3;
  }
  out[0] = byte(0xF0 | c >> 18);
  out[1] = byte(0x80 | (c >> 12 & 0x3F));
  out[2] = byte(0x80 | (c >> 6 & 0x3F));
  out[3] = byte(0x80 | (c & 0x3F));
  return 4;
}

struct Escape {
  char bytes[4] = {};
  std::size_t size = 0;
  std::size_t raw_bytes = 0;
};

// REQUIRES: `at` is a backslash of a validated string that ends at `end`.
Escape resolve(const char* at, const char* end) {
  Escape out;
  out.raw_bytes = 2;
  out.size = 1;
  switch (at[1]) {
    case 'b':
      out.bytes[0] = '\b';
      return out;
    case 'f':
      out.bytes[0] = '\f';
      return out;
    case 'n':
      out.bytes[0] = '\n';
      return out;
    case 'r':
      out.bytes[0] = '\r';
      return out;
    case 't':
      out.bytes[0] = '\t';
      return out;
    case 'u':
      break;
    default:
      out.bytes[0] = at[1];
      return out;
  }
  char32_t c = code_unit(at + 2);
  out.raw_bytes = 6;
  if (c >= 0xD800 && c < 0xDC00 && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
    const char32_t low = code_unit(at + 8);
    if (low >= 0xDC00 && low < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      out.raw_bytes = 12;
    }
  }
  if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;
  out.size = encode_utf8(c, out.bytes);
  return out;
}

bool is_tail_byte(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

bool append_decoded(std::string& out, JsonString string, std::size_t bytes_max) {
  const char* at = string.raw.data();
  const char* const end = at + string.raw.size();
  std::size_t left = bytes_max;
  while (at != end) {
    const void* const found =
        string.escaped ? std::memchr(at, '\\', static_cast<std::size_t>(end - at)) : nullptr;
    const char* const stop = found != nullptr ? static_cast<const char*>(found) : end;
    std::size_t plain = static_cast<std::size_t>(stop - at);
    if (plain > left) {
      plain = left;
      for (int i = 0; i < 3 && plain > 0 && is_tail_byte(at[plain]); ++i) --plain;
      out.append(at, plain);
      return false;
    }
    out.append(at, plain);
    left -= plain;
    at = stop;
    if (at == end) break;
    const Escape escape = resolve(at, end);
    if (escape.size > left) return false;
    out.append(escape.bytes, escape.size);
    left -= escape.size;
    at += escape.raw_bytes;
  }
  return true;
}

bool json_equals(JsonString string, std::string_view text) {
  if (!string.escaped) return string.raw == text;
  if (string.raw.size() > text.size() * 6) return false;
  std::string decoded;
  append_decoded(decoded, string);
  return decoded == text;
}

std::int64_t json_integer(std::string_view number) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  const char* const end = number.data() + number.size();
  std::int64_t whole = 0;
  const auto [rest, error] = std::from_chars(number.data(), end, whole);
  if (error == std::errc{} && rest == end) return whole;
  const bool negative = number.starts_with('-');
  if (number.find_first_of(".eE") == std::string_view::npos) return negative ? smallest : largest;
  double value = 0;
  const auto parsed = std::from_chars(number.data(), end, value);
  if (parsed.ec == std::errc::result_out_of_range) {
    // Too large or too small to be told apart by from_chars: the exponent's sign says which.
    const std::size_t exponent = number.find_first_of("eE");
    const bool tiny = exponent == std::string_view::npos
                          ? number.starts_with("0.") || number.starts_with("-0.")
                          : number.substr(exponent + 1).starts_with('-');
    if (tiny) return 0;
    return negative ? smallest : largest;
  }
  value = std::floor(value);
  if (value >= 9.2e18) return largest;
  if (value <= -9.2e18) return smallest;
  return static_cast<std::int64_t>(value);
}

}  // namespace flashgate

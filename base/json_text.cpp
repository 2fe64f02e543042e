#include "base/json_text.hpp"

#include <array>
#include <cstdint>

namespace flashgate {
namespace {

/// Bytes of the well-formed UTF-8 sequence at the front of `text` (RFC 3629), 0 if ill-formed.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

void append_escape(std::string& out, unsigned char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
  }
}

bool plain(unsigned char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    std::size_t run = 0;
    while (run < text.size() && plain(static_cast<unsigned char>(text[run]))) ++run;
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    const auto c = static_cast<unsigned char>(text.front());
    if (c < 0x80) {
      append_escape(out, c);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = sequence_length(text);
    const std::string_view sequence = text.substr(0, length);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    if (sequence == "\xE2\x80\xA8")
      out += "\\u2028";
    else if (sequence == "\xE2\x80\xA9")
      out += "\\u2029";
    else if (length == 2 && c == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0)
      append_escape(out, static_cast<unsigned char>(text[1]));  // C1 controls
    else
      out.append(sequence);
    text.remove_prefix(length);
  }
  out += '"';
}

std::size_t utf8_prefix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  std::size_t at = bytes_max;
  for (int back = 0; back < 4; ++back) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) return at;
    if (at == 0) break;
    --at;
  }
  return bytes_max;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace flashgate

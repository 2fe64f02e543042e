#pragma once
// HTTP/1.1 framing for the benchmark's programs: just enough to tell one whole message from the
// next and to decode chunked bodies. Trusts its peers (loopback programs of ours); not for the
// product. Single-threaded, no I/O.

#include <strings.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flashgate {

// The head of a request or reply, up to and including the empty line.
struct WireHead {
  std::size_t bytes = 0;
  std::size_t content_length = 0;
  bool chunked = false;
  bool close = false;
  std::string_view text;
};

// The value of a header field, empty when absent. `name` is compared without regard to case.
inline std::string_view header_value(std::string_view head, std::string_view name) {
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::string_view rest = head.substr(at + 2);
    if (rest.size() > name.size() && rest[name.size()] == ':' &&
        strncasecmp(rest.data(), name.data(), name.size()) == 0) {
      std::string_view value = rest.substr(name.size() + 1, rest.find("\r\n") - name.size() - 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      return value;
    }
    at = head.find("\r\n", at + 2);
  }
  return {};
}

inline std::optional<WireHead> parse_head(std::string_view in) {
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  WireHead head;
  head.bytes = end + 4;
  head.text = in.substr(0, head.bytes);
  const std::string_view length = header_value(head.text, "content-length");
  std::from_chars(length.data(), length.data() + length.size(), head.content_length);
  head.chunked = header_value(head.text, "transfer-encoding") == "chunked";
  head.close = header_value(head.text, "connection") == "close";
  return head;
}

// Decodes a chunked body fed in pieces of any size; bytes after the last chunk are not consumed.
class ChunkDecoder {
 public:
  bool done() const { return state_ == State::done; }
  bool failed() const { return state_ == State::failed; }

  // Appends payload to `out` and returns the number of bytes consumed.
  std::size_t feed(std::string_view in, std::string& out) {
    std::size_t at = 0;
    while (at < in.size() && !done() && !failed()) {
      if (state_ == State::data) {
        const std::size_t part = std::min(left_, in.size() - at);
        out.append(in.substr(at, part));
        at += part;
        left_ -= part;
        if (left_ == 0) state_ = State::line;
        continue;
      }
      const char byte = in[at++];
      if (byte == '\n') {
        end_of_line();
      } else if (byte != '\r') {
        line_.push_back(byte);
        if (line_.size() > line_bytes_max) state_ = State::failed;
      }
    }
    return at;
  }

 private:
  enum class State { line, data, trailer, done, failed };
  static constexpr std::size_t line_bytes_max = 1024;

  // An empty line in `State::line` is the line end that closes the previous chunk's data.
  void end_of_line() {
    if (state_ == State::trailer) {
      if (line_.empty()) state_ = State::done;
      line_.clear();
      return;
    }
    if (line_.empty()) return;
    const auto parsed = std::from_chars(line_.data(), line_.data() + line_.size(), left_, 16);
    line_.clear();
    if (parsed.ec != std::errc{}) {
      state_ = State::failed;
    } else {
      state_ = left_ == 0 ? State::trailer : State::data;
    }
  }

  State state_ = State::line;
  std::size_t left_ = 0;
  std::string line_;
};

// Writes `value` as `digits` lower-case hexadecimal digits at `at`.
inline void write_hex(char* at, std::uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i, value >>= 4) at[i] = "0123456789abcdef"[value & 15];
}

// Writes `value` as `digits` decimal digits, zero-filled, at `at`.
inline void write_decimal(char* at, std::uint64_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) at[i] = static_cast<char>('0' + value % 10);
}

}  // namespace flashgate

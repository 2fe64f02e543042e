#include "protocol/http1_head.hpp"

#include <algorithm>
#include <cstring>

namespace flashgate {
namespace {

bool is_token_char(unsigned char c) {  // RFC 9110 §5.6.2
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return c != 0 && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr;
}

bool is_token(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text)
    if (!is_token_char(static_cast<unsigned char>(c))) return false;
  return true;
}

/// Field values: HTAB, SP, VCHAR and obs-text; no other control character (RFC 9110 §5.5).
bool is_field_value(std::string_view text) {
  for (const char ch : text) {
    const auto c = static_cast<unsigned char>(ch);
    if ((c < 0x20 && c != '\t') || c == 0x7F) return false;
  }
  return true;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool refuse(HeadRefusal& refusal, std::string_view why,
            ApiErrorKind kind = ApiErrorKind::invalid_request) {
  refusal = {kind, why};
  return false;
}

bool parse_fields(std::string_view lines, const HeadLimits& limits,
                  std::vector<HeaderField>& fields, HeadRefusal& refusal) {
  fields.clear();
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    if (end == std::string_view::npos) return refuse(refusal, "a header line has no CRLF");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    if (line.empty()) return lines.empty() || refuse(refusal, "bytes after the head");
    if (line.front() == ' ' || line.front() == '\t')
      return refuse(refusal, "folded header lines are not accepted");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return refuse(refusal, "a header line has no colon");
    const std::string_view name = line.substr(0, colon);
    if (!is_token(name)) return refuse(refusal, "a header name is not a token");
    const std::string_view value = trim(line.substr(colon + 1));
    if (!is_field_value(value)) return refuse(refusal, "a header value has a control character");
    if (fields.size() == limits.fields_max)
      return refuse(refusal, "too many header fields", ApiErrorKind::headers_too_large);
    fields.push_back({name, value});
  }
  return refuse(refusal, "the head does not end with an empty line");
}

struct FramingFields {
  std::size_t lengths = 0;
  std::size_t codings = 0;
  std::string_view length{};
  std::string_view coding{};
};

FramingFields framing_fields(const std::vector<HeaderField>& fields) {
  FramingFields found;
  for (const HeaderField& field : fields) {
    if (iequals(field.name, "content-length")) {
      ++found.lengths;
      found.length = field.value;
    } else if (iequals(field.name, "transfer-encoding")) {
      ++found.codings;
      found.coding = field.value;
    }
  }
  return found;
}

bool parse_length(std::string_view text, std::uint64_t& out) {
  if (text.empty() || text.size() > 18) return false;
  out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

/// RFC 9112 §6.1, §6.3, made narrower: one Content-Length or exactly `chunked`, never both.
bool decide_framing(const std::vector<HeaderField>& fields, int minor_version, Framing& framing,
                    std::uint64_t& content_length, HeadRefusal& refusal) {
  const FramingFields found = framing_fields(fields);
  framing = Framing::none;
  content_length = 0;
  if (found.codings > 0) {
    if (found.lengths > 0) return refuse(refusal, "both Content-Length and Transfer-Encoding");
    if (found.codings > 1) return refuse(refusal, "more than one Transfer-Encoding");
    if (minor_version == 0) return refuse(refusal, "Transfer-Encoding in HTTP/1.0");
    if (!iequals(found.coding, "chunked"))
      return refuse(refusal, "the only Transfer-Encoding accepted is chunked",
                    ApiErrorKind::unsupported_transfer_coding);
    framing = Framing::chunked;
    return true;
  }
  if (found.lengths > 1) return refuse(refusal, "more than one Content-Length");
  if (found.lengths == 1) {
    if (!parse_length(found.length, content_length))
      return refuse(refusal, "Content-Length is not a number");
    framing = Framing::length;
  }
  return true;
}

bool decide_keep_alive(const std::vector<HeaderField>& fields, int minor_version) {
  if (list_has_token(fields, "connection", "close")) return false;
  return minor_version >= 1 || list_has_token(fields, "connection", "keep-alive");
}

bool is_host(std::string_view text) {
  for (const char ch : text) {
    const auto c = static_cast<unsigned char>(ch);
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alnum && (c == 0 || std::strchr("-._~!$&'()*+,;=:[]%", c) == nullptr)) return false;
  }
  return true;
}

bool is_target(std::string_view text) {
  if (text.empty()) return false;
  for (const char ch : text) {
    const auto c = static_cast<unsigned char>(ch);
    if (c <= 0x20 || c == 0x7F) return false;
  }
  return true;
}

bool parse_version(std::string_view text, int& minor) {
  if (text.size() != 8 || text.substr(0, 7) != "HTTP/1.") return false;
  if (text[7] != '0' && text[7] != '1') return false;
  minor = text[7] - '0';
  return true;
}

bool parse_request_line(std::string_view line, const HeadLimits& limits, RequestHead& out,
                        HeadRefusal& refusal) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse(refusal, "the request line is not `METHOD target HTTP/1.1`");
  out.method = line.substr(0, first);
  out.target = line.substr(first + 1, last - first - 1);
  if (!is_token(out.method)) return refuse(refusal, "the method is not a token");
  if (out.target.size() > limits.target_bytes_max)
    return refuse(refusal, "the request target is too long", ApiErrorKind::target_too_long);
  if (!is_target(out.target)) return refuse(refusal, "the request target has a space or control");
  if (!parse_version(line.substr(last + 1), out.minor_version))
    return refuse(refusal, "the protocol version is not HTTP/1.0 or HTTP/1.1");
  return true;
}

bool check_host(RequestHead& out, HeadRefusal& refusal) {
  const std::size_t hosts = field_count(out.fields, "host");
  if (hosts > 1) return refuse(refusal, "more than one Host");
  if (hosts == 0)
    return out.minor_version == 0 || refuse(refusal, "HTTP/1.1 needs a Host");  // RFC 9112 §3.2
  out.host = field_value(out.fields, "host");
  if (!is_host(out.host)) return refuse(refusal, "Host is not valid");
  return true;
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::string_view field_value(const std::vector<HeaderField>& fields, std::string_view name) {
  for (const HeaderField& field : fields)
    if (iequals(field.name, name)) return field.value;
  return {};
}

std::size_t field_count(const std::vector<HeaderField>& fields, std::string_view name) {
  std::size_t count = 0;
  for (const HeaderField& field : fields) count += iequals(field.name, name) ? 1 : 0;
  return count;
}

bool list_has_token(const std::vector<HeaderField>& fields, std::string_view name,
                    std::string_view token) {
  for (const HeaderField& field : fields) {
    if (!iequals(field.name, name)) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (iequals(trim(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

bool is_hop_by_hop(const std::vector<HeaderField>& fields, std::string_view name) {
  constexpr std::string_view always[] = {
      "connection",         "keep-alive", "proxy-connection",  "te",      "proxy-authorization",
      "proxy-authenticate", "trailer",    "transfer-encoding", "upgrade", "http2-settings"};
  for (const std::string_view row : always)
    if (iequals(name, row)) return true;
  return list_has_token(fields, "connection", name);
}

HeadScanner::State HeadScanner::scan(std::string_view buffer, const HeadLimits& limits,
                                     bool is_request) {
  constexpr std::size_t empty_lines_max = 4;
  while (at_ < buffer.size()) {
    const void* found = std::memchr(buffer.data() + at_, '\n', buffer.size() - at_);
    if (found == nullptr) {
      at_ = buffer.size();
      break;
    }
    const auto lf = static_cast<std::size_t>(static_cast<const char*>(found) - buffer.data());
    at_ = lf + 1;
    if (lf == line_ || buffer[lf - 1] != '\r') {
      refusal_ = {ApiErrorKind::invalid_request, "a line ends with a bare LF"};
      return State::refused;
    }
    const bool empty = lf == line_ + 1;
    line_ = at_;
    if (empty && is_request && lines_ == 0 && begin_ < 2 * empty_lines_max) {
      begin_ = at_;
      continue;
    }
    if (empty) return State::complete;
    if (++lines_ > limits.fields_max + 1) {
      refusal_ = {ApiErrorKind::headers_too_large, "too many header fields"};
      return State::refused;
    }
  }
  if (lines_ == 0 && at_ - begin_ > limits.target_bytes_max + 64) {
    refusal_ = {ApiErrorKind::target_too_long, "the request target is too long"};
    return State::refused;
  }
  if (at_ - begin_ > limits.bytes_max) {
    refusal_ = {ApiErrorKind::headers_too_large, "the header block is too large"};
    return State::refused;
  }
  return State::incomplete;
}

bool parse_request_head(std::string_view head, const HeadLimits& limits, RequestHead& out,
                        HeadRefusal& refusal) {
  out.host = {};
  out.expect_continue = false;
  if (head.size() > limits.bytes_max)
    return refuse(refusal, "the header block is too large", ApiErrorKind::headers_too_large);
  const std::size_t line_end = head.find("\r\n");
  if (line_end == std::string_view::npos) return refuse(refusal, "no request line");
  if (!parse_request_line(head.substr(0, line_end), limits, out, refusal)) return false;
  if (!parse_fields(head.substr(line_end + 2), limits, out.fields, refusal)) return false;
  if (!check_host(out, refusal)) return false;
  if (!decide_framing(out.fields, out.minor_version, out.framing, out.content_length, refusal))
    return false;
  out.keep_alive = decide_keep_alive(out.fields, out.minor_version);
  out.expect_continue =
      out.minor_version >= 1 && iequals(field_value(out.fields, "expect"), "100-continue");
  return true;
}

bool parse_response_head(std::string_view head, const HeadLimits& limits, bool to_head_request,
                         ResponseHead& out, HeadRefusal& refusal) {
  if (head.size() > limits.bytes_max)
    return refuse(refusal, "the header block is too large", ApiErrorKind::headers_too_large);
  const std::size_t line_end = head.find("\r\n");
  if (line_end == std::string_view::npos) return refuse(refusal, "no status line");
  const std::string_view line = head.substr(0, line_end);
  if (line.size() < 12 || !parse_version(line.substr(0, 8), out.minor_version) || line[8] != ' ')
    return refuse(refusal, "the status line is not HTTP/1.x");
  out.status = 0;
  for (const char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return refuse(refusal, "the status is not a number");
    out.status = out.status * 10 + (c - '0');
  }
  if (out.status < 100 || (line.size() > 12 && line[12] != ' '))
    return refuse(refusal, "the status line is not HTTP/1.x");
  if (!parse_fields(head.substr(line_end + 2), limits, out.fields, refusal)) return false;
  if (!decide_framing(out.fields, out.minor_version, out.framing, out.content_length, refusal)) {
    refusal.kind = ApiErrorKind::upstream_protocol_error;
    return false;
  }
  out.keep_alive = decide_keep_alive(out.fields, out.minor_version);
  const bool bodiless =
      to_head_request || out.status < 200 || out.status == 204 || out.status == 304;
  if (bodiless) {
    out.framing = Framing::none;
    out.content_length = 0;
  } else if (out.framing == Framing::none) {
    out.framing = Framing::until_close;
    out.keep_alive = false;
  }
  return true;
}

}  // namespace flashgate

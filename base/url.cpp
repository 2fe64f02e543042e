#include "base/url.hpp"

#include <arpa/inet.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cstring>

namespace flashgate {
namespace {

constexpr std::size_t host_bytes_max = 253;  // RFC 1035 §2.3.4
constexpr std::size_t url_bytes_max = 4096;

Error refuse(std::string message) {
  return Error{"bad_address", std::move(message)};
}

bool is_ipv4(std::string_view text, std::array<unsigned char, 4>& bytes) {
  if (text.size() > 15) return false;
  return inet_pton(AF_INET, std::string(text).c_str(), bytes.data()) == 1;
}

bool is_ipv6(std::string_view text, std::array<unsigned char, 16>& bytes) {
  if (text.size() > 45 || text.find('\0') != std::string_view::npos) return false;
  return inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) == 1;
}

bool all_of_chars(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

/// A name as DNS and /etc/hosts know it. Underscores are common in container networks.
bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > host_bytes_max) return false;
  std::size_t label = 0;
  for (const char c : host) {
    if (c == '.') {
      if (label == 0) return false;
      label = 0;
      continue;
    }
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_';
    if (!fine || ++label > 63) return false;
  }
  if (!all_of_chars(host, "0123456789.")) return true;
  std::array<unsigned char, 4> bytes{};
  return is_ipv4(host, bytes);  // digits and dots only: an address or nothing
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

Result<std::uint16_t> parse_port(std::string_view text, bool zero_allowed) {
  unsigned port = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size() || port > 65535 ||
      (port == 0 && !zero_allowed)) {
    return refuse("the port must be a number up to 65535");
  }
  return static_cast<std::uint16_t>(port);
}

struct Authority {
  std::string_view host{};
  std::string_view port{};
  bool has_port = false;
  bool bracketed = false;
};

Result<Authority> split_authority(std::string_view text) {
  Authority out;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    std::array<unsigned char, 16> bytes{};
    if (close == std::string_view::npos || !is_ipv6(text.substr(1, close - 1), bytes)) {
      return refuse("'[…]' must hold an IPv6 address");
    }
    out.host = text.substr(1, close - 1);
    out.bracketed = true;
    text.remove_prefix(close + 1);
    if (text.empty()) return out;
    if (text.front() != ':') return refuse("after ']' only ':port' may follow");
    out.port = text.substr(1);
    out.has_port = true;
    return out;
  }
  const auto colon = text.find(':');
  if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos) {
    return refuse("an IPv6 address is written in brackets, like [::1]:8080");
  }
  out.host = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    out.has_port = true;
    out.port = text.substr(colon + 1);
  }
  return out;
}

bool is_path(std::string_view path) {
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' ||
        c == '`' || c == '{' || c == '|' || c == '}') {
      return false;
    }
  }
  return true;
}

Result<Url> fill_authority(Url url, std::string_view authority) {
  if (authority.find('@') != std::string_view::npos) {
    return refuse("a user or password in the URL is not accepted; use api_key_env");
  }
  const auto parts = split_authority(authority);
  if (!parts) return parts.error();
  if (!parts->bracketed && !is_host_name(parts->host)) return refuse("the host is not valid");
  url.host = lower(parts->host);
  url.host_is_ipv6 = parts->bracketed;
  url.port = url.tls ? 443 : 80;
  if (parts->has_port) {
    const auto port = parse_port(parts->port, false);
    if (!port) return port.error();
    url.port = *port;
  }
  return url;
}

}  // namespace

std::string Url::authority() const {
  std::string out = host_is_ipv6 ? '[' + host + ']' : host;
  if (port != (tls ? 443 : 80)) out += ':' + std::to_string(port);
  return out;
}

std::string Url::text() const {
  return (tls ? "https://" : "http://") + authority() + path;
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > url_bytes_max) return refuse("the URL is too long");
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    return refuse("a URL begins with http:// or https://");
  }
  Url url;
  const std::string scheme = lower(text.substr(0, scheme_end));
  if (scheme == "https") {
    url.tls = true;
  } else if (scheme != "http") {
    return refuse("a URL begins with http:// or https://");
  }
  std::string_view rest = text.substr(scheme_end + 3);
  if (rest.find('?') != std::string_view::npos) return refuse("a base URL has no '?query'");
  if (rest.find('#') != std::string_view::npos) return refuse("a base URL has no '#fragment'");
  const auto slash = rest.find('/');
  std::string_view path = slash == std::string_view::npos ? "" : rest.substr(slash);
  if (!is_path(path)) return refuse("the path holds a character that must be percent-encoded");
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  url.path = std::string(path);
  return fill_authority(std::move(url), rest.substr(0, slash));
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto parts = split_authority(text);
  if (!parts) return parts.error();
  if (!parts->has_port) return refuse("a port is missing: write host:port, like 127.0.0.1:8080");
  const auto port = parse_port(parts->port, true);
  if (!port) return port.error();
  const bool everywhere = !parts->bracketed && (parts->host.empty() || parts->host == "*");
  if (everywhere) return HostPort{"0.0.0.0", *port};
  if (!parts->bracketed && !is_host_name(parts->host)) return refuse("the host is not valid");
  return HostPort{lower(parts->host), *port};
}

namespace {

bool is_loopback4(const std::array<unsigned char, 4>& a) {
  return a[0] == 127;
}

bool is_local4(const std::array<unsigned char, 4>& a) {
  return a[0] == 127 || a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) ||
         (a[0] == 192 && a[1] == 168) || (a[0] == 169 && a[1] == 254);
}

bool is_loopback6(const std::array<unsigned char, 16>& a) {
  for (std::size_t i = 0; i < 15; ++i) {
    if (a[i] != 0) return false;
  }
  return a[15] == 1;
}

/// ::ffff:a.b.c.d is the IPv4 address inside it (RFC 4291 §2.5.5.2).
bool mapped4(const std::array<unsigned char, 16>& a, std::array<unsigned char, 4>& inner) {
  for (std::size_t i = 0; i < 10; ++i) {
    if (a[i] != 0) return false;
  }
  if (a[10] != 0xff || a[11] != 0xff) return false;
  std::memcpy(inner.data(), a.data() + 12, 4);
  return true;
}

bool is_loopback_name(std::string_view host) {
  std::string name = lower(host);
  if (!name.empty() && name.back() == '.') name.pop_back();
  constexpr std::string_view suffix = ".localhost";  // RFC 6761 §6.3
  return name == "localhost" ||
         (name.size() > suffix.size() &&
          std::string_view(name).substr(name.size() - suffix.size()) == suffix);
}

}  // namespace

bool is_loopback_address(std::string_view host) {
  std::array<unsigned char, 4> v4{};
  std::array<unsigned char, 16> v6{};
  if (is_ipv4(host, v4)) return is_loopback4(v4);
  if (is_ipv6(host, v6)) return is_loopback6(v6) || (mapped4(v6, v4) && is_loopback4(v4));
  return is_loopback_name(host);
}

bool is_local_address(std::string_view host) {
  std::array<unsigned char, 4> v4{};
  std::array<unsigned char, 16> v6{};
  if (is_ipv4(host, v4)) return is_local4(v4);
  if (is_ipv6(host, v6)) {
    if (mapped4(v6, v4)) return is_local4(v4);
    return is_loopback6(v6) || (v6[0] & 0xfe) == 0xfc || (v6[0] == 0xfe && (v6[1] & 0xc0) == 0x80);
  }
  return is_loopback_name(host);
}

}  // namespace flashgate

#pragma once
// The addresses that a configuration names: a backend's base URL, a listener's host and port.
// Only what we can connect to is accepted (http, https; no user, query or fragment).
// Promises: any bytes, no exception, linear time. Pure functions and plain values, any thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace flashgate {

struct Url {
  bool tls = false;
  std::string host{};  // lower case, without brackets
  std::uint16_t port = 80;
  std::string path{};  // a prefix without trailing slash: "/v1" or ""
  bool host_is_ipv6 = false;

  /// For the Host field: the scheme's own port is omitted, IPv6 is bracketed.
  std::string authority() const;
  /// The whole address again, for people and logs.
  std::string text() const;
  bool operator==(const Url&) const = default;
};

/// http:// or https:// only; no user or password, no query, no fragment.
Result<Url> parse_url(std::string_view text);

/// Where a listener binds.
struct HostPort {
  std::string host{};  // without brackets
  std::uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};

/// "127.0.0.1:8080", "[::1]:8080", "localhost:0"; ":8080" and "*:8080" are every address, 0.0.0.0.
Result<HostPort> parse_host_port(std::string_view text);

/// Only this machine: localhost and below it, 127.0.0.0/8, ::1.
bool is_loopback_address(std::string_view host);
/// Loopback, or an address no one outside can be meant by: RFC 1918, ULA, link-local.
bool is_local_address(std::string_view host);

}  // namespace flashgate

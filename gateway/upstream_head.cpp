#include <array>

#include "gateway/attempt.hpp"

namespace flashgate {
namespace {

/// Client fields that never reach a backend: credentials, identity of other accounts, forwarding
/// claims, framing, codings, and our own control fields.
constexpr std::array<std::string_view, 23> withheld = {
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "set-cookie",
    "openai-organization",
    "openai-project",
    "host",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "expect",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
    "via",
    "date",
    "x-forwarded-port",
    "x-auth-token",
};

/// Backend fields that clients may see; everything else stays here.
constexpr std::array<std::string_view, 6> allowed = {
    "content-disposition", "openai-model",  "openai-version",
    "content-language",    "last-modified", "etag",
};

bool is_withheld(const RequestHead& head, std::string_view name) {
  constexpr std::string_view own = "x-flashgate-";
  if (name.size() >= own.size() && iequals(name.substr(0, own.size()), own)) return true;
  for (const std::string_view row : withheld)
    if (iequals(row, name)) return true;
  return is_hop_by_hop(head.fields, name);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// `k%65y` is `key` to the backend, so it is to us.
std::string unescaped(std::string_view raw) {
  std::string out;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool whole = raw[i] == '%' && i + 2 < raw.size();
    const int high = whole ? hex_value(raw[i + 1]) : -1;
    const int low = whole ? hex_value(raw[i + 2]) : -1;
    if (high < 0 || low < 0) {
      out += raw[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool is_key_parameter(std::string_view raw) {
  const std::string name = unescaped(raw);
  return iequals(name, "key") || iequals(name, "api_key") || iequals(name, "api-key") ||
         iequals(name, "access_token");
}

/// The client's query without credentials, then the backend's own parameters.
std::string joined_query(std::string_view clients, const std::string& backends) {
  std::string out;
  while (!clients.empty()) {
    const std::size_t end = std::min(clients.find('&'), clients.size());
    const std::string_view part = clients.substr(0, end);
    clients.remove_prefix(std::min(end + 1, clients.size()));
    if (part.empty() || is_key_parameter(part.substr(0, part.find('=')))) continue;
    if (!out.empty()) out += '&';
    out += part;
  }
  if (!backends.empty()) {
    if (!out.empty()) out += '&';
    out += backends;
  }
  return out;
}

}  // namespace

std::string upstream_request_head(Call& call, const Backend& backend, std::size_t body_bytes) {
  const RequestHead& head = call.session.head();
  std::string out;
  out.reserve(1024);
  out += head.method;
  out += ' ';
  out += backend.url.path;
  // base_url ends in the API's root, which clients know as /v1.
  out += std::string_view(call.path.path).substr(3);
  if (!call.path.query.empty() || !backend.query.empty()) {
    const std::string query = joined_query(call.path.query, backend.query);
    if (!query.empty()) out += "?" + query;
  }
  out += " HTTP/1.1\r\n";
  out += backend.head;
  for (const HeaderField& field : head.fields)
    if (!is_withheld(head, field.name)) append_field(out, field.name, field.value);
  append_field(out, "x-request-id", call.recorder.shared_id());
  append_field(out, "accept-encoding", "identity");
  out += "via: ";
  for (const HeaderField& field : head.fields)
    if (iequals(field.name, "via")) {
      out += field.value;
      out += ", ";
    }
  out += "1.1 flashgate\r\n";
  if (call.has_body || head.method == "POST")
    append_field(out, "content-length", std::to_string(body_bytes));
  out += "\r\n";
  return out;
}

std::string forwarded_fields(const ResponseHead& head) {
  std::string out;
  for (const HeaderField& field : head.fields) {
    if (is_hop_by_hop(head.fields, field.name)) continue;
    for (const std::string_view row : allowed)
      if (iequals(row, field.name)) append_field(out, row, field.value);
  }
  return out;
}

}  // namespace flashgate

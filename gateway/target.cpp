#include <array>
#include <vector>

#include "gateway/endpoints.hpp"

namespace flashgate {
namespace {

constexpr std::string_view models_prefix = "/v1/models/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {  // RFC 3986 §2.3
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

/// Undoes escapes of unreserved characters only; false for a broken escape or an escaped slash,
/// backslash or control character, which two readers could take for different paths.
bool unescape_path(std::string_view raw, std::string& out) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\\') return false;
    if (raw[i] != '%') {
      out += raw[i];
      continue;
    }
    if (i + 2 >= raw.size()) return false;
    const int high = hex_value(raw[i + 1]);
    const int low = hex_value(raw[i + 2]);
    if (high < 0 || low < 0) return false;
    const char c = static_cast<char>(high * 16 + low);
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '/' || c == '\\') return false;
    if (is_unreserved(c))
      out += c;
    else
      out.append(raw.substr(i, 3));
    i += 2;
  }
  return true;
}

/// A model's name in a path, wholly unescaped: clients write `org%2Fmodel%3Atag`. It is compared
/// with known names and never becomes part of another path. False as above.
bool unescape_name(std::string_view raw, std::string& out) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '%') {
      if (i + 2 >= raw.size()) return false;
      const int high = hex_value(raw[i + 1]);
      const int low = hex_value(raw[i + 2]);
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return false;
    out += c;
  }
  return true;
}

/// RFC 3986 §5.2.4, and empty segments removed.
std::string remove_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(end);
    if (segment.empty() || segment == ".") continue;
    if (segment != "..")
      kept.push_back(segment);
    else if (!kept.empty())
      kept.pop_back();
  }
  std::string out;
  for (const std::string_view segment : kept) {
    out += '/';
    out += segment;
  }
  return out.empty() ? "/" : out;
}

struct Row {
  std::string_view path;
  Endpoint endpoint;
};

constexpr Endpoint post(ApiKind api) {
  return {EndpointKind::proxy, api, true, "POST"};
}

constexpr std::array rows = {
    Row{"/livez", {EndpointKind::livez, ApiKind::other, false, "GET, HEAD"}},
    Row{"/readyz", {EndpointKind::readyz, ApiKind::other, false, "GET, HEAD"}},
    Row{"/v1/models", {EndpointKind::models, ApiKind::other, false, "GET, HEAD"}},
    Row{"/v1/chat/completions", post(ApiKind::chat)},
    Row{"/v1/completions", post(ApiKind::completions)},
    Row{"/v1/embeddings", post(ApiKind::embeddings)},
    Row{"/v1/responses", post(ApiKind::responses)},
    Row{"/v1/messages", post(ApiKind::messages)},
    Row{"/v1/messages/count_tokens", post(ApiKind::count_tokens)},
    Row{"/v1/audio/speech", post(ApiKind::other)},
    Row{"/v1/audio/transcriptions", post(ApiKind::other)},
    Row{"/v1/audio/translations", post(ApiKind::other)},
    Row{"/v1/images/generations", post(ApiKind::other)},
    Row{"/v1/images/edits", post(ApiKind::other)},
    Row{"/v1/images/variations", post(ApiKind::other)},
    Row{"/v1/rerank", post(ApiKind::other)},
    Row{"/v1/moderations", post(ApiKind::other)},
};

}  // namespace

NormalPath normalize_target(std::string_view target) {
  NormalPath normal;
  if (target.empty()) return normal;
  if (target.front() != '/') {  // absolute-form: the authority never chooses where we connect
    const std::size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) return normal;
    const std::size_t slash = target.find_first_of("/?", scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  const std::size_t fragment = target.find('#');
  if (fragment != std::string_view::npos) target = target.substr(0, fragment);
  const std::size_t mark = target.find('?');
  std::string path;
  const std::string_view raw = target.substr(0, mark);
  if (raw.starts_with(models_prefix) && raw.find('%') != std::string_view::npos) {
    normal.path = models_prefix;
    normal.ok = unescape_name(raw.substr(models_prefix.size()), normal.path);
    if (!normal.ok) normal.path.clear();
    return normal;
  }
  if (!unescape_path(raw, path)) return normal;
  if (path.empty()) path = "/";
  normal.path = remove_dots(path);
  if (mark != std::string_view::npos) normal.query = target.substr(mark + 1);
  normal.ok = true;
  return normal;
}

Endpoint find_endpoint(std::string_view path) {
  for (const Row& row : rows)
    if (row.path == path) return row.endpoint;
  if (path.starts_with(models_prefix))
    return {EndpointKind::model, ApiKind::other, false, "GET, HEAD"};
  if (path.starts_with("/v1/"))
    return {EndpointKind::proxy, ApiKind::other, false, "GET, HEAD, POST, PUT, PATCH, DELETE"};
  return {};
}

}  // namespace flashgate

// A backend's error body in OpenAI's shape; declared in reply_facts.hpp.
#include <algorithm>

#include "base/json_text.hpp"
#include "protocol/backend_report.hpp"
#include "protocol/json_cursor.hpp"
#include "protocol/reply_facts.hpp"

namespace flashgate {
namespace {

constexpr std::size_t scanned_bytes_max = 256 * 1024;
constexpr std::size_t title_bytes_max = 200;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces(" \t\r\n\0", 5);
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::string_view default_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

// The error in a JSON body, wherever it keeps it. False: not JSON, or no message in it.
bool read_json_error(std::string_view body, BackendError& error, int nesting = 0) {
  constexpr int nesting_max = 2;
  JsonCursor json(body);
  if (json.type() == JsonType::string) {
    read_error_message(json, error.message);
    return json.at_end() && !error.message.empty();
  }
  if (json.type() == JsonType::array && nesting < nesting_max) {
    json.begin_array();
    return json.next_element() && read_json_error(json.skip(), error, nesting + 1);
  }
  if (json.type() != JsonType::object) return false;
  BackendError outer;
  BackendError inner;
  bool found = false;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (key.raw == "error" && json.type() == JsonType::object) {
      found |= read_error(json, inner);
    } else if (key.raw == "error" || key.raw == "errors") {
      read_error_message(json, inner.message);
      found |= !inner.message.empty();
    } else if (!read_error_member(json, key.raw, outer)) {
      json.skip();
    }
  }
  if (!json.at_end()) return false;
  error = found ? inner : outer;
  if (error.message.empty()) error.message = outer.message;
  return found || !error.message.empty();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

bool is_html(std::string_view body) {
  const std::string head = lower(body.substr(0, 512));
  return head.starts_with("<") &&
         (head.find("<html") != std::string::npos || head.find("<!doctype") != std::string::npos ||
          head.find("<head") != std::string::npos);
}

std::string html_title(std::string_view body) {
  const std::string text = lower(body.substr(0, 16 * 1024));
  const std::size_t begin = text.find("<title>");
  if (begin == std::string::npos) return {};
  const std::size_t end = text.find("</title>", begin);
  if (end == std::string::npos) return {};
  const std::string_view title = trimmed(body.substr(begin + 7, end - begin - 7));
  return std::string(title.substr(0, utf8_prefix(title, title_bytes_max)));
}

std::string message_of(int status, std::string_view body) {
  const std::string answered = "the backend answered " + std::to_string(status);
  const std::string_view text = trimmed(body);
  if (text.empty()) return answered + " without a message";
  if (is_html(text)) {
    const std::string title = html_title(text);
    return answered + " with an HTML page" + (title.empty() ? "" : ": " + title);
  }
  if (!is_valid_utf8(text)) return answered + " with a message that is not UTF-8";
  if (text.front() == '{' || text.front() == '[') return answered + " in a form we do not know";
  return std::string(text);
}

// One line of text: no control characters, at most the cap.
std::string presentable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  if (text.size() > BackendError::message_bytes_max) {
    text.resize(utf8_prefix(text, BackendError::message_bytes_max));
  }
  return text;
}

void append_nullable(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, text);
  }
}

}  // namespace

std::string normalize_error_body(int status, std::string_view body) {
  body = body.substr(0, scanned_bytes_max);
  BackendError error;
  if (!read_json_error(trimmed(body), error)) error = BackendError{};
  if (error.message.empty()) error.message = message_of(status, body);
  // Mask before the cut, or half a key could stay.
  error.message = presentable(
      mask_secrets(std::string_view(error.message).substr(0, BackendError::message_bytes_max * 2)));
  if (error.type.empty() || error.type == "error") error.type = default_type(status);
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, presentable(mask_secrets(error.type)));
  out += ",\"param\":";
  append_nullable(out, presentable(mask_secrets(error.param)));
  out += ",\"code\":";
  append_nullable(out, presentable(mask_secrets(error.code)));
  out += "}}";
  return out;
}

}  // namespace flashgate

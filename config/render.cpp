// Diagnostics for people (compiler style) and for programs (JSON).
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "config/load.hpp"

namespace flashgate {
namespace {

constexpr std::size_t shown_bytes_max = 160;
constexpr std::size_t secret_bytes_min = 12;

struct Paint {
  bool on = false;
  std::string operator()(std::string_view code, std::string_view text) const {
    if (!on) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }
};

std::string_view source_line(std::string_view text, int line) {
  for (int at = 1; at < line; ++at) {
    const auto end = text.find_first_of("\r\n");
    if (end == std::string_view::npos) return {};
    const bool both = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
    text.remove_prefix(end + (both ? 2 : 1));
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

bool is_key_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

/// A key pasted into the file by mistake must not go on into a build log.
void mask_secrets(std::string& line) {
  for (std::size_t at = line.find("sk-"); at != std::string::npos; at = line.find("sk-", at + 1)) {
    if (at > 0 && is_key_byte(line[at - 1])) continue;
    std::size_t end = at;
    while (end < line.size() && is_key_byte(line[end])) ++end;
    if (end - at >= secret_bytes_min) line.replace(at + 3, end - at - 3, end - at - 3, '*');
  }
  const auto scheme = line.find("://");
  const auto user_end = line.find('@', scheme == std::string::npos ? line.size() : scheme);
  if (user_end != std::string::npos && line.find_first_of("/ ", scheme + 3) > user_end) {
    const std::size_t size = user_end - scheme - 3;
    line.replace(scheme + 3, size, size, '*');
  }
  const auto key = line.find("api_key:");
  if (key == std::string::npos) return;
  const auto value = line.find_first_not_of(" \"'", key + 8);
  if (value == std::string::npos || line[value] == '#' || line[value] == '$') return;
  for (std::size_t at = value; at < line.size() && is_key_byte(line[at]); ++at) line[at] = '*';
}

/// Columns that a terminal gives to the character beginning here: 2 for CJK and full-width forms.
std::size_t width_of(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0xe1 || at + 2 >= text.size()) return 1;
  if (byte >= 0xf0) return 2;
  const unsigned code = ((byte & 0x0fu) << 12) |
                        ((static_cast<unsigned char>(text[at + 1]) & 0x3fu) << 6) |
                        (static_cast<unsigned char>(text[at + 2]) & 0x3fu);
  const bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60);
  return wide ? 2 : 1;
}

/// Nothing of the file's may steer the reader's terminal.
std::string printable(std::string_view line) {
  std::string out(line);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\t') {
      c = ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      c = '?';
    }
  }
  if (is_valid_utf8(out)) return out;
  for (char& c : out) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

void append_source(std::string& out, const Diagnostic& diagnostic, std::string_view text,
                   const Paint& paint) {
  std::string line = printable(source_line(text, diagnostic.line).substr(0, 4096));
  if (line.empty()) return;
  mask_secrets(line);
  std::string pad;
  std::size_t at = 0;
  for (int column = 1; column < diagnostic.column && at < line.size(); ++column) {
    pad.append(width_of(line, at), ' ');
    ++at;
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) ++at;
  }
  if (pad.size() > shown_bytes_max) return;
  if (line.size() > shown_bytes_max) {
    line.resize(utf8_prefix(line, shown_bytes_max));
    line += " …";
  }
  const std::string number = std::to_string(diagnostic.line);
  const std::string gutter(number.size() < 5 ? 5 - number.size() : 0, ' ');
  out += gutter + number + " | " + line + '\n';
  out += "      | " + pad + paint("1;32", "^") + '\n';
}

const char* name(Severity severity) {
  return severity == Severity::error ? "error" : "warning";
}

struct Counts {
  std::size_t errors = 0;
  std::size_t warnings = 0;
};

Counts count(const std::vector<Diagnostic>& diagnostics) {
  Counts out;
  for (const Diagnostic& d : diagnostics) {
    ++(d.severity == Severity::error ? out.errors : out.warnings);
  }
  return out;
}

}  // namespace

std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view yaml_text,
                   bool color) {
  const Paint paint{color};
  if (yaml_text.substr(0, 3) == "\xef\xbb\xbf") yaml_text.remove_prefix(3);
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    std::string place = d.file;
    if (d.line > 0) place += ':' + std::to_string(d.line) + ':' + std::to_string(d.column);
    const char* paint_code = d.severity == Severity::error ? "1;31" : "1;35";
    out += paint("1", place + ":") + ' ' + paint(paint_code, std::string(name(d.severity)) + ":") +
           ' ' + printable(d.message) + '\n';
    if (d.line > 0) append_source(out, d, yaml_text, paint);
    if (!d.suggestion.empty()) out += "      = " + printable(d.suggestion) + '\n';
  }
  return out;
}

std::string render_json(const std::vector<Diagnostic>& diagnostics) {
  using nlohmann::ordered_json;
  const Counts counts = count(diagnostics);
  ordered_json out{{"ok", counts.errors == 0},
                   {"errors", counts.errors},
                   {"warnings", counts.warnings},
                   {"diagnostics", ordered_json::array()}};
  for (const Diagnostic& d : diagnostics) {
    out["diagnostics"].push_back({{"severity", name(d.severity)},
                                  {"file", d.file},
                                  {"line", d.line},
                                  {"column", d.column},
                                  {"path", d.path},
                                  {"message", d.message},
                                  {"suggestion", d.suggestion}});
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace flashgate

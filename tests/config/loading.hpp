#pragma once
// Loads a configuration text in a small made-up world: a few variables, a few files.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "config/load.hpp"

namespace flashgate {

struct World {
  std::map<std::string, std::string> variables{
      {"HOME", "/home/u"}, {"CLOUD_KEY", "cloud-secret"}, {"LOCAL_KEY", "local-secret"},
      {"EMPTY", ""},       {"ADMIN_TOKEN", "t0ken"},      {"HTTPS_PROXY", "http://u:p@proxy:3128"}};
  std::map<std::string, std::string> files{{"/run/key", "file-secret\n"},
                                           {"/run/empty", "\n"},
                                           {"/etc/ca.pem", "pem"},
                                           {"/etc/cert.pem", "pem"},
                                           {"/etc/key.pem", "pem"}};

  Loaded load(const std::string& text, const Overrides& overrides = {},
              const std::string& name = "t.yaml") const {
    return load_config(
        text, name,
        [this](const std::string& variable) -> std::optional<std::string> {
          const auto found = variables.find(variable);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        },
        [this](const std::string& path) -> Result<std::string> {
          const auto found = files.find(path);
          if (found == files.end()) return Error{"file", "no such file"};
          return Result<std::string>(boost::system::in_place_value, found->second);
        },
        overrides);
  }
};

inline std::string read_source(const std::string& path) {
  std::ifstream in(std::string(FLASHGATE_SOURCE_DIR) + '/' + path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// "3:5 error message" lines, for messages in tests.
inline std::string summary(const Loaded& loaded) {
  std::string out;
  for (const Diagnostic& d : loaded.diagnostics) {
    out += std::to_string(d.line) + ':' + std::to_string(d.column) +
           (d.severity == Severity::error ? " error: " : " warning: ") + d.message + '\n';
  }
  return out;
}

}  // namespace flashgate

#include "cli/check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "cli/files.hpp"
#include "config/load.hpp"

namespace flashgate {
namespace {

bool wants_color() {
  const char* const refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
}

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

std::string closing_line(const std::string& file, const Loaded& loaded) {
  const auto errors = static_cast<std::size_t>(
      std::count_if(loaded.diagnostics.begin(), loaded.diagnostics.end(),
                    [](const Diagnostic& d) { return d.severity == Severity::error; }));
  const std::size_t warnings = loaded.diagnostics.size() - errors;
  std::string line = file + ": ";
  if (!loaded.config) return line + counted(errors, "error") + ", " + counted(warnings, "warning");
  line += "ok, " + counted(loaded.config->profiles.size(), "profile") + ", " +
          counted(loaded.config->routes.rules.size(), "rule");
  return warnings == 0 ? line : line + ", " + counted(warnings, "warning");
}

/// Version 1 is the only one so far: the text stays, the version is written down.
std::string upgraded(const std::string& text) {
  const bool has_version =
      text.rfind("version:", 0) == 0 || text.find("\nversion:") != std::string::npos;
  return has_version ? text : "version: " + std::to_string(config_version) + "\n" + text;
}

}  // namespace

int run_check(const CheckCommand& command) {
  const std::string file = find_config_file(command.config, process_environment(), file_exists);
  if (file.empty()) {
    std::cerr << "flashgate check: no configuration file found; name one: flashgate check FILE\n";
    return 2;
  }
  const auto text = read_file(file);
  if (!text) {
    std::cerr << "flashgate check: " << text.error().message << '\n';
    return 2;
  }
  const Loaded loaded = load_config(*text, file, process_environment(), read_file);
  if (command.json) {
    std::cout << render_json(loaded.diagnostics);
  } else if (command.upgrade && loaded.config) {
    std::cout << upgraded(*text);
  } else {
    std::cout << render(loaded.diagnostics, *text, wants_color()) << closing_line(file, loaded)
              << '\n';
  }
  return loaded.config ? 0 : 1;
}

}  // namespace flashgate

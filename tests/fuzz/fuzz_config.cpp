// Any bytes as a configuration file: a configuration or errors, never an exception; every
// diagnostic can be shown, and stands inside the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/load.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flashgate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = load_config(
      text, "fuzz.yaml",
      [](const std::string& variable) -> std::optional<std::string> {
        if (variable.size() % 2 == 0) return std::nullopt;
        return variable;
      },
      [](const std::string&) -> Result<std::string> {
        return Error{"file", "no such file"};
      });
  if (loaded.config.has_value() == has_errors(loaded.diagnostics)) std::abort();
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  for (const Diagnostic& diagnostic : loaded.diagnostics) {
    if (diagnostic.message.empty() || diagnostic.line > lines + 1) std::abort();
  }
  render(loaded.diagnostics, text, false);
  render_json(loaded.diagnostics);
  if (loaded.config && loaded.config->profiles.empty()) std::abort();
  return 0;
}

#pragma once
// From the text of a configuration file to a Config, or to everything that is wrong with it at
// once. Promises: any bytes give diagnostics, never an exception or a crash; nothing half right is
// returned. No I/O of its own: environment and files are asked through the functions passed in. Any
// thread.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"

namespace flashgate {

enum class Severity { error, warning };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string file{};
  int line = 0;    // 1-based; 0: the file as a whole
  int column = 0;  // 1-based, in characters
  std::string message{};
  std::string suggestion{};  // what would fix it; may be empty
  std::string path{};        // profiles.local-flash.base_url
};

/// A variable's value, or nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& variable)>;
/// A file's bytes: keys in files, and certificates that must be readable.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

/// What flags and FLASHGATE_* variables say: each wins over the file's key.
struct Overrides {
  std::optional<std::string> listen{};
  std::optional<std::string> admin{};
  std::optional<std::string> data_dir{};
};

/// `config` is present exactly when no diagnostic is an error.
struct Loaded {
  std::optional<Config> config{};
  std::vector<Diagnostic> diagnostics{};  // in the order of the file
};

inline constexpr std::size_t config_bytes_max = 1u << 20;
inline constexpr int config_version = 1;

/// Reads and checks the whole file. `file_name` is for messages, and the base of relative paths.
Loaded load_config(std::string_view yaml_text, const std::string& file_name,
                   const Environment& environment, const FileReader& read_file,
                   const Overrides& overrides = {});

bool has_errors(const std::vector<Diagnostic>& diagnostics);

/// Compiler style: file:line:col, the source line, a caret, and a suggestion.
std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view yaml_text,
                   bool color);
/// {"ok", "errors", "warnings", "diagnostics": [{severity, file, line, column, path, message,
/// suggestion}]}
std::string render_json(const std::vector<Diagnostic>& diagnostics);

/// JSON Schema (draft 7) of the file, for editors; deploy/flashgate.schema.json is this text.
std::string config_schema();

using PathExists = std::function<bool(const std::string& path)>;
/// Which file to read: `flag` (--config), $FLASHGATE_CONFIG, ./flashgate.yaml,
/// $XDG_CONFIG_HOME/flashgate/config.yaml, ~/.llm/config.yaml, /etc/flashgate/config.yaml.
/// The first two are taken at their word; empty when nothing was named and nothing exists.
std::string find_config_file(const std::string& flag, const Environment& environment,
                             const PathExists& exists);

}  // namespace flashgate

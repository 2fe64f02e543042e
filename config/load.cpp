#include "config/load.hpp"

#include <algorithm>
#include <exception>

#include "config/build.hpp"
#include "config/check_keys.hpp"
#include "config/cross_check.hpp"

namespace flashgate {
namespace {

std::optional<Config> load_checked(std::string_view text, const BuildContext& context) {
  if (text.size() > config_bytes_max) {
    context.findings.error({}, "", "the file is larger than 1 MiB", "is it the right file?");
    return std::nullopt;
  }
  YamlDocument document = read_yaml(text);
  for (YamlFault& fault : document.faults) {
    context.findings.error(fault.place, "", std::move(fault.message), std::move(fault.suggestion));
  }
  if (!document.root) return std::nullopt;
  check_keys(*document.root, context.findings);
  if (document.root->kind != YamlNode::Kind::map) return std::nullopt;
  Config config = build_config(*document.root, context);
  cross_check(*document.root, config, context.findings);
  return config;
}

}  // namespace

Loaded load_config(std::string_view yaml_text, const std::string& file_name,
                   const Environment& environment, const FileReader& read_file,
                   const Overrides& overrides) {
  Findings findings(file_name);
  Loaded loaded;
  try {
    loaded.config =
        load_checked(yaml_text, {environment, read_file, overrides, file_name, findings});
  } catch (const std::exception&) {  // a bug or no memory: the last good configuration must live
    findings.error({}, "", "the file could not be read to its end");
  }
  loaded.diagnostics = findings.take_sorted();
  if (has_errors(loaded.diagnostics)) loaded.config.reset();
  return loaded;
}

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string find_config_file(const std::string& flag, const Environment& environment,
                             const PathExists& exists) {
  if (!flag.empty()) return flag;
  const auto variable = [&](const char* name) { return environment(name).value_or(""); };
  if (const auto named = variable("FLASHGATE_CONFIG"); !named.empty()) return named;
  const std::string home = variable("HOME");
  std::string config_home = variable("XDG_CONFIG_HOME");
  if (config_home.empty() && !home.empty()) config_home = home + "/.config";
  std::vector<std::string> places{"./flashgate.yaml"};
  if (!config_home.empty()) places.push_back(config_home + "/flashgate/config.yaml");
  if (!home.empty()) places.push_back(home + "/.llm/config.yaml");
  places.emplace_back("/etc/flashgate/config.yaml");
  const auto found = std::find_if(places.begin(), places.end(), exists);
  return found == places.end() ? std::string{} : *found;
}

}  // namespace flashgate

#pragma once
// From the checked tree to a Config: values are read, names become indices, keys and certificates
// are fetched. What is wrong between keys (targets that don't exist, contradictions) is reported
// here and in cross_check.hpp. One thread, one load.
#include <string>

#include "config/findings.hpp"
#include "config/load.hpp"
#include "config/yaml_tree.hpp"

namespace flashgate {

/// Everything a load may ask the world, and where it is told what was wrong.
struct BuildContext {
  const Environment& environment;
  const FileReader& read_file;
  const Overrides& overrides;
  const std::string& file_name;
  Findings& findings;
};

Config build_config(const YamlNode& root, const BuildContext& context);

/// One entry of `profiles`.
ProfileConfig build_profile(const YamlMember& member, const BuildContext& context);

/// The rules, with profile names turned into indices.
std::vector<Rule> build_rules(const YamlNode* routing, const std::vector<std::string>& names,
                              Findings& findings);
/// The profiles that `key` of `map` names; unknown and repeated ones are reported and left out.
std::vector<std::size_t> read_targets(const YamlNode* map, std::string_view key,
                                      const std::string& path,
                                      const std::vector<std::string>& names, Findings& findings);

/// A path of the file: relative ones are meant from the file's own folder, ~/ is the home.
std::string resolve_path(const std::string& path, const BuildContext& context);
/// Reports a file that can't be read; its bytes otherwise.
std::optional<std::string> fetch_file(const std::string& path, Place place, const std::string& at,
                                      const BuildContext& context);

}  // namespace flashgate

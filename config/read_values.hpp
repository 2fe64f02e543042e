#pragma once
// Reads checked values out of the tree into the fields of the configuration. An absent key leaves
// the field as it is; a value that does not parse has been reported by check_keys and is skipped,
// so that the checks after it can still run. Pure, any thread.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "config/yaml_tree.hpp"

namespace flashgate {

/// Null-safe: the value under `key` of a map, or nullptr.
const YamlNode* child(const YamlNode* map, std::string_view key);
/// The same, if it is a scalar.
const YamlNode* scalar_child(const YamlNode* map, std::string_view key);
/// Where `key` of a map stands; {0, 0} if it does not.
Place place_of(const YamlNode* map, std::string_view key);

/// True if the key is there and could be read.
bool read_text(const YamlNode* map, std::string_view key, std::string& out);
bool read_flag(const YamlNode* map, std::string_view key, bool& out);
bool read_duration(const YamlNode* map, std::string_view key, Duration& out);
bool read_share(const YamlNode* map, std::string_view key, double& out);
bool read_rate(const YamlNode* map, std::string_view key, double& out);
bool read_number(const YamlNode* map, std::string_view key, double& out);
bool read_size(const YamlNode* map, std::string_view key, std::size_t& out);

template <class Integer>
bool read_count(const YamlNode* map, std::string_view key, Integer& out) {
  const YamlNode* node = scalar_child(map, key);
  if (node == nullptr) return false;
  const auto value = parse_count(node->text);
  if (!value || !std::in_range<Integer>(*value)) return false;
  out = static_cast<Integer>(*value);
  return true;
}

/// A list of texts, or one text; entries that are no scalars are left out.
std::vector<const YamlNode*> entries(const YamlNode* node);
std::vector<std::string> read_texts(const YamlNode* map, std::string_view key);
std::vector<std::pair<std::string, std::string>> read_text_map(const YamlNode* map,
                                                               std::string_view key);
std::string lower_case(std::string_view text);

}  // namespace flashgate

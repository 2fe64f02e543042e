#pragma once
// Whether one scalar of the file is what its key wants: type, unit, bounds, choices.
// Says what was wrong and, where it can, exactly what to write instead. Pure, any thread.
#include <optional>
#include <string>

#include "config/keys.hpp"
#include "config/yaml_tree.hpp"

namespace flashgate {

struct ValueFault {
  std::string message{};
  std::string suggestion{};
};

/// REQUIRES: `node` is a scalar, and `key` is of a type written as one (or a list's entry).
std::optional<ValueFault> check_value(const Key& key, const YamlNode& node);

/// "a duration", "a list of texts": what a key of this type holds, for people.
std::string_view describe(ValueType type);

/// What profiles and rules may be called: they travel in header fields, logs and metrics.
std::optional<ValueFault> check_name(std::string_view name);
/// A header field's name (RFC 9110 §5.6.2, token).
bool is_field_name(std::string_view name);

}  // namespace flashgate

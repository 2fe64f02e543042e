#pragma once
// Holds the file against the table of keys: unknown, repeated, missing and not yet available keys,
// and every value's type. After it, whatever passed can be read without further questions.
#include "config/findings.hpp"
#include "config/keys.hpp"
#include "config/yaml_tree.hpp"

namespace flashgate {

void check_keys(const YamlNode& root, Findings& findings);

}  // namespace flashgate

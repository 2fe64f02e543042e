#pragma once
// A YAML document as a tree that keeps what yaml-cpp's own nodes lose: every key in order with its
// place, duplicates included, and whether a scalar was quoted. Anchors, aliases, tags, merge keys
// and second documents are refused: a configuration needs none, and aliases multiply (RTY-17).
// Promises: any bytes give a tree or diagnostics; bounded size, depth and number of nodes.
// Plain values, any thread.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flashgate {

/// Where something begins; 1-based line, 1-based column in characters, as an editor shows them.
struct Place {
  int line = 0;
  int column = 0;
};

struct YamlMember;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Place place{};
  std::string text{};  // scalar
  bool plain = false;  // scalar without quotes: `yes`, `010` and `~` mean themselves only here
  std::vector<YamlNode> items{};
  std::vector<YamlMember> members;

  const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key{};
  Place place{};
  YamlNode value;
};

struct YamlFault {
  Place place{};
  std::string message{};
  std::string suggestion{};
};

struct YamlDocument {
  std::optional<YamlNode> root{};  // absent when there are faults
  std::vector<YamlFault> faults{};
};

inline constexpr int yaml_depth_max = 32;
inline constexpr int yaml_nodes_max = 100'000;

YamlDocument read_yaml(std::string_view text);

}  // namespace flashgate

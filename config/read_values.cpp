#include "config/read_values.hpp"

namespace flashgate {
namespace {

template <class Value, class Field, class Parse>
bool read_parsed(const YamlNode* map, std::string_view key, Field& out, Parse parse) {
  const YamlNode* node = scalar_child(map, key);
  if (node == nullptr) return false;
  const Result<Value> value = parse(node->text);
  if (!value) return false;
  out = static_cast<Field>(*value);
  return true;
}

}  // namespace

const YamlNode* child(const YamlNode* map, std::string_view key) {
  if (map == nullptr) return nullptr;
  const YamlMember* member = map->find(key);
  return member == nullptr ? nullptr : &member->value;
}

const YamlNode* scalar_child(const YamlNode* map, std::string_view key) {
  const YamlNode* node = child(map, key);
  return node != nullptr && node->kind == YamlNode::Kind::scalar ? node : nullptr;
}

Place place_of(const YamlNode* map, std::string_view key) {
  const YamlMember* member = map == nullptr ? nullptr : map->find(key);
  return member == nullptr ? Place{} : member->place;
}

bool read_text(const YamlNode* map, std::string_view key, std::string& out) {
  const YamlNode* node = scalar_child(map, key);
  if (node == nullptr || node->text.empty()) return false;
  out = node->text;
  return true;
}

bool read_flag(const YamlNode* map, std::string_view key, bool& out) {
  const YamlNode* node = scalar_child(map, key);
  if (node == nullptr || (node->text != "true" && node->text != "false")) return false;
  out = node->text == "true";
  return true;
}

bool read_duration(const YamlNode* map, std::string_view key, Duration& out) {
  const YamlNode* node = scalar_child(map, key);
  if (node != nullptr && node->text == "off") {
    out = Duration::zero();
    return true;
  }
  return read_parsed<Duration>(map, key, out, parse_duration);
}

bool read_share(const YamlNode* map, std::string_view key, double& out) {
  return read_parsed<double>(map, key, out, parse_share);
}

bool read_rate(const YamlNode* map, std::string_view key, double& out) {
  return read_parsed<double>(map, key, out, parse_rate_per_minute);
}

bool read_number(const YamlNode* map, std::string_view key, double& out) {
  return read_parsed<double>(map, key, out, parse_number);
}

bool read_size(const YamlNode* map, std::string_view key, std::size_t& out) {
  return read_parsed<std::uint64_t>(map, key, out, parse_size);
}

std::vector<const YamlNode*> entries(const YamlNode* node) {
  std::vector<const YamlNode*> out;
  if (node == nullptr) return out;
  if (node->kind == YamlNode::Kind::scalar) out.push_back(node);
  for (const YamlNode& item : node->items) {
    if (item.kind == YamlNode::Kind::scalar) out.push_back(&item);
  }
  return out;
}

std::vector<std::string> read_texts(const YamlNode* map, std::string_view key) {
  std::vector<std::string> out;
  for (const YamlNode* entry : entries(child(map, key))) out.push_back(entry->text);
  return out;
}

std::vector<std::pair<std::string, std::string>> read_text_map(const YamlNode* map,
                                                               std::string_view key) {
  std::vector<std::pair<std::string, std::string>> out;
  const YamlNode* node = child(map, key);
  if (node == nullptr) return out;
  for (const YamlMember& member : node->members) {
    if (member.value.kind == YamlNode::Kind::scalar) {
      out.emplace_back(member.key, member.value.text);
    }
  }
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

}  // namespace flashgate

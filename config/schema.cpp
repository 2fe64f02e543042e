// The table of keys as JSON Schema, draft 7: what editors complete from and underline with.
#include <nlohmann/json.hpp>

#include "config/check_value.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"

namespace flashgate {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto* name_pattern = "^[A-Za-z0-9_.:/@-]{1,64}$";
constexpr auto* count_pattern = "^(0|[1-9][0-9]*)(\\.[0-9]+)?[kM]?$";

Json section_schema(const Section& section);

Json text_schema(const char* pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

/// A number as YAML reads it, or a text with its unit.
Json number_or(const char* pattern) {
  return {{"anyOf", {{{"type", "number"}, {"minimum", 0}}, text_schema(pattern)}}};
}

Json count_schema(const Key& key) {
  Json number{{"type", "integer"}, {"minimum", key.least}};
  number["minimum"] = static_cast<std::int64_t>(key.least);
  if (key.most < 1e15) number["maximum"] = static_cast<std::int64_t>(key.most);
  return {{"anyOf", {number, text_schema(count_pattern)}}};
}

Json word_schema(const Key& key) {
  // A scalar like 3 or true is a text here, although YAML gives it another type.
  if (key.choices.empty()) return {{"type", {"string", "number", "boolean"}}};
  Json words = Json::array();
  for (const auto choice : key.choices) words.push_back(choice);
  Json schema{{"type", "string"}, {"enum", words}};
  if (key.path_allowed) schema = {{"anyOf", {schema, text_schema("^/v1/")}}};
  return schema;
}

Json one_or_list(const Json& item, bool one_allowed) {
  Json list{{"type", "array"}, {"items", item}, {"minItems", 1}};
  if (!one_allowed) return list;
  return {{"anyOf", {item, list}}};
}

Json scalar_schema(const Key& key) {
  switch (key.type) {
    case ValueType::flag:
      return {{"type", "boolean"}};
    case ValueType::count:
      return count_schema(key);
    case ValueType::number:
      return {{"type", "number"}, {"minimum", key.least}};
    case ValueType::duration:
      return number_or(key.off_allowed ? "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?|off)$"
                                       : "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?$");
    case ValueType::size:
      return number_or("^[0-9]+(\\.[0-9]+)? *(B|kB|MB|GB|KiB|MiB|GiB)?$");
    case ValueType::rate:
      return text_schema("^[0-9]+(\\.[0-9]+)?[kM]?/(s|sec|m|min|h)$");
    case ValueType::share:
      return text_schema("^[0-9]+(\\.[0-9]+)?%$");
    case ValueType::range:
      return {{"type", {"string", "integer"}},
              {"pattern", "^ *((>|>=|<|<=)? *[0-9.]+[kM]?|[0-9.]+[kM]? *\\.\\. *[0-9.]+[kM]?) *$"}};
    case ValueType::url:
    case ValueType::urls:
      return text_schema("^[Hh][Tt][Tt][Pp][Ss]?://[^?#@]+$");
    case ValueType::address:
      return text_schema("^(\\[[0-9A-Fa-f:.]+\\]|[^:]*):[0-9]{1,5}$");
    case ValueType::variable:
      return text_schema("^[A-Za-z_][A-Za-z0-9_]*$");
    default:
      return word_schema(key);
  }
}

Json value_schema(const Key& key) {
  switch (key.type) {
    case ValueType::section:
      return section_schema(*key.inner);
    case ValueType::sections:
      return {{"type", "object"},
              {"minProperties", 1},
              {"propertyNames", {{"pattern", name_pattern}}},
              {"additionalProperties", section_schema(*key.inner)}};
    case ValueType::section_list:
      return one_or_list(section_schema(*key.inner), false);
    case ValueType::text_map:
      return {{"type", "object"},
              {"additionalProperties", {{"type", {"string", "number", "boolean"}}}}};
    case ValueType::texts:
    case ValueType::urls:
      return one_or_list(scalar_schema(key), true);
    default:
      break;
  }
  if (key.inner == nullptr) return scalar_schema(key);
  return {{"anyOf", {scalar_schema(key), section_schema(*key.inner)}}};
}

/// The default in the type that YAML would give it.
Json default_of(const Key& key) {
  if (key.type == ValueType::flag) return key.standard == "true";
  const bool digits = key.standard.find_first_not_of("0123456789") == std::string_view::npos;
  if (key.type == ValueType::count && digits) return std::stoll(std::string(key.standard));
  return std::string(key.standard);
}

Json key_schema(const Key& key) {
  Json out{{"description", key.about}};
  if (!key.standard.empty()) out["default"] = default_of(key);
  out.update(value_schema(key));
  return out;
}

Json section_schema(const Section& section) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Key& key : section.keys) {
    properties[std::string(key.name)] = key_schema(key);
    if (key.required) required.push_back(key.name);
  }
  Json out{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!required.empty()) out["required"] = required;
  if (&section == &profile_section()) {
    out["oneOf"] = {{{"required", {"base_url"}}}, {{"required", {"replicas"}}}};
  }
  return out;
}

}  // namespace

std::string config_schema() {
  Json out{{"$schema", "http://json-schema.org/draft-07/schema#"},
           {"title", "flashgate configuration"},
           {"description", "The configuration file of flashgate, a gateway in front of LLMs."}};
  out.update(section_schema(root_section()));
  return out.dump(2) + '\n';
}

}  // namespace flashgate

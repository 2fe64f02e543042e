#include "simulator/schema_value.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "simulator/dice.hpp"
#include "simulator/pretend_text.hpp"

namespace flashgate {
namespace {

constexpr int depth_max = 24;
constexpr int nodes_max = 2000;
constexpr std::uint64_t items_max = 50;
constexpr std::uint64_t string_bytes_max = 4096;

struct Walk {
  const Json& root;
  Dice dice;
  int nodes = 0;
};

Json make(const Json& schema, Walk& walk, int depth);

double number_or(const Json& schema, const char* key, double otherwise) {
  const auto at = schema.find(key);
  return at != schema.end() && at->is_number() ? at->get<double>() : otherwise;
}

std::uint64_t count_or(const Json& schema, const char* key, std::uint64_t otherwise,
                       std::uint64_t most) {
  const double value = number_or(schema, key, static_cast<double>(otherwise));
  return value <= 0 ? 0 : static_cast<std::uint64_t>(std::min(value, static_cast<double>(most)));
}

std::string string_or(const Json& schema, const char* key) {
  const auto at = schema.find(key);
  return at != schema.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

/// `#/$defs/Name`, resolved in the document's root.
const Json* resolve(const Json& root, const std::string& reference) {
  if (!reference.starts_with("#")) return nullptr;
  const Json* at = &root;
  std::string_view path = std::string_view(reference).substr(1);
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string key(path.substr(0, end));
    if (!at->is_object()) return nullptr;
    const auto next = at->find(key);
    if (next == at->end()) return nullptr;
    at = &*next;
    path.remove_prefix(end);
  }
  return at;
}

std::string type_of(const Json& schema) {
  const auto at = schema.find("type");
  if (at != schema.end() && at->is_string()) return at->get<std::string>();
  if (at != schema.end() && at->is_array()) {
    for (const Json& type : *at) {
      if (type.is_string() && type != "null") return type.get<std::string>();
    }
    return "null";
  }
  if (schema.contains("properties")) return "object";
  if (schema.contains("items") || schema.contains("prefixItems")) return "array";
  return "string";
}

Json make_string(const Json& schema, Walk& walk) {
  const std::string format = string_or(schema, "format");
  if (format == "date") return "2024-05-17";
  if (format == "date-time") return "2024-05-17T09:30:00Z";
  if (format == "time") return "09:30:00Z";
  if (format == "duration") return "PT5M";
  if (format == "email") return "ada@example.com";
  if (format == "uri" || format == "url") return "https://example.com/";
  if (format == "uuid") return "123e4567-e89b-42d3-a456-426614174000";
  if (format == "ipv4") return "192.0.2.1";
  if (format == "ipv6") return "2001:db8::1";
  if (format == "hostname") return "example.com";
  const std::uint64_t least = count_or(schema, "minLength", 0, string_bytes_max);
  const std::uint64_t most = count_or(schema, "maxLength", string_bytes_max, string_bytes_max);
  std::string out = pretend_answer("value", walk.dice.next(), 3);
  while (out.size() < least) out += out;
  const std::size_t wanted = std::max<std::size_t>(least, std::min<std::size_t>(most, out.size()));
  return out.substr(0, std::min<std::size_t>(wanted, std::max(least, most)));
}

Json make_number(const Json& schema, Walk& walk, bool whole) {
  double low = number_or(schema, "minimum", -1e15);
  double high = number_or(schema, "maximum", 1e15);
  const double step = number_or(schema, "multipleOf", whole ? 1 : 0);
  const double nudge = whole ? 1 : 1e-3;
  low = std::max(low, number_or(schema, "exclusiveMinimum", -2e15) + nudge);
  high = std::min(high, number_or(schema, "exclusiveMaximum", 2e15) - nudge);
  double value = static_cast<double>(1 + walk.dice.below(9)) + (whole ? 0 : 0.5);
  value = std::max(std::min(value, high), low);
  if (step > 0) {
    value = std::ceil(value / step) * step;
    if (value > high) value = std::floor(high / step) * step;
  }
  if (whole) return static_cast<std::int64_t>(value);
  return value;
}

Json make_array(const Json& schema, Walk& walk, int depth) {
  Json out = Json::array();
  if (const auto fixed = schema.find("prefixItems"); fixed != schema.end() && fixed->is_array()) {
    for (const Json& item : *fixed) out.push_back(make(item, walk, depth + 1));
  }
  const std::uint64_t most = count_or(schema, "maxItems", items_max, items_max);
  const std::uint64_t least = count_or(schema, "minItems", 0, items_max);
  const std::uint64_t wanted = std::min(most, std::max<std::uint64_t>(least, 2));
  const auto items = schema.find("items");
  const Json any = Json::object({{"type", "string"}});
  while (out.size() < wanted) {
    const bool described = items != schema.end() && items->is_object();
    out.push_back(make(described ? *items : any, walk, depth + 1));
  }
  return out;
}

Json make_object(const Json& schema, Walk& walk, int depth) {
  Json out = Json::object();
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return out;
  const auto required = schema.find("required");
  for (const auto& [key, value] : properties->items()) {
    // A recursive type ends by leaving out what it may leave out.
    const bool needed = required != schema.end() && required->is_array() &&
                        std::find(required->begin(), required->end(), key) != required->end();
    if (depth > depth_max / 4 && !needed) continue;
    out[key] = make(value, walk, depth + 1);
  }
  return out;
}

/// anyOf and oneOf: the first that is not null, or null once the value is deep enough.
const Json* pick_branch(const Json& branches, int depth) {
  const Json* null_branch = nullptr;
  const Json* first = nullptr;
  for (const Json& branch : branches) {
    if (!branch.is_object()) continue;
    const bool is_null = type_of(branch) == "null";
    if (is_null && null_branch == nullptr) null_branch = &branch;
    if (!is_null && first == nullptr) first = &branch;
  }
  if (null_branch != nullptr && (first == nullptr || depth > depth_max / 4)) return null_branch;
  return first;
}

Json make_typed(const Json& schema, Walk& walk, int depth) {
  const std::string type = type_of(schema);
  if (type == "object") return make_object(schema, walk, depth);
  if (type == "array") return make_array(schema, walk, depth);
  if (type == "integer") return make_number(schema, walk, true);
  if (type == "number") return make_number(schema, walk, false);
  if (type == "boolean") return walk.dice.below(2) == 0;
  if (type == "null") return nullptr;
  return make_string(schema, walk);
}

Json make(const Json& schema, Walk& walk, int depth) {
  if (depth > depth_max || ++walk.nodes > nodes_max) return nullptr;
  if (!schema.is_object()) return "any";
  if (const std::string reference = string_or(schema, "$ref"); !reference.empty()) {
    const Json* const target = resolve(walk.root, reference);
    return target == nullptr ? Json(nullptr) : make(*target, walk, depth + 1);
  }
  if (const auto constant = schema.find("const"); constant != schema.end()) return *constant;
  const auto choices = schema.find("enum");
  if (choices != schema.end() && choices->is_array() && !choices->empty()) {
    return (*choices)[walk.dice.below(choices->size())];
  }
  for (const char* const key : {"anyOf", "oneOf"}) {
    const auto branches = schema.find(key);
    if (branches == schema.end() || !branches->is_array()) continue;
    const Json* const branch = pick_branch(*branches, depth);
    if (branch != nullptr) return make(*branch, walk, depth + 1);
  }
  if (const auto all = schema.find("allOf"); all != schema.end() && all->is_array()) {
    Json out = make_object(schema, walk, depth);
    for (const Json& part : *all) {
      Json value = make(part, walk, depth + 1);
      if (!value.is_object()) return value;
      out.update(value);
    }
    return out;
  }
  return make_typed(schema, walk, depth);
}

}  // namespace

Json value_for_schema(const Json& schema, std::uint64_t seed) {
  Walk walk{schema, Dice(seed)};
  return make(schema, walk, 0);
}

}  // namespace flashgate

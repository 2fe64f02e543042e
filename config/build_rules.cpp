#include <algorithm>

#include "config/build.hpp"
#include "config/read_values.hpp"

namespace flashgate {
namespace {

template <class Value>
void read_named(const YamlNode* map, std::string_view key, std::vector<Value>& out,
                std::optional<Value> (*parse)(std::string_view)) {
  for (const std::string& word : read_texts(map, key)) {
    if (const auto value = parse(word)) out.push_back(*value);
  }
}

std::optional<ResponseFormat> parse_response_format(std::string_view word) {
  if (word == "none") return ResponseFormat::none;
  if (word == "text") return ResponseFormat::text;
  if (word == "json_object") return ResponseFormat::json_object;
  if (word == "json_schema") return ResponseFormat::json_schema;
  return std::nullopt;
}

void read_range(const YamlNode* map, std::string_view key, std::optional<TokenRange>& out) {
  const YamlNode* node = scalar_child(map, key);
  if (node != nullptr) out = parse_token_range(node->text);
}

void read_flag_field(const YamlNode* map, std::string_view key, std::optional<bool>& out) {
  bool value = false;
  if (read_flag(map, key, value)) out = value;
}

When read_when(const YamlNode* map) {
  When when;
  when.model = read_texts(map, "model");
  when.key = read_texts(map, "key");
  when.tag = read_texts(map, "tag");
  when.language = read_texts(map, "language");
  read_named<TaskClass>(map, "task", when.task, parse_task_class);
  read_named<ResponseFormat>(map, "response_format", when.response_format, parse_response_format);
  read_range(map, "input_tokens", when.input_tokens);
  read_range(map, "max_tokens", when.max_tokens);
  read_range(map, "turns", when.turns);
  read_flag_field(map, "stream", when.stream);
  read_flag_field(map, "tools", when.tools);
  read_flag_field(map, "images", when.images);
  for (auto& [name, value] : read_text_map(map, "header")) {
    when.header.emplace_back(lower_case(name), value);
  }
  return when;
}

}  // namespace

std::vector<std::size_t> read_targets(const YamlNode* map, std::string_view key,
                                      const std::string& path,
                                      const std::vector<std::string>& names, Findings& findings) {
  std::vector<std::size_t> out;
  for (const YamlNode* entry : entries(child(map, key))) {
    const auto found = std::find(names.begin(), names.end(), entry->text);
    if (found == names.end()) {
      std::string advice = did_you_mean(entry->text, names);
      if (advice.empty() && !names.empty()) advice = "it is " + one_of(names);
      findings.error(entry->place, path, "no profile is called " + quoted(entry->text),
                     std::move(advice));
      continue;
    }
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (std::find(out.begin(), out.end(), index) != out.end()) {
      findings.warning(entry->place, path,
                       quoted(entry->text) + " is listed twice; it is tried once",
                       "remove one of them");
    } else {
      out.push_back(index);
    }
  }
  return out;
}

std::vector<Rule> build_rules(const YamlNode* routing, const std::vector<std::string>& names,
                              Findings& findings) {
  std::vector<Rule> out;
  const YamlNode* list = child(routing, "rules");
  if (list == nullptr) return out;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    Rule rule;
    read_text(&item, "name", rule.name);
    rule.when = read_when(child(&item, "when"));
    rule.to =
        read_targets(&item, "to", "routing.rules[" + std::to_string(i) + "].to", names, findings);
    out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace flashgate

#include "config/check_keys.hpp"

#include <algorithm>

#include "config/check_value.hpp"

namespace flashgate {
namespace {

/// Names that people bring along from elsewhere, and what we call the same thing.
struct Habit {
  std::string_view written;
  std::string_view advice;
};
constexpr Habit habits[] = {
    {"api_key", "keys are never written in the file: api_key_env: NAME_OF_A_VARIABLE"},
    {"apikey", "keys are never written in the file: api_key_env: NAME_OF_A_VARIABLE"},
    {"url", "did you mean 'base_url'?"},
    {"api_base", "did you mean 'base_url'?"},
    {"endpoint", "did you mean 'base_url'?"},
    {"max_parallel_requests", "did you mean 'max_concurrency'?"},
    {"context_window", "did you mean 'context_length'?"},
    {"max_model_len", "did you mean 'context_length'?"},
    {"fallbacks", "did you mean 'fallback'?"},
    {"models", "did you mean 'profiles'?"},
    {"backends", "did you mean 'profiles'?"},
};

class Checker {
 public:
  explicit Checker(Findings& findings) : findings_(findings) {}

  void section(const Section& section, const YamlNode& map, Place place, const std::string& path) {
    repeated(map, path);
    for (const YamlMember& member : map.members) {
      const Key* key = section.find(member.key);
      if (key == nullptr) {
        unknown(section, member, path);
      } else {
        value(*key, member.value, member.place, join(path, member.key));
      }
    }
    for (const Key& key : section.keys) {
      if (key.required && map.find(key.name) == nullptr) {
        findings_.error(place, join(path, key.name), quoted(key.name) + " is missing here",
                        std::string(key.about));
      }
    }
  }

 private:
  static std::string join(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + '.' + std::string(name);
  }

  void repeated(const YamlNode& map, const std::string& path) {
    std::vector<const YamlMember*> sorted;
    for (const YamlMember& member : map.members) sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* a, const auto* b) { return a->key < b->key; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->key != sorted[i - 1]->key) continue;
      findings_.error(sorted[i]->place, join(path, sorted[i]->key),
                      "the key " + quoted(sorted[i]->key) + " is here twice; first on line " +
                          std::to_string(sorted[i - 1]->place.line),
                      "remove one of them");
    }
  }

  void unknown(const Section& section, const YamlMember& member, const std::string& path) {
    const auto& later = section.not_yet;
    if (std::find(later.begin(), later.end(), member.key) != later.end()) {
      // Refusing these would refuse the files of the next version; ignoring the others would
      // leave out a protection that the owner counts on.
      static constexpr std::string_view harmless[] = {"health", "warmup", "affinity", "store"};
      if (std::find(std::begin(harmless), std::end(harmless), member.key) != std::end(harmless)) {
        findings_.warning(member.place, join(path, member.key),
                          quoted(member.key) + " has no effect in this version yet", "");
        return;
      }
      findings_.error(member.place, join(path, member.key),
                      quoted(member.key) + " is not available in this version yet", "remove it");
      return;
    }
    std::string advice;
    for (const Habit& habit : habits) {
      if (member.key == habit.written) advice = habit.advice;
    }
    std::vector<std::string> known;
    for (const Key& key : section.keys) known.emplace_back(key.name);
    std::string word = member.key.substr(0, 64);
    std::replace(word.begin(), word.end(), '-', '_');
    if (advice.empty()) advice = did_you_mean(word, known);
    if (advice.empty()) advice = elsewhere(member.key);
    findings_.error(member.place, join(path, member.key), "unknown key " + quoted(member.key),
                    std::move(advice));
  }

  /// A key that exists, but not here.
  static std::string elsewhere(std::string_view name) {
    for (const Key& key : root_section().keys) {
      if (key.name == name) return quoted(name) + " belongs to the top level";
      if (key.inner != nullptr && key.type == ValueType::section && key.inner->find(name)) {
        return quoted(name) + " belongs under " + quoted(key.name);
      }
    }
    if (profile_section().find(name)) return quoted(name) + " belongs to a profile";
    return {};
  }

  void value(const Key& key, const YamlNode& node, Place place, const std::string& path) {
    using Kind = YamlNode::Kind;
    if (node.kind == Kind::null) {
      findings_.error(place, path, quoted(key.name) + " has no value",
                      "write " + std::string(describe(key.type)) + ", or remove the key");
      return;
    }
    if (node.kind == Kind::map && key.inner != nullptr && key.type != ValueType::sections &&
        key.type != ValueType::section_list) {
      section(*key.inner, node, place, path);
      return;
    }
    switch (key.type) {
      case ValueType::section:
        return wrong_kind(key, node, path);
      case ValueType::sections:
        return sections(key, node, place, path);
      case ValueType::section_list:
        return section_list(key, node, path);
      case ValueType::text_map:
        return text_map(key, node, path);
      case ValueType::texts:
      case ValueType::urls:
        return list(key, node, path);
      default:
        return scalar(key, node, path);
    }
  }

  void wrong_kind(const Key& key, const YamlNode& node, const std::string& path) {
    const char* found = node.kind == YamlNode::Kind::map    ? "a map"
                        : node.kind == YamlNode::Kind::list ? "a list"
                                                            : "a single value";
    findings_.error(node.place, path,
                    std::string(describe(key.type)) + " is expected here, not " + found);
  }

  void scalar(const Key& key, const YamlNode& node, const std::string& path) {
    if (node.kind != YamlNode::Kind::scalar) return wrong_kind(key, node, path);
    if (auto fault = check_value(key, node)) {
      findings_.error(node.place, path, std::move(fault->message), std::move(fault->suggestion));
    }
  }

  void list(const Key& key, const YamlNode& node, const std::string& path) {
    if (node.kind != YamlNode::Kind::list) return scalar(key, node, path);
    if (node.items.empty()) {
      findings_.error(node.place, path, "the list is empty", "remove the key");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      const std::string at = path + '[' + std::to_string(i) + ']';
      if (item.kind == YamlNode::Kind::null) {
        findings_.error(item.place, at, "an entry of the list has no value", "remove it");
      } else if (item.kind != YamlNode::Kind::scalar) {
        findings_.error(item.place, at, "a text is expected here", "");
      } else {
        scalar(key, item, at);
      }
    }
  }

  void text_map(const Key& key, const YamlNode& node, const std::string& path) {
    if (node.kind != YamlNode::Kind::map) return wrong_kind(key, node, path);
    repeated(node, path);
    for (const YamlMember& member : node.members) {
      const Key entry{.name = member.key};
      const std::string at = join(path, member.key);
      const bool field = key.name == "headers" || key.name == "header";
      if (field && !is_field_name(member.key)) {
        findings_.error(member.place, at, quoted(member.key) + " is not the name of a header");
      } else if (member.key.empty()) {
        findings_.error(member.place, at, "the name is empty");
      }
      if (member.value.kind == YamlNode::Kind::null) {
        findings_.error(member.place, at, quoted(member.key) + " has no value", "");
      } else {
        scalar(entry, member.value, at);
      }
    }
  }

  void sections(const Key& key, const YamlNode& node, Place place, const std::string& path) {
    if (node.kind != YamlNode::Kind::map) return wrong_kind(key, node, path);
    if (node.members.empty()) findings_.error(place, path, "there is no profile", "add one");
    repeated(node, path);
    for (const YamlMember& member : node.members) {
      const std::string at = join(path, member.key);
      if (auto fault = check_name(member.key)) {
        findings_.error(member.place, at, std::move(fault->message), std::move(fault->suggestion));
      }
      if (member.value.kind == YamlNode::Kind::map) {
        section(*key.inner, member.value, member.place, at);
      } else {
        findings_.error(member.place, at, "a map of keys is expected under " + quoted(member.key),
                        "indent base_url, model and the others under it");
      }
    }
  }

  void section_list(const Key& key, const YamlNode& node, const std::string& path) {
    if (node.kind != YamlNode::Kind::list) return wrong_kind(key, node, path);
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      const std::string at = path + '[' + std::to_string(i) + ']';
      if (item.kind == YamlNode::Kind::map) {
        section(*key.inner, item, item.place, at);
      } else {
        findings_.error(item.place, at, "a map of keys is expected here");
      }
    }
  }

  Findings& findings_;
};

}  // namespace

void check_keys(const YamlNode& root, Findings& findings) {
  if (root.kind == YamlNode::Kind::null) {
    findings.error({1, 1}, "", "the file is empty", "a configuration names at least one profile");
  } else if (root.kind != YamlNode::Kind::map) {
    findings.error(root.place, "", "a map of keys is expected at the top level",
                   "begin with profiles:");
  } else {
    Checker(findings).section(root_section(), root, {1, 1}, "");
  }
}

}  // namespace flashgate

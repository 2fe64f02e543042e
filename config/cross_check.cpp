#include "config/cross_check.hpp"

#include <algorithm>

#include "config/check_value.hpp"
#include "config/read_values.hpp"

namespace flashgate {
namespace {

/// The profile's member of the tree; the same index as in the configuration.
const YamlMember& member_of(const YamlNode& root, std::size_t profile) {
  return child(&root, "profiles")->members[profile];
}

/// Names that a client may ask for mean one thing: `auto`, then a profile, an alias, a model.
class NameCheck {
 public:
  NameCheck(const YamlNode& root, const Config& config, Findings& findings)
      : root_(root), config_(config), findings_(findings) {}

  void run() {
    for (std::size_t i = 0; i < config_.profiles.size(); ++i) {
      const YamlMember& member = member_of(root_, i);
      if (member.key == auto_model) {
        findings_.error(member.place, "profiles.auto",
                        "'auto' is taken: clients ask for routing by this name",
                        "call the profile something else");
      }
      for (const YamlNode* entry : entries(child(&member.value, "aliases"))) alias(i, *entry);
      model(i);
    }
  }

 private:
  void alias(std::size_t profile, const YamlNode& entry) {
    const std::string path = "profiles." + config_.profiles[profile].name + ".aliases";
    if (entry.text == auto_model) {
      findings_.error(entry.place, path, "'auto' can't be an alias",
                      "clients ask for routing by this name");
      return;
    }
    for (std::size_t other = 0; other < config_.profiles.size(); ++other) {
      const ProfileConfig& theirs = config_.profiles[other];
      if (entry.text == theirs.name) {
        const bool own = other == profile;
        findings_.error(entry.place, path,
                        "the alias " + quoted(entry.text) + " is the name of " +
                            (own ? "this profile" : "another profile"),
                        own ? "remove it" : "an alias must not stand for two profiles");
        return;
      }
      if (other <= profile || theirs.model == config_.profiles[profile].model) continue;
      const auto& aliases = theirs.aliases;
      if (std::find(aliases.begin(), aliases.end(), entry.text) != aliases.end()) {
        findings_.warning(entry.place, path,
                          "the alias " + quoted(entry.text) + " belongs to " + quoted(theirs.name) +
                              " as well, with another model",
                          "the profile that comes first in the file is tried first");
        return;
      }
    }
  }

  /// A backend's model name that an alias or a profile's name hides.
  void model(std::size_t profile) {
    const ProfileConfig& mine = config_.profiles[profile];
    const YamlNode* node = scalar_child(&member_of(root_, profile).value, "model");
    if (node == nullptr) return;
    for (std::size_t other = 0; other < config_.profiles.size(); ++other) {
      const ProfileConfig& theirs = config_.profiles[other];
      if (other == profile || theirs.model == mine.model) continue;
      const bool by_alias = std::find(theirs.aliases.begin(), theirs.aliases.end(), mine.model) !=
                            theirs.aliases.end();
      if (theirs.name != mine.model && !by_alias) continue;
      findings_.warning(node->place, "profiles." + mine.name + ".model",
                        "clients who ask for " + quoted(mine.model) + " get the profile " +
                            quoted(theirs.name) + ", which is called so",
                        "rename one of them");
    }
  }

  const YamlNode& root_;
  const Config& config_;
  Findings& findings_;
};

void check_rule_names(const YamlNode& list, const Config& config, Findings& findings) {
  static const std::vector<std::string_view> taken{"default", "named", "pinned", "long_context"};
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const YamlNode* node = scalar_child(&list.items[i], "name");
    if (node == nullptr) continue;
    const std::string path = "routing.rules[" + std::to_string(i) + "].name";
    if (auto fault = check_name(node->text)) {
      findings.error(node->place, path, std::move(fault->message), std::move(fault->suggestion));
    } else if (std::find(taken.begin(), taken.end(), node->text) != taken.end()) {
      findings.error(node->place, path, quoted(node->text) + " is a reason of flashgate's own",
                     "call the rule something else");
    }
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      if (config.routes.rules[earlier].name != node->text) continue;
      findings.error(node->place, path, "two rules are called " + quoted(node->text),
                     "logs and metrics tell rules apart by their names");
      break;
    }
  }
}

/// REQUIRES: the types of all rules are right, so that an empty field means an absent one.
void check_reachable(const YamlNode& list, const Config& config, Findings& findings) {
  constexpr std::size_t compared_max = 500;  // pairs grow with the square
  const auto& rules = config.routes.rules;
  for (std::size_t later = 1; later < std::min(rules.size(), compared_max); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (!covers(rules[earlier].when, rules[later].when)) continue;
      findings.error(list.items[later].place, "routing.rules[" + std::to_string(later) + "]",
                     "this rule is never reached: " + quoted(rules[earlier].name) + " on line " +
                         std::to_string(list.items[earlier].place.line) +
                         " matches everything it matches",
                     "put it above that rule, or remove it");
      break;
    }
  }
}

void check_rules(const YamlNode& root, const Config& config, Findings& findings,
                 bool types_are_right) {
  const YamlNode* list = child(child(&root, "routing"), "rules");
  if (list == nullptr || list->kind != YamlNode::Kind::list) return;
  check_rule_names(*list, config, findings);
  if (types_are_right) check_reachable(*list, config, findings);
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode* when = child(&list->items[i], "when");
    for (const std::string_view key : {"key", "tag"}) {
      if (child(when, key) == nullptr) continue;
      findings.warning(place_of(when, key),
                       "routing.rules[" + std::to_string(i) + "].when." + std::string(key),
                       "this rule matches nothing yet: client keys are not available in this "
                       "version");
    }
  }
}

void check_fallback(const YamlNode& root, const Config& config, Findings& findings,
                    bool types_are_right) {
  const YamlNode* routing = child(&root, "routing");
  const bool incomplete =
      config.routes.fallback.size() < entries(child(routing, "fallback")).size();
  if (incomplete && !types_are_right) return;  // a target was mistyped: one error is enough
  const RouteTable& routes = config.routes;
  const bool helps = std::any_of(routes.fallback.begin(), routes.fallback.end(),
                                 [&](std::size_t i) { return i != routes.default_profile; });
  if (!routes.fallback.empty() && !helps) {
    findings.warning(place_of(routing, "fallback"), "routing.fallback",
                     "'fallback' names only the default profile: there is nowhere to go");
  }
  if (routes.long_context_threshold <= 0) return;
  if (!helps) {
    findings.error(place_of(routing, "long_context_threshold"), "routing.long_context_threshold",
                   "over the threshold there is nowhere to go: 'fallback' names no other profile",
                   "add fallback: NAME");
    return;
  }
  const bool fits = std::any_of(routes.fallback.begin(), routes.fallback.end(), [&](std::size_t i) {
    const std::int64_t window = routes.profiles[i].context_length;
    return window == 0 || window > routes.long_context_threshold;
  });
  if (!fits) {
    findings.error(place_of(routing, "long_context_threshold"), "routing.long_context_threshold",
                   "no fallback has a window over the threshold",
                   "raise its context_length, or lower the threshold");
  }
}

bool is_address_block(std::string_view text) {
  const auto slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  const bool v6 = address.find(':') != std::string_view::npos;
  const std::string host = v6 ? '[' + std::string(address) + "]:1" : std::string(address) + ":1";
  const bool digits = address.find_first_not_of("0123456789.") == std::string_view::npos;
  if (address.empty() || !parse_host_port(host) || (!v6 && !digits)) return false;
  if (slash == std::string_view::npos) return true;
  const auto bits = parse_count(text.substr(slash + 1));
  return bits && *bits <= (v6 ? 128 : 32);
}

void check_exposure(const YamlNode& root, const Config& config, Findings& findings) {
  const auto& listen = config.listen;
  const auto& admin = config.admin;
  if (!is_loopback_address(listen.host) && !config.auth_none) {
    findings.error(place_of(&root, "listen"), "listen",
                   "the gateway would serve anyone who reaches " + listen.host,
                   "listen on 127.0.0.1, or write auth: none at the top level if that is meant");
  }
  if (!is_loopback_address(admin.host) && admin.token.empty()) {
    findings.error(place_of(&root, "admin"), "admin",
                   "the admin listener beyond loopback needs a token",
                   "write admin: {address: …, token_env: NAME_OF_A_VARIABLE}");
  }
  if (listen.port != 0 && listen.port == admin.port && listen.host == admin.host) {
    findings.error(place_of(&root, "admin"), "admin", "'admin' and 'listen' are the same address",
                   "give one of them another port");
  }
  for (const YamlNode* entry : entries(child(&root, "trusted_proxies"))) {
    if (is_address_block(entry->text)) continue;
    findings.error(entry->place, "trusted_proxies",
                   quoted(entry->text) + " is not an address or a CIDR block",
                   "write it like 10.0.0.0/8");
  }
}

}  // namespace

void cross_check(const YamlNode& root, const Config& config, Findings& findings) {
  const bool types_are_right = !findings.has_errors();
  NameCheck(root, config, findings).run();
  check_rules(root, config, findings, types_are_right);
  check_fallback(root, config, findings, types_are_right);
  check_exposure(root, config, findings);
}

}  // namespace flashgate

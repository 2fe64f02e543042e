#include "config/build.hpp"

#include <algorithm>

#include "config/read_values.hpp"

namespace flashgate {
namespace {

void read_address(const YamlNode* node, const std::optional<std::string>& flag,
                  const std::string& path, std::string& host, std::uint16_t& port,
                  Findings& findings) {
  if (flag) {
    const auto value = parse_host_port(*flag);
    if (!value) {
      findings.error({}, path, "--" + path + ": " + value.error().message);
      return;
    }
    host = value->host;
    port = value->port;
    return;
  }
  if (node != nullptr && node->kind == YamlNode::Kind::map) node = scalar_child(node, "address");
  if (node == nullptr || node->kind != YamlNode::Kind::scalar) return;
  if (const auto value = parse_host_port(node->text)) {
    host = value->host;
    port = value->port;
  }
}

void build_listen(const YamlNode& root, const BuildContext& context, ListenConfig& out) {
  const YamlNode* node = child(&root, "listen");
  read_address(node, context.overrides.listen, "listen", out.host, out.port, context.findings);
  const YamlNode* tls = child(node, "tls");
  const auto read = [&](std::string_view key, std::string& file) {
    if (!read_text(tls, key, file)) return;
    file = resolve_path(file, context);
    fetch_file(file, tls->find(key)->value.place, "listen.tls." + std::string(key), context);
  };
  read("cert", out.tls_cert);
  read("key", out.tls_key);
}

void build_admin(const YamlNode& root, const BuildContext& context, AdminConfig& out) {
  const YamlNode* node = child(&root, "admin");
  read_address(node, context.overrides.admin, "admin", out.host, out.port, context.findings);
  read_flag(node, "metrics_public", out.metrics_public);
  const YamlNode* variable = scalar_child(node, "token_env");
  if (variable == nullptr || variable->text.empty()) return;
  const auto value = context.environment(variable->text);
  if (value && !value->empty()) {
    out.token = Secret(*value);
  } else {
    context.findings.error(variable->place, "admin.token_env",
                           "the variable " + variable->text + (value ? " is empty" : " is not set"),
                           "export " + variable->text + "=…");
  }
}

void build_limits(const YamlNode& root, LimitsConfig& out) {
  const YamlNode* map = child(&root, "limits");
  read_size(map, "body", out.body);
  read_size(map, "headers", out.headers);
  read_count(map, "header_count", out.header_count);
  read_count(map, "connections", out.connections);
  read_duration(map, "client_stall", out.client_stall);
  read_duration(map, "no_data", out.no_data);
  read_size(map, "stream_buffer", out.stream_buffer);
}

std::size_t default_profile(const YamlNode& root, const std::vector<std::string>& names,
                            Findings& findings) {
  if (child(&root, "default") == nullptr) {
    const bool several = std::any_of(names.begin(), names.end(),
                                     [&](const auto& name) { return name != names.front(); });
    if (several) {
      findings.error({1, 1}, "default", "'default' is missing: which profile serves the rest?",
                     "add default: " + names.front());
    }
    return 0;
  }
  const auto targets = read_targets(&root, "default", "default", names, findings);
  return targets.empty() ? 0 : targets.front();
}

RouteProfile route_profile(const ProfileConfig& profile) {
  RouteProfile out;
  out.name = profile.name;
  out.model = profile.model;
  out.aliases = profile.aliases;
  out.tokenizer = profile.tokenizer;
  out.context_length = profile.context_length;
  out.max_tokens = profile.max_tokens;
  out.endpoints = profile.endpoints;
  out.capabilities = profile.capabilities;
  return out;
}

void build_routing(const YamlNode& root, Config& config, Findings& findings) {
  std::vector<std::string> names;
  for (const ProfileConfig& profile : config.profiles) {
    names.push_back(profile.name);
    config.routes.profiles.push_back(route_profile(profile));
  }
  config.routes.default_profile = default_profile(root, names, findings);
  const YamlNode* routing = child(&root, "routing");
  read_count(routing, "long_context_threshold", config.routes.long_context_threshold);
  config.routes.fallback = read_targets(routing, "fallback", "routing.fallback", names, findings);
  config.routes.rules = build_rules(routing, names, findings);
  std::string word;
  if (read_text(routing, "unknown_model", word)) {
    config.routes.unknown_model_to_default = word == "default";
  }
  const YamlNode* retry = child(routing, "retry");
  read_count(retry, "attempts", config.retry.attempts);
  read_share(retry, "budget", config.retry.budget);
  if (read_duration(retry, "backoff", config.retry.backoff)) {
    config.retry.backoff_max = std::max(config.retry.backoff_max, config.retry.backoff);
  }
}

std::string default_data_dir(const BuildContext& context) {
  if (const auto base = context.environment("XDG_DATA_HOME"); base && !base->empty()) {
    return *base + "/flashgate";
  }
  const auto home = context.environment("HOME");
  return home && !home->empty() ? *home + "/.local/share/flashgate" : "/var/lib/flashgate";
}

}  // namespace

std::string resolve_path(const std::string& path, const BuildContext& context) {
  if (path.substr(0, 2) == "~/") {
    const auto home = context.environment("HOME");
    return home && !home->empty() ? *home + path.substr(1) : path;
  }
  if (path.empty() || path.front() == '/') return path;
  const auto slash = context.file_name.rfind('/');
  return slash == std::string::npos ? path : context.file_name.substr(0, slash + 1) + path;
}

std::optional<std::string> fetch_file(const std::string& path, Place place, const std::string& at,
                                      const BuildContext& context) {
  auto bytes = context.read_file(path);
  if (bytes) return std::move(*bytes);
  context.findings.error(place, at, "the file " + quoted(path) + " can't be read",
                         bytes.error().message);
  return std::nullopt;
}

Config build_config(const YamlNode& root, const BuildContext& context) {
  Config config;
  config.file = context.file_name;
  if (read_count(&root, "version", config.version) && config.version > config_version) {
    context.findings.error(root.find("version")->value.place, "version",
                           "version " + std::to_string(config.version) +
                               " of the file is newer than this flashgate, which knows version " +
                               std::to_string(config_version),
                           "upgrade flashgate");
  }
  build_listen(root, context, config.listen);
  build_admin(root, context, config.admin);
  std::string word;
  config.auth_none = read_text(&root, "auth", word) && word == "none";
  config.data_dir = default_data_dir(context);
  if (context.overrides.data_dir) {
    config.data_dir = *context.overrides.data_dir;
  } else if (read_text(&root, "data_dir", word)) {
    config.data_dir = resolve_path(word, context);
  }
  if (const YamlNode* profiles = child(&root, "profiles")) {
    for (const YamlMember& member : profiles->members) {
      config.profiles.push_back(build_profile(member, context));
    }
  }
  build_routing(root, config, context.findings);
  build_limits(root, config.limits);
  const YamlNode* heartbeat = child(&root, "heartbeat");
  read_duration(heartbeat, "interval", config.heartbeat.interval);
  read_flag(heartbeat, "before_first_token", config.heartbeat.before_first_token);
  const YamlNode* log = child(&root, "log");
  read_text(log, "path", config.log.path);
  read_text(log, "level", config.log.level);
  config.trusted_proxies = read_texts(&root, "trusted_proxies");
  return config;
}

}  // namespace flashgate

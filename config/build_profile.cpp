#include <algorithm>

#include "config/build.hpp"
#include "config/check_value.hpp"
#include "config/read_values.hpp"

namespace flashgate {
namespace {

/// One key, as it may travel in a header field: no spaces, no control characters.
bool is_sendable(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
}

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  const auto first = std::find_if_not(text.begin(), text.end(), is_space);
  text.erase(text.begin(), first);
  return text;
}

class ProfileBuilder {
 public:
  ProfileBuilder(const YamlMember& member, const BuildContext& context)
      : map_(&member.value), place_(member.place), context_(context) {
    path_ = "profiles." + member.key;
    profile_.name = member.key;
  }

  ProfileConfig build() {
    read_addresses();
    read_text(map_, "model", profile_.model);
    profile_.aliases = read_texts(map_, "aliases");
    profile_.headers = read_text_map(map_, "headers");
    profile_.query = read_text_map(map_, "query");
    profile_.endpoints = read_texts(map_, "endpoints");
    profile_.capabilities = read_texts(map_, "capabilities");
    std::string word;
    if (read_text(map_, "tokenizer", word)) {
      profile_.tokenizer = parse_tokenizer_family(word).value_or(TokenizerFamily::o200k);
    }
    read_auth();
    read_key();
    refuse_own_headers();
    read_tls();
    read_proxy();
    read_timeouts();
    read_protection();
    read_sizes();
    read_price();
    return std::move(profile_);
  }

 private:
  std::string at(std::string_view key) const { return path_ + '.' + std::string(key); }
  Place place(std::string_view key) const { return place_of(map_, key); }
  Findings& findings() { return context_.findings; }

  bool everywhere(bool (*predicate)(std::string_view)) const {
    return std::all_of(profile_.replicas.begin(), profile_.replicas.end(),
                       [&](const Url& url) { return predicate(url.host); });
  }

  void read_addresses() {
    const bool one = child(map_, "base_url") != nullptr;
    const bool several = child(map_, "replicas") != nullptr;
    if (!one && !several && map_->kind == YamlNode::Kind::map) {
      findings().error(place_, at("base_url"), "'base_url' is missing here",
                       "add base_url: http://127.0.0.1:8000/v1, or replicas: […]");
    }
    if (one && several) {
      findings().error(place("replicas"), at("replicas"),
                       "'base_url' and 'replicas' say the same thing", "keep one of them");
    }
    for (const YamlNode* entry : entries(child(map_, one ? "base_url" : "replicas"))) {
      const auto url = parse_url(entry->text);
      if (!url) continue;
      auto& known = profile_.replicas;
      if (std::find(known.begin(), known.end(), *url) != known.end()) {
        findings().error(entry->place, at("replicas"), "this address is listed twice",
                         "remove one of them");
      } else {
        known.push_back(*url);
      }
    }
  }

  void read_auth() {
    const YamlNode* node = child(map_, "auth");
    if (node == nullptr) return;
    if (node->text == "api-key") profile_.auth = AuthStyle::api_key;
    if (node->text == "none") profile_.auth = AuthStyle::none;
    if (node->kind != YamlNode::Kind::map) return;
    if (!read_text(node, "header", profile_.auth_header)) return;
    profile_.auth = AuthStyle::header;
    if (!is_field_name(profile_.auth_header)) {
      findings().error(node->find("header")->value.place, at("auth.header"),
                       quoted(profile_.auth_header) + " is not the name of a header");
    }
  }

  void read_key() {
    const bool by_variable = child(map_, "api_key_env") != nullptr;
    const bool by_file = child(map_, "api_key_file") != nullptr;
    if (by_variable && by_file) {
      findings().error(place("api_key_file"), at("api_key_file"),
                       "'api_key_env' and 'api_key_file' say the same thing", "keep one of them");
    }
    const std::string_view source = by_variable ? "api_key_env" : "api_key_file";
    if ((by_variable || by_file) && profile_.auth == AuthStyle::none) {
      findings().error(place(source), at(source), "'auth: none' sends no key",
                       "remove " + quoted(source) + " or 'auth'");
      return;
    }
    if (by_variable) {
      read_key_variable();
    } else if (by_file) {
      read_key_file();
    } else {
      no_key();
    }
    if (!profile_.api_key.empty()) check_clear_text(source);
  }

  void no_key() {
    if (profile_.auth == AuthStyle::api_key || profile_.auth == AuthStyle::header) {
      findings().error(place("auth"), at("auth"), "this way of signing needs a key",
                       "add api_key_env: NAME_OF_A_VARIABLE");
    }
  }

  void read_key_variable() {
    const YamlNode* node = scalar_child(map_, "api_key_env");
    if (node == nullptr || check_value(Key{.type = ValueType::variable}, *node)) return;
    const std::string& variable = node->text;
    const auto value = context_.environment(variable);
    const std::string key = trimmed(value.value_or(""));
    if (!key.empty()) return take_key(key, "env " + variable, *node, at("api_key_env"));
    const std::string what = "the variable " + variable + (value ? " is empty" : " is not set");
    const bool only_local = !profile_.replicas.empty() && everywhere(is_loopback_address);
    if (only_local) {
      findings().warning(node->place, at("api_key_env"),
                         what + ": requests go to this backend without a key",
                         "export " + variable + "=… if the backend asks for one");
    } else {
      findings().error(
          node->place, at("api_key_env"), what,
          "export " + variable + "=…, or remove 'api_key_env' if the backend asks " + "for no key");
    }
  }

  void read_key_file() {
    const YamlNode* node = scalar_child(map_, "api_key_file");
    if (node == nullptr || node->text.empty()) return;
    const std::string file = resolve_path(node->text, context_);
    const auto bytes = fetch_file(file, node->place, at("api_key_file"), context_);
    if (!bytes) return;
    const std::string key = trimmed(*bytes);
    if (key.empty()) {
      findings().error(node->place, at("api_key_file"), "the file " + quoted(file) + " is empty");
    } else {
      take_key(key, "file " + file, *node, at("api_key_file"));
    }
  }

  void take_key(const std::string& key, std::string source, const YamlNode& node,
                const std::string& path) {
    if (!is_sendable(key) || key.size() > 8192 || key.find("${") != std::string::npos) {
      findings().error(node.place, path, "what is there cannot be sent as a key",
                       "a key is one line of printable ASCII without spaces");
      return;
    }
    profile_.api_key = Secret(key);
    profile_.api_key_source = std::move(source);
  }

  void check_clear_text(std::string_view source) {
    for (const Url& url : profile_.replicas) {
      const bool outside =
          !url.tls && !is_local_address(url.host) && url.host.find('.') != std::string::npos;
      if (!outside) continue;
      findings().warning(place(source), at(source),
                         "the key travels unencrypted to " + quoted(url.host),
                         "write https:// if the backend speaks it");
      return;
    }
  }

  /// Fields that we write ourselves; a second one would make the request ambiguous.
  void refuse_own_headers() {
    static const std::vector<std::string_view> ours{"host",
                                                    "content-length",
                                                    "transfer-encoding",
                                                    "connection",
                                                    "keep-alive",
                                                    "te",
                                                    "trailer",
                                                    "upgrade",
                                                    "expect",
                                                    "proxy-authorization",
                                                    "proxy-connection"};
    const YamlNode* node = child(map_, "headers");
    if (node == nullptr) return;
    for (const YamlMember& member : node->members) {
      const std::string name = lower_case(member.key);
      const std::string where = at("headers") + '.' + member.key;
      if (std::find(ours.begin(), ours.end(), name) != ours.end()) {
        findings().error(member.place, where, quoted(member.key) + " is set by flashgate itself");
      }
      const bool signs = (name == "authorization" && profile_.auth == AuthStyle::bearer) ||
                         (name == "api-key" && profile_.auth == AuthStyle::api_key) ||
                         (name == lower_case(profile_.auth_header));
      if (signs && (child(map_, "api_key_env") || child(map_, "api_key_file"))) {
        findings().error(member.place, where, quoted(member.key) + " already carries the key");
      } else if (name == "authorization") {
        findings().error(member.place, where, "a credential is written in the file",
                         "use api_key_env: NAME_OF_A_VARIABLE");
      }
    }
  }

  void read_tls() {
    const YamlNode* tls = child(map_, "tls");
    if (tls == nullptr) return;
    std::string file;
    if (read_text(tls, "ca_file", file)) {
      profile_.tls.ca_file = resolve_path(file, context_);
      fetch_file(profile_.tls.ca_file, tls->find("ca_file")->value.place, at("tls.ca_file"),
                 context_);
    }
    read_flag(tls, "insecure", profile_.tls.insecure);
    const bool any_tls = std::any_of(profile_.replicas.begin(), profile_.replicas.end(),
                                     [](const Url& url) { return url.tls; });
    if (!any_tls && !profile_.replicas.empty()) {
      findings().error(place("tls"), at("tls"), "no address of this profile is https://",
                       "remove 'tls', or write https://");
    } else if (profile_.tls.insecure) {
      findings().warning(place_of(tls, "insecure"), at("tls.insecure"),
                         "certificates are not verified: anyone in between can read the key");
    }
    if (profile_.tls.insecure && !profile_.tls.ca_file.empty()) {
      findings().error(place_of(tls, "ca_file"), at("tls.ca_file"),
                       "'ca_file' does nothing with 'insecure: true'", "remove one of them");
    }
  }

  void read_proxy() {
    const YamlNode* proxy = child(map_, "proxy");
    if (proxy == nullptr) return;
    profile_.proxy.no_proxy = read_texts(proxy, "no_proxy");
    const YamlNode* node = scalar_child(proxy, "url_env");
    if (node == nullptr || check_value(Key{.type = ValueType::variable}, *node)) return;
    std::string value = trimmed(context_.environment(node->text).value_or(""));
    if (value.empty()) {
      findings().warning(node->place, at("proxy.url_env"),
                         "the variable " + node->text + " is not set: connections go direct");
      return;
    }
    const auto scheme = value.find("://");
    const auto user = value.rfind('@');
    if (scheme != std::string::npos && user != std::string::npos && user > scheme) {
      profile_.proxy.credentials = Secret(value.substr(scheme + 3, user - scheme - 3));
      value.erase(scheme + 3, user - scheme - 2);
    }
    const auto url = parse_url(value);
    if (url && !url->tls && url->path.empty()) {
      profile_.proxy.url = *url;
    } else {
      findings().error(node->place, at("proxy.url_env"),
                       "the variable " + node->text + " does not hold a proxy's URL",
                       "write http://[user:password@]host:port into it");
    }
  }

  void read_timeouts() {
    const YamlNode* named = child(map_, "timeouts");
    Timeouts& t = profile_.timeouts;
    Duration both{};
    const bool has_both = read_duration(map_, "timeout", both);
    if (has_both) t.first_byte = t.total_unary = both;
    const bool has_connect = read_duration(named, "connect", t.connect);
    const bool has_first = read_duration(named, "first_byte", t.first_byte);
    const bool has_idle = read_duration(named, "idle", t.idle);
    const bool has_total = read_duration(named, "total", t.total);
    if (has_total) t.total_unary = t.total;
    if (!has_total && !has_both) t.total_unary = std::max(t.total_unary, t.first_byte);
    if (has_both && has_first && has_total) {
      findings().warning(place("timeout"), at("timeout"),
                         "'timeout' does nothing: 'first_byte' and 'total' are both set",
                         "remove it");
    }
    if (has_total) {
      const auto within = [&](bool given, std::string_view key, Duration& value) {
        contradiction(given, key, value, named, t.total);
      };
      within(has_connect, "connect", t.connect);
      within(has_first, "first_byte", t.first_byte);
      within(has_idle, "idle", t.idle);
    }
    if (has_connect && has_both && !has_total && t.connect > both) {
      findings().error(place_of(named, "connect"), at("timeouts.connect"),
                       "'connect' is longer than 'timeout' (" + write_duration(both) + ")",
                       "it must be shorter");
    }
    t.connect = std::min(t.connect, t.total_unary);
  }

  /// A part can't take longer than the whole; a default that would is cut instead.
  void contradiction(bool given, std::string_view key, Duration& value, const YamlNode* named,
                     Duration total) {
    if (value <= total) return;
    if (given) {
      findings().error(place_of(named, key), at("timeouts." + std::string(key)),
                       quoted(key) + " is longer than 'total' (" + write_duration(total) + ")",
                       "it must be shorter");
    }
    value = total;
  }

  void read_protection() {
    read_count(map_, "max_concurrency", profile_.max_concurrency);
    const YamlNode* queue = child(map_, "queue");
    read_count(queue, "max_entries", profile_.queue.entries_max);
    read_size(queue, "max_bytes", profile_.queue.bytes_max);
    if (read_duration(queue, "max_wait", profile_.queue.wait_max) &&
        profile_.queue.wait_max > profile_.timeouts.total) {
      findings().error(
          place_of(queue, "max_wait"), at("queue.max_wait"),
          "'max_wait' is longer than 'total' (" + write_duration(profile_.timeouts.total) + ")",
          "it must be shorter");
    }
    const YamlNode* limit = child(map_, "rate_limit");
    RateLimitPolicy& rate = profile_.rate_limit;
    read_rate(limit, "requests", rate.requests_per_minute);
    read_rate(limit, "tokens", rate.tokens_per_minute);
    std::int64_t burst = 0;
    if (read_count(limit, "burst", burst)) rate.burst_requests = static_cast<double>(burst);
    if (burst > 0 && rate.requests_per_minute <= 0) {
      findings().error(place_of(limit, "burst"), at("rate_limit.burst"),
                       "'burst' does nothing without 'requests'", "add requests: 600/min");
    }
    read_breaker();
  }

  void read_breaker() {
    const YamlNode* breaker = child(map_, "breaker");
    BreakerPolicy& policy = profile_.breaker;
    read_count(breaker, "consecutive_failures", policy.consecutive_failures);
    read_share(breaker, "failure_ratio", policy.failure_ratio);
    read_count(breaker, "min_samples", policy.min_samples);
    if (read_duration(breaker, "cooldown", policy.cooldown)) {
      policy.cooldown_max = std::max(policy.cooldown_max, policy.cooldown);
    }
  }

  void read_sizes() {
    read_count(map_, "context_length", profile_.context_length);
    read_count(map_, "max_tokens", profile_.max_tokens);
    if (profile_.context_length > 0 && profile_.max_tokens >= profile_.context_length) {
      findings().error(place("max_tokens"), at("max_tokens"),
                       "'max_tokens' leaves no room for input in 'context_length' (" +
                           std::to_string(profile_.context_length) + ")",
                       "it must be smaller");
    }
  }

  void read_price() {
    const YamlNode* price = child(map_, "price");
    if (price == nullptr) return;
    profile_.price.set = true;
    read_number(price, "input", profile_.price.input);
    read_number(price, "output", profile_.price.output);
    profile_.price.cached = profile_.price.input;
    read_number(price, "cached", profile_.price.cached);
    if (!read_text(price, "currency", profile_.price.currency)) return;
    const std::string& currency = profile_.price.currency;
    const bool fine =
        currency.size() == 3 &&
        std::all_of(currency.begin(), currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!fine) {
      findings().error(price->find("currency")->value.place, at("price.currency"),
                       quoted(currency) + " is not a currency", "write three letters, like USD");
    }
  }

  const YamlNode* map_;
  Place place_;
  const BuildContext& context_;
  std::string path_{};
  ProfileConfig profile_{};
};

}  // namespace

ProfileConfig build_profile(const YamlMember& member, const BuildContext& context) {
  return ProfileBuilder(member, context).build();
}

}  // namespace flashgate

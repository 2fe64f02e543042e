#pragma once
// What the configuration says about routing, as indices and numbers: profiles, default, threshold,
// fallback, rules. An immutable value once built; any thread may read it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_facts.hpp"
#include "routing/rules.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

struct RouteProfile {
  std::string name{};
  std::string model{};  // sent to the backend
  std::vector<std::string> aliases{};
  TokenizerFamily tokenizer = TokenizerFamily::o200k;
  std::int64_t context_length = 0;          // 0: unknown
  std::int64_t max_tokens = 0;              // cap; 0: none
  std::vector<std::string> endpoints{};     // empty: all; "chat", "audio", "/v1/audio/speech"...
  std::vector<std::string> capabilities{};  // empty: all; tools, vision, json_schema
};

struct RouteTable {
  std::vector<RouteProfile> profiles{};
  std::size_t default_profile = 0;
  std::int64_t long_context_threshold = 0;  // 0: none
  std::vector<std::size_t> fallback{};
  std::vector<Rule> rules{};
  bool unknown_model_to_default = false;
};

inline constexpr std::string_view auto_model = "auto";

/// Only these move between different models: another model's vectors corrupt an index.
bool may_change_model(ApiKind api);
/// Bits of the tokenizer families in use, for FactsOptions::families.
unsigned token_families(const RouteTable& table);
/// Profiles that `model` means: the one of that name, else those with that alias, else those whose
/// backend model it is.
std::vector<std::size_t> profiles_called(const RouteTable& table, std::string_view model);
/// Every name a client may use, `auto` first, without duplicates. Empty `allowed`: all profiles.
std::vector<std::string> visible_models(const RouteTable& table,
                                        const std::vector<std::string>& allowed);
bool is_allowed(const RouteProfile& profile, const std::vector<std::string>& allowed);
/// `path` with or without query.
bool offers_endpoint(const RouteProfile& profile, ApiKind api, std::string_view path);
/// After a context_length fault of `from`: may `to` hold more? Unknown windows may.
bool may_have_larger_window(const RouteProfile& from, const RouteProfile& to);

}  // namespace flashgate

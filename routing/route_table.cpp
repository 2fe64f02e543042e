#include "routing/route_table.hpp"

#include <algorithm>
#include <unordered_set>

namespace flashgate {
namespace {

/// The short name that `endpoints` lists use for an API.
std::string_view short_name(ApiKind api) {
  switch (api) {
    case ApiKind::chat:
      return "chat";
    case ApiKind::completions:
      return "completions";
    case ApiKind::embeddings:
      return "embeddings";
    case ApiKind::responses:
      return "responses";
    case ApiKind::messages:
    case ApiKind::count_tokens:
      return "messages";
    case ApiKind::other:
      return {};
  }
  return {};
}

std::string_view without_prefix(std::string_view path) {
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  if (path.substr(0, 3) == "v1/") path.remove_prefix(3);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path;
}

/// "audio" and "audio/*" hold "audio/speech"; "chat/completions" holds itself.
bool path_under(std::string_view entry, std::string_view path) {
  if (entry.size() >= 2 && entry.substr(entry.size() - 2) == "/*") entry.remove_suffix(2);
  if (entry.empty() || path.substr(0, entry.size()) != entry) return false;
  return path.size() == entry.size() || path[entry.size()] == '/';
}

}  // namespace

bool may_change_model(ApiKind api) {
  return api == ApiKind::chat || api == ApiKind::completions || api == ApiKind::responses ||
         api == ApiKind::messages;
}

unsigned token_families(const RouteTable& table) {
  unsigned families = 0;
  for (const RouteProfile& profile : table.profiles) {
    families |= 1u << static_cast<unsigned>(profile.tokenizer);
  }
  return families == 0 ? 1u : families;
}

std::vector<std::size_t> profiles_called(const RouteTable& table, std::string_view model) {
  std::vector<std::size_t> by_name;
  std::vector<std::size_t> by_alias;
  std::vector<std::size_t> by_model;
  for (std::size_t i = 0; i < table.profiles.size(); ++i) {
    const RouteProfile& profile = table.profiles[i];
    if (profile.name == model) by_name.push_back(i);
    if (std::find(profile.aliases.begin(), profile.aliases.end(), model) != profile.aliases.end()) {
      by_alias.push_back(i);
    }
    if (profile.model == model) by_model.push_back(i);
  }
  if (!by_name.empty()) return by_name;
  return by_alias.empty() ? by_model : by_alias;
}

bool is_allowed(const RouteProfile& profile, const std::vector<std::string>& allowed) {
  return allowed.empty() ||
         std::find(allowed.begin(), allowed.end(), profile.name) != allowed.end();
}

std::vector<std::string> visible_models(const RouteTable& table,
                                        const std::vector<std::string>& allowed) {
  std::vector<std::string> out{std::string(auto_model)};
  std::unordered_set<std::string> seen{out.front()};
  const auto add = [&](const std::string& model) {
    if (!model.empty() && seen.insert(model).second) out.push_back(model);
  };
  for (const RouteProfile& profile : table.profiles) {
    if (!is_allowed(profile, allowed)) continue;
    add(profile.name);
    add(profile.model);
    for (const std::string& alias : profile.aliases) add(alias);
  }
  return out;
}

bool offers_endpoint(const RouteProfile& profile, ApiKind api, std::string_view path) {
  if (profile.endpoints.empty()) return true;
  const std::string_view wanted = without_prefix(path.substr(0, path.find('?')));
  return std::any_of(
      profile.endpoints.begin(), profile.endpoints.end(), [&](const std::string& raw) {
        const std::string_view entry = without_prefix(raw);
        return (!entry.empty() && entry == short_name(api)) || path_under(entry, wanted);
      });
}

bool may_have_larger_window(const RouteProfile& from, const RouteProfile& to) {
  if (from.context_length <= 0 || to.context_length <= 0) return from.model != to.model;
  return to.context_length > from.context_length;
}

}  // namespace flashgate

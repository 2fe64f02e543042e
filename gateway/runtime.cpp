#include "gateway/runtime.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>

#include "protocol/http1_head.hpp"

namespace flashgate {
namespace {

std::string base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

/// User and password of a proxy URL come escaped (RFC 3986 §3.2.1).
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr ==
                            text.data() + i + 3;
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 2;
  }
  return out;
}

std::string credential_line(const ProfileConfig& profile) {
  if (profile.api_key.empty()) return {};
  const std::string key(profile.api_key.reveal());
  switch (profile.auth) {
    case AuthStyle::bearer:
      return "Authorization: Bearer " + key + "\r\n";
    case AuthStyle::api_key:
      return "api-key: " + key + "\r\n";
    case AuthStyle::header:
      return profile.auth_header + ": " + key + "\r\n";
    case AuthStyle::none:
      break;
  }
  return {};
}

bool matches_no_proxy(const std::string& host, const std::vector<std::string>& no_proxy) {
  return std::any_of(no_proxy.begin(), no_proxy.end(), [&](const std::string& entry) {
    if (entry == "*" || iequals(entry, host)) return true;
    const std::string suffix = entry.starts_with('.') ? entry : "." + entry;
    return host.size() > suffix.size() &&
           iequals(std::string_view(host).substr(host.size() - suffix.size()), suffix);
  });
}

std::string joined_query(const ProfileConfig& profile) {
  std::string query;
  for (const auto& [name, value] : profile.query) {
    if (!query.empty()) query += '&';
    query += name + "=" + value;
  }
  return query;
}

}  // namespace

Backend::Backend(const ProfileConfig& profile, const Url& address)
    : url(address), breaker(profile.breaker) {
  head = "Host: " + url.authority() + "\r\n" + credential_line(profile);
  for (const auto& [name, value] : profile.headers) head += name + ": " + value + "\r\n";
  query = joined_query(profile);
  dial.host = url.host;
  dial.port = url.port;
  dial.insecure = profile.tls.insecure;
  const bool proxied = profile.proxy.url && !is_local_address(url.host) &&
                       !matches_no_proxy(url.host, profile.proxy.no_proxy);
  if (!proxied) return;
  dial.proxy_host = profile.proxy.url->host;
  dial.proxy_port = profile.proxy.url->port;
  if (!profile.proxy.credentials.empty())
    dial.proxy_authorization = "Basic " + base64(unescaped(profile.proxy.credentials.reveal()));
}

ProfileState::ProfileState(const ProfileConfig& profile, TimePoint now)
    : config(profile),
      gate(profile.max_concurrency, profile.queue),
      limiter(profile.rate_limit, now) {
  for (const Url& url : profile.replicas)
    backends.push_back(std::make_unique<Backend>(profile, url));
}

void ProfileState::learn(double estimated, double actual) {
  const std::lock_guard lock(correction_mutex_);
  correction_.observe(estimated, actual);
  correction_factor_.store(correction_.factor(), std::memory_order_relaxed);
}

Runtime::Runtime(Config checked, CallLog& call_log, TimePoint now)
    : config(std::move(checked)), log(call_log), retry_budget(config.retry.budget) {
  families = token_families(config.routes);
  for (const ProfileConfig& profile : config.profiles) {
    profiles.push_back(std::make_unique<ProfileState>(profile, now));
    for (const std::unique_ptr<Backend>& backend : profiles.back()->backends) {
      backend->index = backends.size();
      backends.push_back(backend.get());
    }
  }
}

Result<std::unique_ptr<Runtime>> make_runtime(Config checked, CallLog& call_log, TimePoint now) {
  auto runtime = std::make_unique<Runtime>(std::move(checked), call_log, now);
  for (const std::unique_ptr<ProfileState>& profile : runtime->profiles) {
    const bool any_tls = std::any_of(profile->backends.begin(), profile->backends.end(),
                                     [](const auto& backend) { return backend->url.tls; });
    if (!any_tls) continue;
    const Result<TlsContext> context =
        make_client_context(profile->config.tls.ca_file, profile->config.tls.insecure);
    if (context.has_error())
      return Error{context.error().code,
                   "profile '" + profile->config.name + "': " + context.error().message};
    for (const std::unique_ptr<Backend>& backend : profile->backends)
      if (backend->url.tls) backend->dial.tls = context.value();
  }
  const ListenConfig& listen = runtime->config.listen;
  if (!listen.tls_cert.empty()) {
    const Result<TlsContext> context = make_server_context(listen.tls_cert, listen.tls_key);
    if (context.has_error()) return context.error();
    runtime->server_tls = context.value();
  }
  return runtime;
}

}  // namespace flashgate

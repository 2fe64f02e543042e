#include "control/status.hpp"

#include <nlohmann/json.hpp>

#include "gateway/call_log.hpp"
#include "gateway/runtime.hpp"

namespace flashgate {

std::string status_json(const Runtime& runtime, const Metrics& metrics) {
  const TimePoint now = std::chrono::steady_clock::now();
  const MetricValues values = metrics.sum();
  nlohmann::json out = {{"ready", runtime.ready && !runtime.draining},
                        {"draining", runtime.draining.load()},
                        {"connections", runtime.connections.load()},
                        {"log_healthy", runtime.log.healthy()},
                        {"profiles", nlohmann::json::array()}};
  for (std::size_t i = 0; i < runtime.profiles.size(); ++i) {
    const ProfileState& profile = *runtime.profiles[i];
    nlohmann::json backends = nlohmann::json::array();
    for (const std::unique_ptr<Backend>& backend : profile.backends)
      backends.push_back({{"url", backend->url.text()},
                          {"breaker", name(backend->breaker.state(now))},
                          {"in_flight", backend->in_flight.load()}});
    const auto& attempts = values.profiles[i].attempts;
    out["profiles"].push_back({{"name", profile.config.name},
                               {"model", profile.config.model},
                               {"in_flight", profile.in_flight.load()},
                               {"queued", profile.gate.queued()},
                               {"attempts_ok", attempts[0]},
                               {"attempts_failed", attempts[1]},
                               {"backends", std::move(backends)}});
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace flashgate

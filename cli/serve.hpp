#pragma once
// `flashgate serve`: the gateway in the foreground until SIGINT or SIGTERM. Main thread only.
#include <optional>
#include <string>

#include "config/config.hpp"

namespace flashgate {

struct ServeCommand {
  std::string config{};
  std::string listen{};
  std::string admin{};
  std::string data_dir{};
  unsigned workers = 0;  // 0: one per processor
  std::string grace = "30s";
};

/// The exit code: 0 after a drain, 1 when the configuration or a listener is bad, 2 for usage.
int run_serve(const ServeCommand& command);

/// What runs once a configuration is there; `ready` is called with the two ports.
struct ServeHooks {
  void (*ready)(void* context, std::uint16_t port, std::uint16_t admin_port) = nullptr;
  void* context = nullptr;
};
int serve_config(Config config, unsigned workers, Duration grace, const ServeHooks& hooks);

/// Loads with the process's environment and files; problems go to stderr. Empty: there were errors.
std::optional<Config> load_or_complain(const std::string& text, const std::string& file,
                                       const ServeCommand& command);

}  // namespace flashgate

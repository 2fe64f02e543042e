#include "cli/serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "base/quantity.hpp"
#include "cli/files.hpp"
#include "config/load.hpp"
#include "control/admin.hpp"
#include "gateway/call_log.hpp"
#include "gateway/server.hpp"

namespace flashgate {
namespace {

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/// Blocked before any thread starts, so that only sigwait sees them.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

int complain(const Error& error) {
  std::fprintf(stderr, "flashgate: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

std::optional<Config> load_or_complain(const std::string& text, const std::string& file,
                                       const ServeCommand& command) {
  Overrides overrides;
  const Environment environment = process_environment();
  const auto choose = [&](const std::string& flag, const char* variable) {
    return flag.empty() ? environment(variable) : std::optional<std::string>(flag);
  };
  overrides.listen = choose(command.listen, "FLASHGATE_LISTEN");
  overrides.admin = choose(command.admin, "FLASHGATE_ADMIN");
  overrides.data_dir = choose(command.data_dir, "FLASHGATE_DATA_DIR");
  Loaded loaded = load_config(text, file, environment, read_file, overrides);
  const bool color = isatty(STDERR_FILENO) != 0 && !environment("NO_COLOR");
  if (!loaded.diagnostics.empty())
    std::fputs(render(loaded.diagnostics, text, color).c_str(), stderr);
  return std::move(loaded.config);
}

int serve_config(Config config, unsigned workers, Duration grace, const ServeHooks& hooks) {
  raise_file_limit();
  const sigset_t signals = block_signals();
  CallLog log(config.log.path);
  Result<std::unique_ptr<Runtime>> made =
      make_runtime(std::move(config), log, std::chrono::steady_clock::now());
  if (made.has_error()) return complain(made.error());
  Runtime& runtime = *made.value();
  Metrics metrics(runtime);
  Server server(runtime, metrics, workers);
  Admin admin(runtime, metrics);
  Result<void> started = admin.start();
  if (started.has_value()) started = server.start();
  if (started.has_error()) return complain(started.error());
  const bool tls = runtime.server_tls != nullptr;
  std::fprintf(stderr, "flashgate: serving %s://%s:%u/v1, admin http://%s:%u\n",
               tls ? "https" : "http", runtime.config.listen.host.c_str(), server.port(),
               runtime.config.admin.host.c_str(), admin.port());
  if (hooks.ready != nullptr) hooks.ready(hooks.context, server.port(), admin.port());
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  std::fprintf(stderr, "flashgate: draining; a second signal ends at once\n");
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  server.drain(grace);
  admin.stop();
  return 0;
}

int run_serve(const ServeCommand& command) {
  const std::string file = find_config_file(command.config, process_environment(), file_exists);
  if (file.empty()) {
    std::fputs(
        "flashgate: no configuration found; name one with --config, write ./flashgate.yaml, or "
        "try `flashgate demo`\n",
        stderr);
    return 2;
  }
  const Result<std::string> text = read_file(file);
  if (text.has_error()) return complain(text.error());
  std::optional<Config> config = load_or_complain(text.value(), file, command);
  if (!config) return 1;
  const Result<Duration> grace = parse_duration(command.grace);
  if (grace.has_error()) return complain(grace.error());
  return serve_config(std::move(*config), command.workers, grace.value(), {});
}

}  // namespace flashgate

#include "cli/demo.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "simulator/simulator.hpp"

namespace flashgate {
namespace {

constexpr std::string_view demo_config = R"(# The configuration of `flashgate demo`.
version: 1
listen: 127.0.0.1:8080
admin: 127.0.0.1:8081
profiles:
  local-flash:
    base_url: http://127.0.0.1:{flash}/v1
    model: flash
    timeout: 60
    max_concurrency: 8
    context_length: 32768
  cloud-main:
    base_url: http://127.0.0.1:{cloud}/v1
    model: cloud-large
    timeout: 120
    max_concurrency: 32
    context_length: 131072
default: local-flash
routing:
  long_context_threshold: 16000
  fallback: cloud-main
  rules:
    - {{name: hard, when: {{task: [formulas, reasoning]}}, to: cloud-main}}
log: {{path: "{log}"}}
)";

SimulatorOptions flash_options() {
  SimulatorOptions options;
  options.name = "flash";
  options.model = "flash";
  options.timing.ttft = std::chrono::milliseconds(40);
  options.timing.inter_token = std::chrono::milliseconds(8);
  return options;
}

SimulatorOptions cloud_options() {
  SimulatorOptions options;
  options.name = "cloud";
  options.model = "cloud-large";
  options.timing.ttft = std::chrono::milliseconds(350);
  options.timing.inter_token = std::chrono::milliseconds(25);
  return options;
}

std::string default_data_dir() {
  const char* const data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data != '\0') return std::string(data) + "/flashgate";
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "/tmp") + "/.local/share/flashgate";
}

struct Places {
  std::string log;
};

void say_ready(void* context, std::uint16_t port, std::uint16_t admin_port) {
  const auto& places = *static_cast<const Places*>(context);
  fmt::print(R"(
flashgate demo: two simulated backends, a fast "flash" and a slower "cloud". Try it:

  curl -s http://127.0.0.1:{0}/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{{"model":"auto","messages":[{{"role":"user","content":"Hello, who answers here?"}}]}}'

  # streamed, and routed to the large model by its task:
  curl -sN http://127.0.0.1:{0}/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{{"model":"auto","stream":true,"messages":[{{"role":"user","content":"Prove step by step that the square root of 2 is irrational."}}]}}'

admin:    http://127.0.0.1:{1}/metrics   http://127.0.0.1:{1}/status
call log: {2}
Stop with Ctrl-C.
)",
             port, admin_port, places.log);
  std::fflush(stdout);
}

}  // namespace

int run_demo(const ServeCommand& command) {
  Simulator flash(flash_options());
  Simulator cloud(cloud_options());
  for (Simulator* simulator : {&flash, &cloud}) {
    const Result<void> started = simulator->start();
    if (started.has_value()) continue;
    std::fprintf(stderr, "flashgate: %s\n", started.error().message.c_str());
    return 1;
  }
  const std::string data_dir = command.data_dir.empty() ? default_data_dir() : command.data_dir;
  std::error_code error;
  std::filesystem::create_directories(data_dir, error);
  if (error) {
    std::fprintf(stderr, "flashgate: cannot create '%s': %s; name another with --data-dir\n",
                 data_dir.c_str(), error.message().c_str());
    return 1;
  }
  Places places{data_dir + "/demo-calls.jsonl"};
  const std::string text =
      fmt::format(fmt::runtime(demo_config), fmt::arg("flash", flash.port()),
                  fmt::arg("cloud", cloud.port()), fmt::arg("log", places.log));
  std::optional<Config> config = load_or_complain(text, "demo", command);
  if (!config) return 1;
  const int code = serve_config(std::move(*config), command.workers, std::chrono::seconds(3),
                                {&say_ready, &places});
  flash.stop();
  cloud.stop();
  return code;
}

}  // namespace flashgate

#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/check.hpp"
#include "cli/demo.hpp"
#include "cli/explain.hpp"
#include "cli/schema.hpp"
#include "cli/serve.hpp"
#include "cli/sim.hpp"

namespace flashgate {
namespace {

constexpr const char* version_text = "flashgate 0.1.0";
constexpr int usage_error = 2;

void add_listen_options(CLI::App& app, ServeCommand& command) {
  app.add_option("--listen", command.listen, "address of the data plane, e.g. 127.0.0.1:8080");
  app.add_option("--admin", command.admin, "address of the admin plane, e.g. 127.0.0.1:8081");
  app.add_option("--data-dir", command.data_dir, "where records are kept");
  app.add_option("--workers", command.workers, "worker threads (default: one per processor)")
      ->check(CLI::Range(0, 256));
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app{"One gateway in front of several LLM backends, behind one OpenAI-compatible URL."};
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  std::function<int()> chosen;

  ServeCommand serve;
  CLI::App* const serve_app = app.add_subcommand("serve", "run the gateway");
  serve_app->add_option("-c,--config", serve.config, "configuration file");
  serve_app->add_option("--grace", serve.grace, "how long streams may go on after SIGTERM");
  add_listen_options(*serve_app, serve);
  serve_app->callback([&] { chosen = [&] { return run_serve(serve); }; });

  ServeCommand demo;
  CLI::App* const demo_app =
      app.add_subcommand("demo", "run the gateway over two simulated backends");
  add_listen_options(*demo_app, demo);
  demo_app->callback([&] { chosen = [&] { return run_demo(demo); }; });

  CheckCommand check;
  CLI::App* const check_app = app.add_subcommand("check", "find everything wrong with a file");
  check_app->add_option("file,-c,--config", check.config, "configuration file");
  check_app->add_flag("--json", check.json, "findings as JSON");
  check_app->add_flag("--upgrade", check.upgrade, "print the file in the current version");
  check_app->callback([&] { chosen = [&] { return run_check(check); }; });

  ExplainCommand explain;
  CLI::App* const explain_app =
      app.add_subcommand("explain", "say where a request would go, and why");
  explain_app->add_option("-c,--config", explain.config, "configuration file");
  explain_app->add_option("request", explain.request,
                          "file with the JSON body; - is standard input");
  explain_app->add_option("--path", explain.path, "endpoint, e.g. /v1/chat/completions");
  explain_app->add_option("-H,--header", explain.headers, "a header, `name: value`; repeatable");
  explain_app->add_flag("--json", explain.json, "as JSON");
  explain_app->callback([&] { chosen = [&] { return run_explain(explain); }; });

  CLI::App* const schema_app =
      app.add_subcommand("schema", "print the JSON Schema of the configuration");
  schema_app->callback([&] { chosen = [] { return run_schema(); }; });

  SimCommand sim;
  CLI::App* const sim_app = app.add_subcommand("sim", "run one simulated backend");
  add_sim_options(*sim_app, sim);
  sim_app->callback([&] { chosen = [&] { return run_sim(sim); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : usage_error;
  }
  return chosen();
}

}  // namespace flashgate

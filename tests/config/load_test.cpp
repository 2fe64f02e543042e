#include <catch2/catch.hpp>

#include "tests/config/loading.hpp"

using namespace flashgate;
using namespace std::chrono_literals;

TEST_CASE("the founding file loads unchanged and means what it says") {
  const auto loaded = World{}.load(read_source("examples/founding.yaml"));
  INFO(summary(loaded));
  REQUIRE(loaded.config.has_value());
  CHECK(loaded.diagnostics.empty());
  const Config& config = *loaded.config;
  REQUIRE(config.profiles.size() == 2);
  const ProfileConfig& flash = config.profiles[0];
  CHECK(flash.name == "local-flash");
  CHECK(flash.replicas.at(0).text() == "http://127.0.0.1:8000/v1");
  CHECK(flash.model == "flash");
  CHECK(flash.api_key.reveal() == "local-secret");
  CHECK(flash.api_key_source == "env LOCAL_KEY");
  CHECK(flash.timeouts.first_byte == 60s);
  CHECK(flash.timeouts.total_unary == 60s);
  CHECK(flash.timeouts.total == 30min);
  CHECK(flash.timeouts.connect == 5s);
  CHECK(flash.max_concurrency == 8);
  const ProfileConfig& cloud = config.profiles[1];
  CHECK(cloud.replicas.at(0).tls);
  CHECK(cloud.replicas.at(0).port == 443);
  CHECK(cloud.api_key.reveal() == "cloud-secret");
  CHECK(cloud.timeouts.first_byte == 120s);
  CHECK(cloud.max_concurrency == 32);
  CHECK(config.routes.default_profile == 0);
  CHECK(config.routes.long_context_threshold == 16000);
  CHECK(config.routes.fallback == std::vector<std::size_t>{1});
  CHECK(config.routes.profiles.at(1).model == "your-model-name");
  CHECK(config.listen.host == "127.0.0.1");
  CHECK(config.listen.port == 8080);
  CHECK(config.admin.port == 8081);
  CHECK(config.data_dir == "/home/u/.local/share/flashgate");
  CHECK(config.version == 1);
}

TEST_CASE("every example passes without an error or a warning") {
  World world;
  for (const auto* file : {"founding", "minimal", "full", "rules"}) {
    INFO(file);
    const auto text = read_source(std::string("examples/") + file + ".yaml");
    REQUIRE_FALSE(text.empty());
    const auto loaded = world.load(text, {}, std::string("examples/") + file + ".yaml");
    INFO(summary(loaded));
    CHECK(loaded.config.has_value());
    CHECK(loaded.diagnostics.empty());
  }
}

TEST_CASE("every setting of the full example arrives in the configuration") {
  const auto loaded = World{}.load(read_source("examples/full.yaml"));
  INFO(summary(loaded));
  REQUIRE(loaded.config.has_value());
  const Config& c = *loaded.config;
  CHECK(c.listen.host == "::1");
  CHECK(c.listen.port == 8443);
  CHECK(c.listen.tls_cert == "/etc/cert.pem");
  CHECK(c.listen.tls_key == "/etc/key.pem");
  CHECK(c.admin.host == "0.0.0.0");
  CHECK(c.admin.port == 9090);
  CHECK(c.admin.token.reveal() == "t0ken");
  CHECK(c.admin.metrics_public);
  CHECK(c.auth_none);
  CHECK(c.data_dir == "/var/lib/flashgate");
  CHECK(c.trusted_proxies == std::vector<std::string>{"10.0.0.0/8", "::1"});
  CHECK(c.limits.body == 16u << 20);
  CHECK(c.limits.headers == 32u << 10);
  CHECK(c.limits.header_count == 100);
  CHECK(c.limits.connections == 5000);
  CHECK(c.limits.client_stall == 30s);
  CHECK(c.limits.no_data == 5min);
  CHECK(c.limits.stream_buffer == 128u << 10);
  CHECK(c.heartbeat.interval == 10s);
  CHECK(c.heartbeat.before_first_token);
  CHECK(c.log.path == "/var/log/flashgate.jsonl");
  CHECK(c.log.level == "debug");
  CHECK(c.retry.attempts == 4);
  CHECK(c.retry.backoff == 100ms);
  CHECK(c.retry.budget == Approx(0.1));
  CHECK(c.routes.unknown_model_to_default);
  CHECK(c.routes.fallback == std::vector<std::size_t>{1, 2});
}

TEST_CASE("every setting of a profile in the full example arrives") {
  const auto loaded = World{}.load(read_source("examples/full.yaml"));
  REQUIRE(loaded.config.has_value());
  const ProfileConfig& p = loaded.config->profiles.at(0);
  CHECK(p.replicas.size() == 2);
  CHECK(p.aliases == std::vector<std::string>{"gpt-4o-mini", "fast"});
  CHECK(p.tokenizer == TokenizerFamily::qwen);
  CHECK(p.timeouts.connect == 3s);
  CHECK(p.timeouts.first_byte == 30s);
  CHECK(p.timeouts.idle == 45s);
  CHECK(p.timeouts.total == 10min);
  CHECK(p.timeouts.total_unary == 10min);
  CHECK(p.max_concurrency == 8);
  CHECK(p.queue.entries_max == 32);
  CHECK(p.queue.bytes_max == 16u << 20);
  CHECK(p.queue.wait_max == 5s);
  CHECK(p.rate_limit.requests_per_minute == 600);
  CHECK(p.rate_limit.tokens_per_minute == 200000);
  CHECK(p.rate_limit.burst_requests == 50);
  CHECK(p.breaker.consecutive_failures == 3);
  CHECK(p.breaker.failure_ratio == Approx(0.4));
  CHECK(p.breaker.min_samples == 10);
  CHECK(p.breaker.cooldown == 5s);
  CHECK(p.context_length == 32768);
  CHECK(p.max_tokens == 4096);
  CHECK(p.endpoints == std::vector<std::string>{"chat", "completions", "/v1/score"});
  CHECK(p.capabilities == std::vector<std::string>{"tools", "json_schema"});
  const ProfileConfig& azure = loaded.config->profiles.at(1);
  CHECK(azure.auth == AuthStyle::api_key);
  CHECK(azure.headers.at(0) == std::pair<std::string, std::string>{"X-Team", "search"});
  CHECK(azure.query.at(0) == std::pair<std::string, std::string>{"api-version", "2024-10-21"});
  CHECK(azure.tls.ca_file == "/etc/ca.pem");
  CHECK(azure.proxy.url.value().authority() == "proxy:3128");
  CHECK(azure.proxy.credentials.reveal() == "u:p");
  CHECK(azure.proxy.no_proxy == std::vector<std::string>{".corp.example"});
  CHECK(azure.price.set);
  CHECK(azure.price.input == Approx(2.5));
  CHECK(azure.price.output == Approx(10));
  CHECK(azure.price.cached == Approx(1.25));
  CHECK(azure.price.currency == "EUR");
  const ProfileConfig& own = loaded.config->profiles.at(2);
  CHECK(own.auth == AuthStyle::header);
  CHECK(own.auth_header == "X-Api-Key");
  CHECK(own.api_key.reveal() == "file-secret");
  CHECK(own.tls.insecure == false);
}

TEST_CASE("rules become indices, classes and ranges") {
  const auto loaded = World{}.load(read_source("examples/full.yaml"));
  REQUIRE(loaded.config.has_value());
  const auto& rules = loaded.config->routes.rules;
  REQUIRE(rules.size() >= 3);
  CHECK(rules[0].name == "hard");
  CHECK(rules[0].when.task == std::vector<TaskClass>{TaskClass::formulas, TaskClass::reasoning});
  CHECK(rules[0].to == std::vector<std::size_t>{1, 2});
  CHECK(rules[1].when.images == std::optional<bool>(true));
  const When& all = rules[2].when;
  CHECK(all.input_tokens == std::optional(TokenRange{4001, INT64_MAX}));
  CHECK(all.max_tokens == std::optional(TokenRange{1, 256}));
  CHECK(all.turns.has_value());
  CHECK(all.stream == std::optional<bool>(false));
  CHECK(all.tools == std::optional<bool>(false));
  CHECK(all.response_format.size() == 2);
  CHECK(all.language == std::vector<std::string>{"chinese", "english"});
  CHECK(all.model == std::vector<std::string>{"auto"});
  CHECK(all.header.at(0) == std::pair<std::string, std::string>{"x-team", "search"});
}

TEST_CASE("flags win over the file, and are checked like it") {
  const std::string text = read_source("examples/minimal.yaml");
  Overrides overrides;
  overrides.listen = "[::1]:0";
  overrides.admin = "127.0.0.1:0";
  overrides.data_dir = "/tmp/data";
  const auto loaded = World{}.load(text, overrides);
  REQUIRE(loaded.config.has_value());
  CHECK(loaded.config->listen.host == "::1");
  CHECK(loaded.config->listen.port == 0);
  CHECK(loaded.config->admin.port == 0);
  CHECK(loaded.config->data_dir == "/tmp/data");
  overrides.listen = "0.0.0.0:80";
  CHECK_FALSE(World{}.load(text, overrides).config.has_value());
  overrides.listen = "8080";
  CHECK_FALSE(World{}.load(text, overrides).config.has_value());
}

TEST_CASE("`timeout` sets the first byte and the unary total, and entries win over it") {
  const std::string head = "profiles:\n  a:\n    base_url: http://127.0.0.1:1\n    model: m\n";
  struct Row {
    const char* keys;
    Duration first_byte, total_unary, total, connect;
  };
  const Row rows[] = {
      {"", 120s, 120s, 30min, 5s},
      {"    timeout: 60\n", 60s, 60s, 30min, 5s},
      {"    timeout: 2s\n", 2s, 2s, 30min, 2s},
      {"    timeout: 60\n    timeouts: {first_byte: 10s}\n", 10s, 60s, 30min, 5s},
      {"    timeout: 60\n    timeouts: {total: 5m}\n", 60s, 5min, 5min, 5s},
      {"    timeouts: {first_byte: 5m}\n", 5min, 5min, 30min, 5s},
      {"    timeouts: {total: 2s}\n", 2s, 2s, 2s, 2s},
  };
  for (const Row& row : rows) {
    INFO(row.keys);
    const auto loaded = World{}.load(head + row.keys);
    INFO(summary(loaded));
    REQUIRE(loaded.config.has_value());
    const Timeouts& t = loaded.config->profiles[0].timeouts;
    CHECK(t.first_byte == row.first_byte);
    CHECK(t.total_unary == row.total_unary);
    CHECK(t.total == row.total);
    CHECK(t.connect == row.connect);
  }
}

TEST_CASE("paths in the file are meant from the file's own folder") {
  World world;
  world.files["/etc/flashgate/certs/ca.pem"] = "pem";
  world.files["/home/u/k"] = "from-home";
  const std::string text =
      "profiles:\n  a:\n    base_url: https://h\n    model: m\n    api_key_file: ~/k\n"
      "    tls: {ca_file: certs/ca.pem}\n";
  const auto loaded = world.load(text, {}, "/etc/flashgate/config.yaml");
  INFO(summary(loaded));
  REQUIRE(loaded.config.has_value());
  CHECK(loaded.config->profiles[0].tls.ca_file == "/etc/flashgate/certs/ca.pem");
  CHECK(loaded.config->profiles[0].api_key.reveal() == "from-home");
}

TEST_CASE("the file is looked for in the documented order") {
  std::vector<std::string> there;
  std::map<std::string, std::string> variables{{"HOME", "/h"}};
  const auto find = [&](const std::string& flag) {
    return find_config_file(
        flag,
        [&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          if (found == variables.end()) return std::nullopt;
          return found->second;
        },
        [&](const std::string& path) {
          return std::find(there.begin(), there.end(), path) != there.end();
        });
  };
  CHECK(find("") == "");
  there = {"/etc/flashgate/config.yaml"};
  CHECK(find("") == "/etc/flashgate/config.yaml");
  there.push_back("/h/.llm/config.yaml");
  CHECK(find("") == "/h/.llm/config.yaml");
  there.push_back("/h/.config/flashgate/config.yaml");
  CHECK(find("") == "/h/.config/flashgate/config.yaml");
  variables["XDG_CONFIG_HOME"] = "/x";
  CHECK(find("") == "/h/.llm/config.yaml");
  there.push_back("/x/flashgate/config.yaml");
  CHECK(find("") == "/x/flashgate/config.yaml");
  there.push_back("./flashgate.yaml");
  CHECK(find("") == "./flashgate.yaml");
  variables["FLASHGATE_CONFIG"] = "/missing";
  CHECK(find("") == "/missing");
  CHECK(find("given.yaml") == "given.yaml");
}

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/config/loading.hpp"

using namespace flashgate;

namespace {

struct Row {
  const char* about;
  std::string text;
  std::string expected;  // line:col severity: message (its beginning)
  std::string suggestion{};
};

const std::string profile = "profiles:\n  a:\n    base_url: http://127.0.0.1:1/v1\n    model: m\n";
const std::string two =
    profile + "  b:\n    base_url: http://127.0.0.1:2/v1\n    model: n\ndefault: a\n";
const std::string remote = "profiles:\n  a:\n    base_url: https://h/v1\n    model: m\n";

std::string place_and_message(const Diagnostic& d) {
  return std::to_string(d.line) + ':' + std::to_string(d.column) +
         (d.severity == Severity::error ? " error: " : " warning: ") + d.message;
}

void check(const Row& row) {
  INFO(row.about << "\n" << row.text);
  const auto loaded = World{}.load(row.text);
  INFO(summary(loaded));
  bool found = false;
  for (const Diagnostic& d : loaded.diagnostics) {
    if (place_and_message(d).rfind(row.expected, 0) != 0) continue;
    found = true;
    CHECK(d.suggestion.find(row.suggestion) != std::string::npos);
  }
  CHECK(found);
  const bool is_error = row.expected.find(" error: ") != std::string::npos;
  CHECK(loaded.config.has_value() == !is_error);
  CHECK(loaded.diagnostics.size() == 1);
}

}  // namespace

TEST_CASE("every wrong key is an error at its own place, with the way out") {
  const Row rows[] = {
      {"misspelt", profile + "    time_out: 5\n", "5:5 error: unknown key 'time_out'",
       "did you mean 'timeout'?"},
      {"dash for underscore", profile + "    max-tokens: 5\n", "5:5 error: unknown key",
       "did you mean 'max_tokens'?"},
      {"another product's word", profile + "    api_base: x\n", "5:5 error: unknown key",
       "base_url"},
      {"at the wrong level", profile + "    retry: {attempts: 1}\n", "5:5 error: unknown key",
       "belongs under 'routing'"},
      {"twice", profile + "    model: n\n",
       "5:5 error: the key 'model' is here twice; first on line 4", "remove one"},
      {"a profile twice", profile + "  a:\n    base_url: http://127.0.0.1:1\n    model: m\n",
       "5:3 error: the key 'a' is here twice; first on line 2", ""},
      {"missing", "profiles:\n  a:\n    base_url: http://127.0.0.1\n",
       "2:3 error: 'model' is missing here"},
      {"no address", "profiles:\n  a:\n    model: m\n", "2:3 error: 'base_url' is missing here"},
      {"no value", profile + "    timeout:\n", "5:5 error: 'timeout' has no value"},
      {"planned: watch", profile + "watch: {}\n",
       "5:1 error: 'watch' is not available in this version yet"},
      {"planned: keys", profile + "keys: {file: k}\n",
       "5:1 error: 'keys' is not available in this version yet"},
      {"planned: store", profile + "store: {}\n", "5:1 warning: 'store' has no effect"},
      {"planned: health", profile + "    health: {}\n", "5:5 warning: 'health' has no effect"},
      {"planned: affinity", profile + "    affinity: none\n",
       "5:5 warning: 'affinity' has no effect"},
      {"planned: warmup", profile + "    warmup: {}\n", "5:5 warning: 'warmup' has no effect"},
      {"planned: log.bodies", profile + "log: {bodies: all}\n", "5:7 error: 'bodies' is not avail"},
      {"a key in the file", profile + "    api_key: sk-1234567890abcdef\n",
       "5:5 error: unknown key 'api_key'", "api_key_env"},
      {"newer version", "version: 2\n" + profile, "1:10 error: version 2 of the file is newer",
       "upgrade"},
      {"no profile", "profiles: {}\n", "1:1 error: there is no profile"},
      {"not a map", "hello\n", "1:1 error: a map of keys is expected at the top level"},
      {"empty file", "# nothing\n", "1:1 error: the file is empty"},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("every wrong value is an error at its own place, with what to write instead") {
  const Row rows[] = {
      {"unit of time", profile + "    timeout: 60sec\n", "5:14 error: a duration", "write 60s"},
      {"negative", profile + "    timeout: -5s\n", "5:14 error: a duration"},
      {"zero", profile + "    timeout: 0\n", "5:14 error: 'timeout' must be at least 1ms"},
      {"size", profile + "    queue: {max_bytes: 64mb}\n", "5:24 error: a size", "write 64MiB"},
      {"share", profile + "    breaker: {failure_ratio: 0.5}\n", "5:30 error: a share",
       "write 50%"},
      {"rate", profile + "    rate_limit: {requests: 600}\n", "5:28 error: a rate",
       "write 600/min"},
      {"octal", profile + "    max_concurrency: 010\n", "5:22 error: a number has no leading zero",
       "write 10"},
      {"separator", profile + "    max_tokens: 4_096\n", "5:17 error: a count", "write 4096"},
      {"too small", profile + "    max_concurrency: 0\n",
       "5:22 error: 'max_concurrency' must be at least 1 and at most 100000"},
      {"YAML 1.1 truth", profile + "heartbeat: {before_first_token: yes}\n",
       "5:33 error: true or false is expected, not 'yes'", "write true"},
      {"choice", profile + "    tokenizer: gwen\n", "5:16 error: 'gwen' is not known here",
       "did you mean 'qwen'?"},
      {"list of choices", profile + "    capabilities: [tools, visoin]\n",
       "5:27 error: 'visoin' is not known here", "did you mean 'vision'?"},
      {"empty list", profile + "    aliases: []\n", "5:14 error: the list is empty"},
      {"a list for a text", profile + "data_dir: [a]\n", "5:11 error: a text is expected here"},
      {"a text for a map", profile + "limits: 5\n", "5:9 error: a map of keys is expected here"},
      {"port only", "listen: 8080\n" + profile, "1:9 error: a port is missing",
       "write 127.0.0.1:8080"},
      {"no scheme", "profiles:\n  a:\n    base_url: 127.0.0.1:1/v1\n    model: m\n",
       "3:15 error: a URL begins with", "write http://127.0.0.1:1/v1"},
      {"interpolation", profile + "    headers: {X-A: \"${TOKEN}\"}\n",
       "5:20 error: ${TOKEN} is not replaced", "api_key_env: TOKEN"},
      {"interpolated variable", profile + "    api_key_env: ${LOCAL_KEY}\n",
       "5:18 error: ${LOCAL_KEY} is not replaced", "write LOCAL_KEY"},
      {"key as variable", profile + "    api_key_env: sk-abc\n",
       "5:18 error: this is not the name of an environment variable", "never the key itself"},
      {"line break", profile + "    headers: {X-A: \"a\\r\\nX-B: c\"}\n",
       "5:20 error: the text holds a line break"},
      {"header name", profile + "    headers: {\"X A\": b}\n",
       "5:15 error: 'X A' is not the name of a header"},
      {"our own header", profile + "    headers: {Host: b}\n",
       "5:15 error: 'Host' is set by flashgate itself"},
      {"credential in the file", profile + "    headers: {Authorization: Bearer x}\n",
       "5:15 error: a credential is written in the file"},
      {"profile name", "profiles:\n  a b:\n    base_url: http://127.0.0.1\n    model: m\n",
       "2:3 error: 'a b' is not a name"},
      {"proxy block", profile + "trusted_proxies: [10.0.0.0/33]\n",
       "5:19 error: '10.0.0.0/33' is not an address"},
      {"currency", profile + "    price: {input: 1, output: 2, currency: euro}\n",
       "5:44 error: 'euro' is not a currency"},
      {"range", profile + "routing:\n  rules:\n    - {name: x, when: {turns: many}, to: a}\n",
       "7:31 error: a range is like"},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("keys that contradict each other are reported") {
  const Row rows[] = {
      {"connect over total", profile + "    timeouts: {connect: 5s, total: 2s}\n",
       "5:16 error: 'connect' is longer than 'total' (2s)"},
      {"first byte over total", profile + "    timeouts: {total: 5s, first_byte: 6s}\n",
       "5:27 error: 'first_byte' is longer than 'total' (5s)"},
      {"connect over timeout", profile + "    timeout: 2\n    timeouts: {connect: 5s}\n",
       "6:16 error: 'connect' is longer than 'timeout' (2s)"},
      {"dead timeout", profile + "    timeout: 9\n    timeouts: {first_byte: 5s, total: 10s}\n",
       "5:5 warning: 'timeout' does nothing"},
      {"queue over total", profile + "    timeouts: {total: 5s}\n    queue: {max_wait: 6s}\n",
       "6:13 error: 'max_wait' is longer than 'total'"},
      {"cap over window", profile + "    context_length: 100\n    max_tokens: 100\n",
       "6:5 error: 'max_tokens' leaves no room"},
      {"burst alone", profile + "    rate_limit: {burst: 5}\n", "5:18 error: 'burst' does nothing"},
      {"tls on http", profile + "    tls: {insecure: false}\n", "5:5 error: no address of this"},
      {"two addresses", profile + "    replicas: [http://127.0.0.1:2]\n",
       "5:5 error: 'base_url' and 'replicas' say the same thing"},
      {"replica twice", "profiles:\n  a:\n    replicas: [http://h, http://h/]\n    model: m\n",
       "3:26 error: this address is listed twice"},
      {"key without use", profile + "    api_key_env: LOCAL_KEY\n    auth: none\n",
       "5:5 error: 'auth: none' sends no key"},
      {"signing without key", profile + "    auth: api-key\n", "5:5 error: this way of signing"},
      {"same port", "listen: 127.0.0.1:1\nadmin: 127.0.0.1:1\n" + profile,
       "2:1 error: 'admin' and 'listen' are the same address"},
      {"open listener", "listen: 0.0.0.0:1\n" + profile,
       "1:1 error: the gateway would serve anyone", "auth: none"},
      {"open admin", "admin: 0.0.0.0:1\n" + profile, "1:1 error: the admin listener beyond"},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("unset and empty variables are named, never sent") {
  const Row rows[] = {
      {"unset", remote + "    api_key_env: NOT_THERE\n",
       "5:18 error: the variable NOT_THERE is not set", "export NOT_THERE"},
      {"empty", remote + "    api_key_env: EMPTY\n", "5:18 error: the variable EMPTY is empty"},
      {"unset, loopback", profile + "    api_key_env: NOT_THERE\n",
       "5:18 warning: the variable NOT_THERE is not set: requests go to this backend without"},
      {"empty, loopback", profile + "    api_key_env: EMPTY\n",
       "5:18 warning: the variable EMPTY is empty"},
      {"missing file", remote + "    api_key_file: /nope\n",
       "5:19 error: the file '/nope' can't be read", "no such file"},
      {"empty file", remote + "    api_key_file: /run/empty\n",
       "5:19 error: the file '/run/empty' is empty"},
      {"admin token", "admin: {token_env: NOT_THERE}\n" + profile,
       "1:20 error: the variable NOT_THERE is not set"},
      {"proxy", profile + "    proxy: {url_env: NOT_THERE}\n",
       "5:22 warning: the variable NOT_THERE is not set: connections go direct"},
      {"clear text",
       "profiles:\n  a:\n    base_url: http://h.example/v1\n    model: m\n"
       "    api_key_env: CLOUD_KEY\n",
       "5:5 warning: the key travels unencrypted to 'h.example'", "https://"},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("a variable that holds a placeholder or a line break is no key") {
  World world;
  for (const auto* value : {"${MASTER_KEY}", "two words", "a\nb", "caf\xc3\xa9"}) {
    INFO(value);
    world.variables["CLOUD_KEY"] = value;
    const auto loaded = world.load(remote + "    api_key_env: CLOUD_KEY\n");
    CHECK_FALSE(loaded.config.has_value());
    CHECK(summary(loaded).find(value) == std::string::npos);
  }
}

TEST_CASE("names, targets and rules that can't work are refused") {
  const std::string rules = two + "routing:\n  rules:\n";
  const Row rows[] = {
      {"default", profile + "default: b\n", "5:10 error: no profile is called 'b'"},
      {"no default", profile + "  b:\n    base_url: http://127.0.0.1\n    model: n\n",
       "1:1 error: 'default' is missing"},
      {"fallback", two + "routing: {fallback: [a, bb]}\n", "9:25 error: no profile is called 'bb'",
       "did you mean 'b'?"},
      {"rule", rules + "    - {name: x, when: {}, to: [c]}\n",
       "11:32 error: no profile is called 'c'"},
      {"fallback twice", two + "routing: {fallback: [b, b]}\n",
       "9:25 warning: 'b' is listed twice; it is tried once"},
      {"fallback to itself", two + "routing: {fallback: a}\n",
       "9:11 warning: 'fallback' names only the default profile"},
      {"nowhere to go", two + "routing: {long_context_threshold: 16k}\n",
       "9:11 error: over the threshold there is nowhere to go"},
      {"alias loop",
       profile + "    aliases: [b]\n  b:\n    base_url: http://127.0.0.1:2\n"
                 "    model: n\ndefault: a\n",
       "5:15 error: the alias 'b' is the name of another profile"},
      {"alias of itself", profile + "    aliases: a\n",
       "5:14 error: the alias 'a' is the name of this"},
      {"alias auto", profile + "    aliases: [auto]\n", "5:15 error: 'auto' can't be an alias"},
      {"profile auto", "profiles:\n  auto:\n    base_url: http://127.0.0.1\n    model: m\n",
       "2:3 error: 'auto' is taken"},
      {"alias twice",
       profile + "    aliases: [x]\n  b:\n    base_url: http://127.0.0.1:2\n"
                 "    model: n\n    aliases: [x]\ndefault: a\n",
       "5:15 warning: the alias 'x' belongs to 'b' as well"},
      {"hidden model",
       profile + "  m:\n    base_url: http://127.0.0.1:2\n    model: n\ndefault: a\n",
       "4:12 warning: clients who ask for 'm' get the profile 'm'"},
      {"unreachable",
       rules + "    - {name: x, when: {task: [code, qa]}, to: b}\n"
               "    - {name: y, when: {task: code, stream: true}, to: a}\n",
       "12:7 error: this rule is never reached: 'x' on line 11"},
      {"unreachable range",
       rules + "    - {name: x, when: {input_tokens: '>1000'}, to: b}\n"
               "    - {name: y, when: {input_tokens: 2000..3000}, to: a}\n",
       "12:7 error: this rule is never reached"},
      {"after everything",
       rules + "    - {name: x, when: {}, to: b}\n"
               "    - {name: y, when: {images: true}, to: a}\n",
       "12:7 error: this rule is never reached"},
      {"same name",
       rules + "    - {name: x, when: {images: true}, to: b}\n"
               "    - {name: x, when: {tools: true}, to: a}\n",
       "12:14 error: two rules are called 'x'"},
      {"reserved name", rules + "    - {name: default, when: {tools: true}, to: a}\n",
       "11:14 error: 'default' is a reason of flashgate's own"},
      {"no keys yet", rules + "    - {name: x, when: {tag: gold}, to: a}\n",
       "11:24 warning: this rule matches nothing yet"},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("rules that overlap without one covering the other are fine") {
  const auto loaded =
      World{}.load(two +
                   "routing:\n  rules:\n    - {name: x, when: {task: code, stream: true}, to: b}\n"
                   "    - {name: y, when: {task: code}, to: a}\n"
                   "    - {name: z, when: {input_tokens: '>10', model: 'gpt-*'}, to: a}\n"
                   "    - {name: w, when: {input_tokens: '>5', model: 'gpt-4*'}, to: a}\n");
  INFO(summary(loaded));
  CHECK(loaded.config.has_value());
  CHECK(loaded.diagnostics.empty());
}

TEST_CASE("all errors come at once, in the order of the file") {
  const auto loaded = World{}.load(
      "listen: 1\nprofiles:\n  a:\n    base_url: x\n    modle: m\n    timeout: 5x\ndefault: q\n");
  INFO(summary(loaded));
  CHECK(loaded.diagnostics.size() == 6);
  int line = 0;
  for (const Diagnostic& d : loaded.diagnostics) {
    CHECK(d.line >= line);
    line = d.line;
    CHECK(d.file == "t.yaml");
  }
}

TEST_CASE("a diagnostic is shown with its line, a caret under the place, and the way out") {
  const std::string text = profile + "    time_out: 5\n";
  const auto loaded = World{}.load(text);
  CHECK(render(loaded.diagnostics, text, false) ==
        "t.yaml:5:5: error: unknown key 'time_out'\n"
        "    5 |     time_out: 5\n"
        "      |     ^\n"
        "      = did you mean 'timeout'?\n");
  const std::string colored = render(loaded.diagnostics, text, true);
  CHECK(colored.find("\x1b[1;31merror:\x1b[0m") != std::string::npos);
}

TEST_CASE("the caret stands under the character, wide ones before it included") {
  const std::string text = profile + "    aliases: [\xe4\xb8\xad\xe6\x96\x87, a]\n";
  const auto loaded = World{}.load(text);
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].column == 19);  // characters, as editors count
  CHECK(render(loaded.diagnostics, text, false).find("\n      | " + std::string(20, ' ') + "^\n") !=
        std::string::npos);
}

TEST_CASE("a key or a password in the file is not repeated on the screen") {
  const std::string text =
      "profiles:\n  a:\n    base_url: https://bob:hunter2@h/v1\n    model: m\n"
      "    api_key: sk-proj-abcdefghijkl\n";
  const auto loaded = World{}.load(text);
  const std::string shown =
      render(loaded.diagnostics, text, false) + render_json(loaded.diagnostics);
  CHECK(shown.find("hunter2") == std::string::npos);
  CHECK(shown.find("abcdefghijkl") == std::string::npos);
}

TEST_CASE("diagnostics as JSON carry the same facts") {
  const auto loaded = World{}.load(profile + "    time_out: 5\n");
  const auto json = nlohmann::json::parse(render_json(loaded.diagnostics));
  CHECK(json["ok"] == false);
  CHECK(json["errors"] == 1);
  CHECK(json["warnings"] == 0);
  CHECK(json["diagnostics"][0]["line"] == 5);
  CHECK(json["diagnostics"][0]["column"] == 5);
  CHECK(json["diagnostics"][0]["path"] == "profiles.a.time_out");
  CHECK(json["diagnostics"][0]["suggestion"] == "did you mean 'timeout'?");
}

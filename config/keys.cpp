#include "config/keys.hpp"

namespace flashgate {
namespace {

using enum ValueType;

constexpr double day = 86400;
constexpr double mib = 1024.0 * 1024;

const Section& when_section() {
  static const Section table{{
      {.name = "model", .type = texts, .about = "The name the client asked for."},
      {.name = "task",
       .type = texts,
       .about = "The class of the task, declared or guessed.",
       .choices = {"intent", "extraction", "conversion", "qa", "completion", "tagging", "workflow",
                   "code", "formulas", "reasoning", "translation", "long_document", "tools",
                   "vision", "chat"}},
      {.name = "input_tokens", .type = range, .about = "Estimated input, like '>16000'."},
      {.name = "max_tokens", .type = range, .about = "Requested output, like '1..256'."},
      {.name = "turns", .type = range, .about = "Messages of the user so far."},
      {.name = "stream", .type = flag, .about = "Whether the answer is streamed."},
      {.name = "tools", .type = flag, .about = "Whether tools are offered."},
      {.name = "images", .type = flag, .about = "Whether images are attached."},
      {.name = "response_format",
       .type = texts,
       .about = "The format asked for.",
       .choices = {"none", "text", "json_object", "json_schema"}},
      {.name = "language",
       .type = texts,
       .about = "The main language of the last user message.",
       .choices = {"english", "chinese", "japanese", "korean", "russian", "arabic", "thai", "hindi",
                   "greek", "hebrew", "german", "french", "spanish", "portuguese", "italian",
                   "other"}},
      {.name = "key", .type = texts, .about = "The name of the caller's key."},
      {.name = "tag", .type = texts, .about = "A tag of the caller's key."},
      {.name = "header",
       .type = text_map,
       .about = "Request fields and their exact values; '*' is any value."},
  }};
  return table;
}

const Section& rule_section() {
  static const Section table{{
      {.name = "name",
       .type = text,
       .about = "Shown in x-flashgate-rule, logs and metrics.",
       .required = true},
      {.name = "when",
       .type = section,
       .about = "All fields must hold; a list holds when one of its entries does.",
       .inner = &when_section(),
       .required = true},
      {.name = "to",
       .type = texts,
       .about = "The profile, or profiles in order, to try first.",
       .required = true},
  }};
  return table;
}

const Section& retry_section() {
  static const Section table{{
      {.name = "attempts",
       .type = count,
       .about = "The most attempts one request makes in all; 1: no retry.",
       .standard = "3",
       .least = 1,
       .most = 20},
      {.name = "backoff",
       .type = duration,
       .about = "The first pause; doubled each time, with full jitter.",
       .standard = "200ms",
       .most = 60},
      {.name = "budget",
       .type = share,
       .about = "Extra attempts as a share of the requests of the last 10 s (never fewer than 10).",
       .standard = "20%",
       .most = 1},
  }};
  return table;
}

const Section& routing_section() {
  static const Section table{{
      {.name = "long_context_threshold",
       .type = count,
       .about = "More input tokens than this go to the fallback first.",
       .least = 1,
       .most = 1e9},
      {.name = "fallback",
       .type = texts,
       .about = "The profile, or profiles in order, for when the first cannot answer."},
      {.name = "retry",
       .type = section,
       .about = "How often a request is tried again.",
       .inner = &retry_section()},
      {.name = "unknown_model",
       .type = choice,
       .about = "A model that no profile knows: refuse it, or serve it by the default profile.",
       .standard = "reject",
       .choices = {"reject", "default"}},
      {.name = "rules",
       .type = section_list,
       .about = "The first rule that matches picks the first candidates.",
       .inner = &rule_section()},
  }};
  return table;
}

const Section& limits_section() {
  static const Section table{{
      {.name = "body",
       .type = size,
       .about = "A request's body, decoded.",
       .standard = "32MiB",
       .least = 1024,
       .most = 4096 * mib},
      {.name = "headers",
       .type = size,
       .about = "A message head.",
       .standard = "64KiB",
       .least = 1024,
       .most = mib},
      {.name = "header_count",
       .type = count,
       .about = "Fields of a message head.",
       .standard = "200",
       .least = 10,
       .most = 10000},
      {.name = "connections",
       .type = count,
       .about = "Client connections at once.",
       .standard = "20000",
       .least = 1,
       .most = 1e6},
      {.name = "client_stall",
       .type = duration,
       .about = "A client that takes no byte for this long is dropped.",
       .standard = "60s",
       .least = 0.01,
       .most = day},
      {.name = "no_data",
       .type = duration,
       .about = "A client connection without a byte in either direction is closed.",
       .standard = "10m",
       .least = 0.01,
       .most = day},
      {.name = "stream_buffer",
       .type = size,
       .about = "Held for a slow client before the backend is no longer read.",
       .standard = "256KiB",
       .least = 4096,
       .most = 1024 * mib},
  }};
  return table;
}

const Section& heartbeat_section() {
  static const Section table{{
      {.name = "interval",
       .type = duration,
       .about = "A comment line goes to the client of a stream after this silence; off: never.",
       .standard = "15s",
       .most = day,
       .off_allowed = true},
      {.name = "before_first_token",
       .type = flag,
       .about = "true: heartbeats before the first content too; the answer's status is then 200 "
                "from the first heartbeat on, and later failures are in-band.",
       .standard = "false"},
  }};
  return table;
}

const Section& log_section() {
  static const Section table{
      {
          {.name = "path",
           .type = text,
           .about = "Where the call log goes: a file, or - for standard output.",
           .standard = "-"},
          {.name = "level",
           .type = choice,
           .about = "The least severe message that is written.",
           .standard = "info",
           .choices = {"debug", "info", "warning", "error"}},
      },
      {"bodies", "retention"}};
  return table;
}

const Section& listen_tls_section() {
  static const Section table{{
      {.name = "cert",
       .type = text,
       .about = "PEM file: the certificate and its chain.",
       .required = true},
      {.name = "key", .type = text, .about = "PEM file: the private key.", .required = true},
  }};
  return table;
}

const Section& listen_section() {
  static const Section table{{
      {.name = "address",
       .type = address,
       .about = "host:port; port 0 takes a free one.",
       .standard = "127.0.0.1:8080"},
      {.name = "tls", .type = section, .about = "Serve https.", .inner = &listen_tls_section()},
  }};
  return table;
}

const Section& admin_section() {
  static const Section table{{
      {.name = "address",
       .type = address,
       .about = "host:port; port 0 takes a free one.",
       .standard = "127.0.0.1:8081"},
      {.name = "token_env",
       .type = variable,
       .about = "The variable that holds the bearer token; needed beyond loopback."},
      {.name = "metrics_public",
       .type = flag,
       .about = "true: /metrics needs no token.",
       .standard = "false"},
  }};
  return table;
}

}  // namespace

const Key* Section::find(std::string_view name) const {
  for (const Key& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

const Section& root_section() {
  static const Section table{
      {
          {.name = "version",
           .type = count,
           .about = "The version of this file's format.",
           .standard = "1",
           .least = 1},
          {.name = "listen",
           .type = address,
           .about = "Where clients connect: host:port, or {address, tls: {cert, key}}.",
           .standard = "127.0.0.1:8080",
           .inner = &listen_section()},
          {.name = "admin",
           .type = address,
           .about = "Metrics and administration: host:port, or {address, token_env, "
                    "metrics_public}.",
           .standard = "127.0.0.1:8081",
           .inner = &admin_section()},
          {.name = "auth",
           .type = choice,
           .about = "none: anyone who reaches the listener may call. Needed to listen beyond "
                    "loopback without client keys.",
           .choices = {"none"}},
          {.name = "data_dir",
           .type = text,
           .about = "Where state is kept.",
           .standard = "~/.local/share/flashgate"},
          {.name = "profiles",
           .type = sections,
           .about = "The backends, each under its name.",
           .inner = &profile_section(),
           .required = true},
          {.name = "default",
           .type = text,
           .about = "The profile that serves what no rule and no name decides. May be left out "
                    "when there is one profile."},
          {.name = "routing",
           .type = section,
           .about = "Who answers which request.",
           .inner = &routing_section()},
          {.name = "limits",
           .type = section,
           .about = "Bounds on clients.",
           .inner = &limits_section()},
          {.name = "heartbeat",
           .type = section,
           .about = "Comment lines that keep silent streams open.",
           .inner = &heartbeat_section()},
          {.name = "log", .type = section, .about = "The call log.", .inner = &log_section()},
          {.name = "trusted_proxies",
           .type = texts,
           .about = "Addresses or CIDR blocks whose forwarding fields are believed."},
      },
      {"keys", "store", "watch", "rollouts", "affinity", "health", "warmup"}};
  return table;
}

}  // namespace flashgate

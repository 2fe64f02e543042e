// The keys of one profile: a backend, how it is reached, and what protects it.
#include "config/keys.hpp"

namespace flashgate {
namespace {

using enum ValueType;

constexpr double day = 86400;

const Section& timeouts_section() {
  static const Section table{{
      {.name = "connect",
       .type = duration,
       .about = "To open the connection, TLS included.",
       .standard = "5s",
       .least = 0.001,
       .most = day},
      {.name = "first_byte",
       .type = duration,
       .about = "From the sent request to the first byte of the answer.",
       .standard = "120s",
       .least = 0.001,
       .most = day},
      {.name = "idle",
       .type = duration,
       .about = "Between two chunks of a stream. Paused while the client is the slow side.",
       .standard = "120s",
       .least = 0.001,
       .most = day},
      {.name = "total",
       .type = duration,
       .about = "The whole call from arrival to end: queue, attempts, back-off and answer. "
                "Without it: 30m for streams; for other calls `timeout`, or 120s.",
       .standard = "30m",
       .least = 0.001,
       .most = 7 * day},
  }};
  return table;
}

const Section& queue_section() {
  static const Section table{{
      {.name = "max_entries",
       .type = count,
       .about = "Requests that may wait for a slot; 0: none waits.",
       .standard = "64",
       .most = 1e6},
      {.name = "max_bytes",
       .type = size,
       .about = "Bodies of waiting requests together.",
       .standard = "64MiB",
       .most = 1e12},
      {.name = "max_wait",
       .type = duration,
       .about = "The longest wait for a slot or for tokens.",
       .standard = "10s",
       .most = day},
  }};
  return table;
}

const Section& rate_limit_section() {
  static const Section table{{
      {.name = "requests", .type = rate, .about = "Requests, like 600/min.", .least = 1e-3},
      {.name = "tokens",
       .type = rate,
       .about = "Tokens, input and output together, like 200k/min. The bucket holds one minute.",
       .least = 1e-3},
      {.name = "burst",
       .type = count,
       .about = "Requests that may come at once. Without it: one second's worth, at least 1.",
       .least = 1,
       .most = 1e6},
  }};
  return table;
}

const Section& breaker_section() {
  static const Section table{{
      {.name = "consecutive_failures",
       .type = count,
       .about = "Failures in a row that open the breaker.",
       .standard = "5",
       .least = 1,
       .most = 1e6},
      {.name = "failure_ratio",
       .type = share,
       .about = "Share of failures in the last seconds that opens the breaker.",
       .standard = "50%",
       .least = 0.01,
       .most = 1},
      {.name = "min_samples",
       .type = count,
       .about = "Fewer calls than this never open it by ratio.",
       .standard = "20",
       .least = 1,
       .most = 1e6},
      {.name = "cooldown",
       .type = duration,
       .about = "Time without calls before one probe is let through; jittered, doubled on failure.",
       .standard = "10s",
       .least = 0.01,
       .most = day},
  }};
  return table;
}

const Section& price_section() {
  static const Section table{{
      {.name = "input",
       .type = number,
       .about = "Per million input tokens.",
       .most = 1e6,
       .required = true},
      {.name = "output",
       .type = number,
       .about = "Per million output tokens.",
       .most = 1e6,
       .required = true},
      {.name = "cached",
       .type = number,
       .about = "Per million input tokens that the backend had cached. Without it: `input`.",
       .most = 1e6},
      {.name = "currency", .type = text, .about = "Three letters.", .standard = "USD"},
  }};
  return table;
}

const Section& backend_tls_section() {
  static const Section table{{
      {.name = "ca_file",
       .type = text,
       .about = "PEM file of the authorities to trust instead of the system's."},
      {.name = "insecure",
       .type = flag,
       .about = "true: do not verify the backend's certificate. For tests only.",
       .standard = "false"},
  }};
  return table;
}

const Section& proxy_section() {
  static const Section table{{
      {.name = "url_env",
       .type = variable,
       .about = "The variable that holds the proxy's URL, http://[user:password@]host:port.",
       .required = true},
      {.name = "no_proxy",
       .type = texts,
       .about = "Hosts, and .suffixes of hosts, to reach directly. Loopback, private and ULA "
                "addresses always are."},
  }};
  return table;
}

const Section& auth_section() {
  static const Section table{{
      {.name = "header",
       .type = text,
       .about = "The field that carries the bare key.",
       .required = true},
  }};
  return table;
}

}  // namespace

const Section& profile_section() {
  static const Section table{
      {
          {.name = "base_url",
           .type = url,
           .about = "The backend's address with its path prefix, like http://127.0.0.1:8000/v1."},
          {.name = "replicas",
           .type = urls,
           .about = "Several addresses that serve the same model; instead of base_url."},
          {.name = "model",
           .type = text,
           .about = "The model's name that is sent to the backend.",
           .required = true},
          {.name = "aliases",
           .type = texts,
           .about = "More names by which clients may ask for this profile."},
          {.name = "api_key_env",
           .type = variable,
           .about = "The variable that holds the backend's key."},
          {.name = "api_key_file",
           .type = text,
           .about = "A file that holds the backend's key, like a mounted secret."},
          {.name = "auth",
           .type = choice,
           .about = "How the key is sent: `Authorization: Bearer`, `api-key`, not at all, or "
                    "{header: X-Key}.",
           .standard = "bearer",
           .inner = &auth_section(),
           .choices = {"bearer", "api-key", "none"}},
          {.name = "headers", .type = text_map, .about = "Fields added to each request."},
          {.name = "query",
           .type = text_map,
           .about = "Parameters added to each request's URL, like api-version for Azure."},
          {.name = "endpoints",
           .type = texts,
           .about = "What the backend serves, by kind or by path (/v1/…). Without it: everything.",
           .choices = {"chat", "completions", "embeddings", "responses", "messages", "audio",
                       "images", "rerank", "moderations"},
           .path_allowed = true},
          {.name = "capabilities",
           .type = texts,
           .about = "What the model can do; a request that needs more goes elsewhere. Without it: "
                    "everything.",
           .choices = {"tools", "vision", "json_schema"}},
          {.name = "tokenizer",
           .type = choice,
           .about = "The vocabulary that token estimates assume.",
           .standard = "o200k",
           .choices = {"o200k", "cl100k", "qwen", "llama3", "deepseek"}},
          {.name = "tls",
           .type = section,
           .about = "How an https backend is verified.",
           .inner = &backend_tls_section()},
          {.name = "proxy",
           .type = section,
           .about = "An outbound HTTP proxy (CONNECT). Without it: direct connections.",
           .inner = &proxy_section()},
          {.name = "timeout",
           .type = duration,
           .about = "Sets `first_byte`, and `total` for calls that are not streamed; an entry of "
                    "`timeouts` wins.",
           .least = 0.001,
           .most = day},
          {.name = "timeouts",
           .type = section,
           .about = "Each time limit by its name.",
           .inner = &timeouts_section()},
          {.name = "max_concurrency",
           .type = count,
           .about = "Requests in flight to this profile, over the whole process.",
           .standard = "64",
           .least = 1,
           .most = 1e5},
          {.name = "queue",
           .type = section,
           .about = "Where requests wait for a slot.",
           .inner = &queue_section()},
          {.name = "rate_limit",
           .type = section,
           .about = "Token buckets of this profile.",
           .inner = &rate_limit_section()},
          {.name = "breaker",
           .type = section,
           .about = "When a failing backend is taken out.",
           .inner = &breaker_section()},
          {.name = "context_length",
           .type = count,
           .about = "The window: input and output tokens together. Without it: unknown, no check.",
           .least = 1,
           .most = 1e9},
          {.name = "max_tokens",
           .type = count,
           .about = "Cap on output tokens; a larger wish is lowered, a missing one is set.",
           .least = 1,
           .most = 1e9},
          {.name = "price",
           .type = section,
           .about = "Cost per million tokens, for the records.",
           .inner = &price_section()},
      },
      {"affinity", "health", "warmup", "api_key_command"}};
  return table;
}

}  // namespace flashgate

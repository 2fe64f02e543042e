#pragma once
// The whole configuration as checked, typed values: what the rest of the program reads.
// Made only by load_config() (config/load.hpp); immutable once published.
// Plain values, any thread. docs/configuration.md says what each key means.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/secret.hpp"
#include "base/time.hpp"
#include "base/url.hpp"
#include "routing/breaker.hpp"
#include "routing/concurrency_gate.hpp"
#include "routing/retry.hpp"
#include "routing/route_table.hpp"
#include "routing/token_bucket.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

/// `timeout` sets first_byte and total_unary; an entry of `timeouts` wins over it.
struct Timeouts {
  Duration connect = std::chrono::seconds(5);
  Duration first_byte = std::chrono::seconds(120);
  Duration idle = std::chrono::seconds(120);         // between chunks of a stream
  Duration total = std::chrono::minutes(30);         // streaming calls
  Duration total_unary = std::chrono::seconds(120);  // calls that are not streamed
};

enum class AuthStyle { bearer, api_key, none, header };

/// Per million tokens.
struct Price {
  double input = 0;
  double output = 0;
  double cached = 0;
  std::string currency = "USD";
  bool set = false;
};

struct ProxyConfig {
  std::optional<Url> url{};             // none: connect directly
  Secret credentials{};                 // "user:password" of the proxy, empty: none
  std::vector<std::string> no_proxy{};  // hosts and ".suffix"es; local addresses never use a proxy
};

struct TlsClientConfig {
  std::string ca_file{};  // PEM; empty: the system's
  bool insecure = false;  // true: certificates are not verified
};

struct ProfileConfig {
  std::string name{};
  std::vector<Url> replicas{};  // at least one
  std::string model{};          // the name sent to the backend
  std::vector<std::string> aliases{};
  Secret api_key{};              // empty: no credential is sent
  std::string api_key_source{};  // "env LOCAL_KEY", "file /run/…", "" for none
  AuthStyle auth = AuthStyle::bearer;
  std::string auth_header{};  // AuthStyle::header: the field's name
  std::vector<std::pair<std::string, std::string>> headers{};
  std::vector<std::pair<std::string, std::string>> query{};
  std::vector<std::string> endpoints{};     // empty: all
  std::vector<std::string> capabilities{};  // empty: all
  TokenizerFamily tokenizer = TokenizerFamily::o200k;
  TlsClientConfig tls{};
  ProxyConfig proxy{};
  Timeouts timeouts{};
  int max_concurrency = 64;
  QueuePolicy queue{};
  RateLimitPolicy rate_limit{};
  BreakerPolicy breaker{};
  std::int64_t context_length = 0;  // 0: unknown
  std::int64_t max_tokens = 0;      // 0: no cap
  Price price{};
};

struct ListenConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free port
  std::string tls_cert{};     // PEM; both or neither
  std::string tls_key{};
};

struct AdminConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8081;
  Secret token{};  // empty: no token is asked for
  bool metrics_public = false;
};

struct LimitsConfig {
  std::size_t body = 32u << 20;                      // decoded request body
  std::size_t headers = 64u << 10;                   // one message head
  std::size_t header_count = 200;                    // fields in one head
  int connections = 20000;                           // client connections, over all threads
  Duration client_stall = std::chrono::seconds(60);  // a client that takes no bytes
  Duration no_data = std::chrono::minutes(10);      // a client connection without a byte either way
  std::size_t stream_buffer = 256u << 10;           // held per stream before we stop reading
  Duration header_time = std::chrono::seconds(30);  // to send one head
};

struct HeartbeatConfig {
  Duration interval = std::chrono::seconds(15);  // 0: off
  bool before_first_token = false;
};

struct LogConfig {
  std::string path = "-";      // "-": standard output
  std::string level = "info";  // debug, info, warning, error
};

struct Config {
  int version = 1;
  std::string file{};
  ListenConfig listen{};
  AdminConfig admin{};
  std::string data_dir{};
  std::vector<ProfileConfig> profiles{};
  RouteTable routes{};  // profiles by the same index as above
  RetryPolicy retry{};
  LimitsConfig limits{};
  HeartbeatConfig heartbeat{};
  LogConfig log{};
  std::vector<std::string> trusted_proxies{};  // addresses or CIDR blocks
  bool auth_none = false;  // the owner said so: anyone who reaches the listener may call
};

}  // namespace flashgate

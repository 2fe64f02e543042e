#pragma once
// Opens a connection to a backend: name, address, CONNECT through an outbound proxy, TLS.
// Interrupt the dial to give up at any of these. One worker only.
#include <memory>
#include <string>

#include "net/connection.hpp"
#include "net/resolver.hpp"
#include "net/tls_context.hpp"

namespace flashgate {

struct DialTarget {
  std::string host{};
  std::uint16_t port = 80;
  TlsContext tls{};  // null: plain
  bool insecure = false;
  std::string proxy_host{};  // empty: direct
  std::uint16_t proxy_port = 0;
  std::string proxy_authorization{};  // value of Proxy-Authorization, empty: none
};

enum class DialFault { none, refused, unreachable, name_not_found, proxy, tls, interrupted };

class Dial final : public Interruptible {
 public:
  Dial(Executor executor, Resolver& resolver)
      : executor_(executor),
        resolver_(resolver),
        resolved_(std::make_shared<Event>(executor)),
        connection_(std::make_unique<Connection>(executor)) {}

  /// REQUIRES: called once; `target` outlives it.
  Task<DialFault> run(const DialTarget& target);
  void interrupt() override;
  /// After run() gave none.
  std::unique_ptr<Connection> take() { return std::move(connection_); }
  /// For people: what the system said.
  const std::string& detail() const { return detail_; }

 private:
  Task<DialFault> connect(std::string host, std::uint16_t port);
  Task<DialFault> tunnel(const DialTarget& target);

  Executor executor_;
  Resolver& resolver_;
  std::shared_ptr<Event> resolved_;
  std::unique_ptr<Connection> connection_;
  bool interrupted_ = false;
  std::string detail_{};
};

}  // namespace flashgate

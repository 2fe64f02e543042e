#pragma once
// Accepts client connections on one worker and starts a session for each. Over the connection cap,
// and when the process runs out of descriptors, it waits instead of spinning.
#include <boost/asio/basic_socket_acceptor.hpp>
#include <string>

#include "gateway/worker.hpp"

namespace flashgate {

class Listener {
 public:
  explicit Listener(Worker& worker) : worker_(worker), acceptor_(worker.executor()) {}

  /// `port` 0 takes any; port() then says which.
  Result<void> open(const std::string& host, std::uint16_t port);
  std::uint16_t port() const { return port_; }
  /// Accepts until close().
  Task<void> run();
  void close();

 private:
  Worker& worker_;
  asio::basic_socket_acceptor<asio::ip::tcp, Executor> acceptor_;
  std::uint16_t port_ = 0;
};

}  // namespace flashgate

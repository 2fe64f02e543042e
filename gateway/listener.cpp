#include "gateway/listener.hpp"

#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>

#include "gateway/session.hpp"

namespace flashgate {
namespace {

using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;
constexpr Duration rest_after_error = std::chrono::milliseconds(50);
constexpr int backlog = 4096;

Task<void> run_session(Worker& worker, TcpSocket socket) {
  Session session(worker, std::move(socket));
  co_await session.run();
}

Error cannot(const std::string& what, const std::string& where, const error_code& error) {
  return {"listen_failed", "cannot " + what + " " + where + ": " + error.message()};
}

}  // namespace

Result<void> Listener::open(const std::string& host, std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) return cannot("read the address", where, error);
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.set_option(ReusePort(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(backlog, error);
  if (error) return cannot("listen on", where, error);
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

Task<void> Listener::run() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(no_throw);
    if (error == asio::error::operation_aborted) co_return;
    const int open = worker_.runtime.connections.load(std::memory_order_relaxed);
    const bool full = open >= worker_.runtime.config.limits.connections;
    if (error || full) {
      SteadyTimer rest(worker_.executor());
      rest.expires_after(rest_after_error);
      co_await rest.async_wait(no_throw);
      continue;
    }
    spawn(worker_.executor(), "session", run_session(worker_, std::move(socket)));
  }
}

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
}

}  // namespace flashgate

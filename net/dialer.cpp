#include "net/dialer.hpp"

#include <array>

#include "protocol/http1_head.hpp"

namespace flashgate {
namespace {

constexpr std::size_t proxy_head_bytes_max = 16 * 1024;

DialFault fault_of(const error_code& error) {
  if (error == asio::error::operation_aborted) return DialFault::interrupted;
  if (error == asio::error::connection_refused) return DialFault::refused;
  return DialFault::unreachable;
}

std::string authority(const std::string& host, std::uint16_t port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

void Dial::interrupt() {
  interrupted_ = true;
  resolved_->interrupt();
  if (connection_) connection_->interrupt();
}

Task<DialFault> Dial::connect(std::string host, std::uint16_t port) {
  const Resolver::Endpoints* found = resolver_.find(host, port, std::chrono::steady_clock::now());
  if (found == nullptr) {
    resolver_.start(host, port, resolved_);
    co_await resolved_->wait();
    if (interrupted_) co_return DialFault::interrupted;
    found = resolver_.find(host, port, std::chrono::steady_clock::now());
  }
  if (found == nullptr) {
    detail_ = "the name does not resolve";
    co_return DialFault::name_not_found;
  }
  const Resolver::Endpoints endpoints = *found;
  DialFault fault = DialFault::unreachable;
  for (const asio::ip::tcp::endpoint& endpoint : endpoints) {
    if (interrupted_) co_return DialFault::interrupted;
    connection_ = std::make_unique<Connection>(executor_);
    TcpSocket& socket = connection_->socket();
    error_code error;
    socket.open(endpoint.protocol(), error);
    if (!error) socket.set_option(asio::ip::tcp::no_delay(true), error);
    if (!error) {
      auto [connect_error] = co_await socket.async_connect(endpoint, no_throw);
      error = connect_error;
    }
    if (!error) co_return DialFault::none;
    detail_ = error.message();
    fault = fault_of(error);
  }
  co_return interrupted_ ? DialFault::interrupted : fault;
}

Task<DialFault> Dial::tunnel(const DialTarget& target) {
  const std::string name = authority(target.host, target.port);
  std::string request = "CONNECT " + name + " HTTP/1.1\r\nHost: " + name + "\r\n";
  if (!target.proxy_authorization.empty())
    request += "Proxy-Authorization: " + target.proxy_authorization + "\r\n";
  request += "\r\n";
  const std::array<asio::const_buffer, 1> out{asio::buffer(request)};
  const IoResult written = co_await connection_->write_all(out);
  if (written.error) co_return fault_of(written.error);

  std::string reply;
  HeadScanner scanner;
  HeadLimits limits;
  limits.bytes_max = proxy_head_bytes_max;
  while (true) {
    // Whole reads are safe: inside the tunnel the backend says nothing before we have spoken.
    std::array<char, 1024> piece;
    const IoResult got = co_await connection_->read_some(piece.data(), piece.size());
    if (got.error == asio::error::operation_aborted) co_return DialFault::interrupted;
    if (got.error) {
      detail_ = "the proxy closed the connection";
      co_return DialFault::proxy;
    }
    reply.append(piece.data(), got.bytes);
    const HeadScanner::State state = scanner.scan(reply, limits, false);
    if (state == HeadScanner::State::incomplete) continue;
    ResponseHead head;
    HeadRefusal refusal;
    const bool parsed = state == HeadScanner::State::complete &&
                        parse_response_head(std::string_view(reply).substr(0, scanner.end()),
                                            limits, false, head, refusal);
    if (parsed && head.status / 100 == 2) co_return DialFault::none;
    detail_ = parsed ? "the proxy answered " + std::to_string(head.status)
                     : "the proxy's answer is not HTTP";
    co_return DialFault::proxy;
  }
}

Task<DialFault> Dial::run(const DialTarget& target) {
  const bool direct = target.proxy_host.empty();
  DialFault fault = co_await connect(direct ? target.host : target.proxy_host,
                                     direct ? target.port : target.proxy_port);
  if (fault != DialFault::none) co_return fault;
  if (!direct) {
    fault = co_await tunnel(target);
    if (fault != DialFault::none) co_return fault;
  }
  if (!target.tls) co_return DialFault::none;
  const error_code error =
      co_await connection_->handshake_as_client(*target.tls, target.host, target.insecure);
  if (!error) co_return DialFault::none;
  detail_ = error.message();
  co_return error == asio::error::operation_aborted ? DialFault::interrupted : DialFault::tls;
}

}  // namespace flashgate

#include "control/admin.hpp"

#include <openssl/crypto.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <thread>

#include "base/url.hpp"
#include "control/exposition.hpp"
#include "control/status.hpp"
#include "gateway/runtime.hpp"
#include "net/io.hpp"
#include "protocol/api_error.hpp"

namespace flashgate {
namespace {

namespace http = boost::beast::http;
using Stream = boost::beast::basic_stream<asio::ip::tcp, Executor>;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr std::chrono::seconds request_time{30};
constexpr std::size_t request_bytes_max = 64 * 1024;

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

class AdminService {
 public:
  AdminService(const Runtime& runtime, const Metrics& metrics)
      : runtime_(runtime), metrics_(metrics) {}

  Response answer(const Request& request) const {
    const std::string_view target(request.target().data(), request.target().size());
    const std::string_view path = target.substr(0, target.find('?'));
    if (!host_allowed(request))
      return refuse(request, 403, "This Host is not the admin listener's own address.");
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return refuse(request, 405, "The admin listener takes GET here.");
    if (path == "/livez") return reply(request, 200, "application/json", "{\"status\":\"alive\"}");
    if (path == "/readyz") {
      const bool ready = runtime_.ready && !runtime_.draining;
      return reply(request, ready ? 200 : 503, "application/json",
                   ready ? "{\"status\":\"ready\"}" : "{\"status\":\"not ready\"}");
    }
    const bool open = path == "/metrics" && runtime_.config.admin.metrics_public;
    if (!open && !authorized(request))
      return refuse(request, 401, "Send the admin token as `Authorization: Bearer …`.");
    if (path == "/metrics")
      return reply(request, 200, "text/plain; version=0.0.4; charset=utf-8",
                   prometheus_text(metrics_));
    if (path == "/status")
      return reply(request, 200, "application/json", status_json(runtime_, metrics_));
    return refuse(request, 404, "The admin listener has /metrics, /status, /livez and /readyz.");
  }

 private:
  /// Against DNS rebinding: without a token only names of this machine are answered.
  bool host_allowed(const Request& request) const {
    if (!runtime_.config.admin.token.empty()) return true;
    const auto field = request[http::field::host];
    const Result<HostPort> host = parse_host_port(
        std::string(field.data(), field.size()) +
        (std::string_view(field.data(), field.size()).find(':') == std::string_view::npos ? ":80"
                                                                                          : ""));
    return host.has_value() && is_loopback_address(host.value().host);
  }

  bool authorized(const Request& request) const {
    const Secret& token = runtime_.config.admin.token;
    if (token.empty()) return true;
    constexpr std::string_view scheme = "Bearer ";
    const auto field = request[http::field::authorization];
    const std::string_view value(field.data(), field.size());
    return value.starts_with(scheme) && same_secret(value.substr(scheme.size()), token.reveal());
  }

  static Response reply(const Request& request, unsigned status, std::string_view type,
                        std::string body) {
    Response response(http::int_to_status(status), request.version());
    response.set(http::field::content_type, boost::beast::string_view(type.data(), type.size()));
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    response.keep_alive(request.keep_alive());
    const std::size_t size = body.size();
    if (request.method() != http::verb::head) response.body() = std::move(body);
    response.content_length(size);
    return response;
  }

  static Response refuse(const Request& request, unsigned status, std::string message) {
    ApiError error{ApiErrorKind::invalid_request, std::move(message)};
    if (status == 404) error.kind = ApiErrorKind::unknown_path;
    if (status == 405) error.kind = ApiErrorKind::wrong_method;
    if (status == 401) error.kind = ApiErrorKind::invalid_api_key;
    Response response = reply(request, status, "application/json", error_body(error));
    if (status == 405) response.set(http::field::allow, "GET, HEAD");
    if (status == 401) response.set(http::field::www_authenticate, "Bearer");
    return response;
  }

  const Runtime& runtime_;
  const Metrics& metrics_;
};

Task<void> serve_admin(TcpSocket socket, const AdminService& service) {
  Stream stream(std::move(socket));
  boost::beast::flat_buffer buffer(request_bytes_max);
  while (true) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(16 * 1024);
    parser.body_limit(std::size_t{16} * 1024);
    stream.expires_after(request_time);
    auto [read_error, read_bytes] = co_await http::async_read(stream, buffer, parser, no_throw);
    if (read_error) co_return;
    Response response = service.answer(parser.get());
    stream.expires_after(request_time);
    auto [write_error, write_bytes] = co_await http::async_write(stream, response, no_throw);
    if (write_error || !response.keep_alive()) co_return;
  }
}

}  // namespace

struct Admin::Parts {
  Parts(const Runtime& shared, const Metrics& metrics)
      : runtime(shared), service(shared, metrics), acceptor(io.get_executor()) {}

  Task<void> accept() {
    while (acceptor.is_open()) {
      auto [error, socket] = co_await acceptor.async_accept(no_throw);
      if (error == asio::error::operation_aborted) co_return;
      if (error) {
        SteadyTimer rest(io.get_executor());
        rest.expires_after(std::chrono::milliseconds(50));
        co_await rest.async_wait(no_throw);
        continue;
      }
      asio::co_spawn(io.get_executor(), serve_admin(std::move(socket), service),
                     [](const std::exception_ptr&) {});
    }
  }

  const Runtime& runtime;
  AdminService service;
  asio::io_context io{1};
  asio::basic_socket_acceptor<asio::ip::tcp, Executor> acceptor;
  std::thread thread;
  std::uint16_t port = 0;
};

Admin::Admin(const Runtime& runtime, const Metrics& metrics)
    : parts_(std::make_unique<Parts>(runtime, metrics)) {}

Admin::~Admin() {
  stop();
}

std::uint16_t Admin::port() const {
  return parts_->port;
}

Result<void> Admin::start() {
  const AdminConfig& config = parts_->runtime.config.admin;
  const std::string where = config.host + ":" + std::to_string(config.port);
  error_code error;
  const auto address =
      asio::ip::make_address(config.host == "localhost" ? "127.0.0.1" : config.host, error);
  const asio::ip::tcp::endpoint endpoint(address, config.port);
  if (!error) parts_->acceptor.open(endpoint.protocol(), error);
  if (!error) parts_->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) parts_->acceptor.bind(endpoint, error);
  if (!error) parts_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error{"listen_failed", "cannot listen on " + where + ": " + error.message()};
  parts_->port = parts_->acceptor.local_endpoint(error).port();
  asio::co_spawn(parts_->io.get_executor(), parts_->accept(), [](const std::exception_ptr&) {});
  parts_->thread = std::thread([parts = parts_.get()] { parts->io.run(); });
  return {};
}

void Admin::stop() {
  parts_->io.stop();
  if (parts_->thread.joinable()) parts_->thread.join();
}

}  // namespace flashgate

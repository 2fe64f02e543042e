#include "net/connection.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>

namespace flashgate {
namespace {

const error_code aborted = asio::error::operation_aborted;
constexpr std::size_t pieces_max = 16;

error_code last_error() {
  return {errno, boost::system::system_category()};
}

/// The part of a gather list after its first `skip` bytes.
class Rest {
 public:
  Rest(std::span<const asio::const_buffer> buffers, std::size_t skip) {
    for (asio::const_buffer buffer : buffers) {
      const std::size_t cut = std::min(skip, buffer.size());
      skip -= cut;
      buffer += cut;
      if (buffer.size() > 0 && count_ < pieces_max) pieces_[count_++] = buffer;
    }
  }
  std::span<const asio::const_buffer> view() const { return {pieces_.data(), count_}; }
  bool empty() const { return count_ == 0; }

 private:
  std::array<asio::const_buffer, pieces_max> pieces_{};
  std::size_t count_ = 0;
};

bool is_ip_literal(const std::string& name) {
  error_code error;
  asio::ip::make_address(name, error);
  return !error;
}

}  // namespace

struct Connection::Tls {
  Tls(TcpSocket& socket, asio::ssl::context& context) : stream(socket, context) {}
  asio::ssl::stream<TcpSocket&> stream;
};

Connection::Connection(Executor executor) : socket_(executor) {}
Connection::Connection(TcpSocket socket) : socket_(std::move(socket)) {}
Connection::~Connection() {
  if (gauge_ != nullptr) gauge_->fetch_sub(1, std::memory_order_relaxed);
}

void Connection::count_in(std::atomic<int>& gauge) {
  if (gauge_ != nullptr) return;
  gauge_ = &gauge;
  gauge.fetch_add(1, std::memory_order_relaxed);
}

Task<error_code> Connection::handshake_as_client(asio::ssl::context& context,
                                                 std::string server_name, bool insecure) {
  tls_ = std::make_unique<Tls>(socket_, context);
  SSL* const ssl = tls_->stream.native_handle();
  if (!is_ip_literal(server_name)) SSL_set_tlsext_host_name(ssl, server_name.c_str());
  if (insecure) {
    SSL_set_verify(ssl, SSL_VERIFY_NONE, nullptr);
  } else {
    error_code error;
    tls_->stream.set_verify_mode(asio::ssl::verify_peer, error);
    tls_->stream.set_verify_callback(asio::ssl::host_name_verification(server_name), error);
    if (error) co_return error;
  }
  if (interrupted_) co_return aborted;
  auto [error] = co_await tls_->stream.async_handshake(asio::ssl::stream_base::client, no_throw);
  co_return error;
}

Task<error_code> Connection::handshake_as_server(asio::ssl::context& context) {
  tls_ = std::make_unique<Tls>(socket_, context);
  if (interrupted_) co_return aborted;
  auto [error] = co_await tls_->stream.async_handshake(asio::ssl::stream_base::server, no_throw);
  co_return error;
}

Task<IoResult> Connection::read_some(void* data, std::size_t bytes) {
  if (interrupted_) co_return IoResult{aborted, 0};
  const asio::mutable_buffer buffer(data, bytes);
  if (tls_) {
    auto [error, count] = co_await tls_->stream.async_read_some(buffer, no_throw);
    co_return IoResult{error, count};
  }
  auto [error, count] = co_await socket_.async_read_some(buffer, no_throw);
  co_return IoResult{error, count};
}

Task<error_code> Connection::wait_readable() {
  if (interrupted_) co_return aborted;
  auto [error] = co_await socket_.async_wait(TcpSocket::wait_read, no_throw);
  co_return error;
}

IoResult Connection::try_read(void* data, std::size_t bytes) {
  const ssize_t count = ::recv(socket_.native_handle(), data, bytes, MSG_DONTWAIT);
  if (count > 0) return {{}, static_cast<std::size_t>(count)};
  if (count == 0) return {asio::error::eof, 0};
  if (errno == EAGAIN || errno == EINTR) return {asio::error::would_block, 0};
  return {last_error(), 0};
}

IoResult Connection::try_write(std::span<const asio::const_buffer> buffers) {
  std::array<iovec, pieces_max> pieces;
  std::size_t count = 0;
  for (const asio::const_buffer& buffer : buffers) {
    if (buffer.size() == 0) continue;
    if (count == pieces_max) break;
    pieces[count++] = {const_cast<void*>(buffer.data()), buffer.size()};
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return {{}, static_cast<std::size_t>(sent)};
  if (errno == EAGAIN || errno == EINTR) return {asio::error::would_block, 0};
  return {last_error(), 0};
}

Task<IoResult> Connection::write_all(std::span<const asio::const_buffer> buffers) {
  if (interrupted_) co_return IoResult{aborted, 0};
  if (tls_) {
    auto [error, count] = co_await asio::async_write(tls_->stream, buffers, no_throw);
    co_return IoResult{error, count};
  }
  const IoResult first = try_write(buffers);
  if (first.error && first.error != asio::error::would_block) co_return first;
  if (first.bytes == asio::buffer_size(buffers)) co_return first;
  std::size_t written = first.bytes;
  while (true) {
    const Rest rest(buffers, written);
    if (rest.empty()) co_return IoResult{{}, written};
    if (interrupted_) co_return IoResult{aborted, written};
    auto [wait_error] = co_await socket_.async_wait(TcpSocket::wait_write, no_throw);
    if (wait_error) co_return IoResult{wait_error, written};
    const IoResult more = try_write(rest.view());
    if (more.error && more.error != asio::error::would_block)
      co_return IoResult{more.error, written};
    written += more.bytes;
  }
}

void Connection::interrupt() {
  interrupted_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

Connection::Peer Connection::peer() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const int fd = const_cast<TcpSocket&>(socket_).native_handle();
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Peer::gone;
  switch (info.tcpi_state) {
    case TCP_ESTABLISHED:
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
    case TCP_SYN_SENT:
    case TCP_SYN_RECV:
      return Peer::open;
    case TCP_CLOSE_WAIT:
      return Peer::half_closed;
    default:
      return Peer::gone;
  }
}

void Connection::probe_peer() {
  const char byte = '\n';
  (void)::send(socket_.native_handle(), &byte, 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Connection::is_quiet() {
  char byte = 0;
  const ssize_t count = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EINTR);
}

void Connection::close() {
  error_code ignored;
  socket_.close(ignored);
}

void Connection::reset() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

void Connection::shutdown_send() {
  error_code ignored;
  socket_.shutdown(TcpSocket::shutdown_send, ignored);
}

}  // namespace flashgate

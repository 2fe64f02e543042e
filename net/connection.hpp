#pragma once
// One TCP connection, with TLS or without: the thin seam over socket reads and writes.
// `interrupt()` makes the pending and every later operation fail with operation_aborted until
// `clear_interrupt()`: deadlines and departures act through it. One worker only.
#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <span>
#include <string>

#include "net/event.hpp"

namespace flashgate {

class Connection final : public Interruptible {
 public:
  explicit Connection(Executor executor);
  explicit Connection(TcpSocket socket);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Counts this connection in `gauge` for as long as it lives.
  void count_in(std::atomic<int>& gauge);

  TcpSocket& socket() { return socket_; }
  bool is_tls() const { return tls_ != nullptr; }
  bool is_open() const { return socket_.is_open(); }

  /// TLS over the connected socket; `server_name` for SNI and the certificate check, unless
  /// insecure.
  Task<error_code> handshake_as_client(asio::ssl::context& context, std::string server_name,
                                       bool insecure);
  Task<error_code> handshake_as_server(asio::ssl::context& context);

  Task<IoResult> read_some(void* data, std::size_t bytes);
  /// Without TLS: waits for bytes or an end without holding a buffer; then use try_read.
  Task<error_code> wait_readable();
  /// Never blocks; would_block when there is nothing. Without TLS only.
  IoResult try_read(void* data, std::size_t bytes);
  /// Writes everything; tries at once and only then waits.
  Task<IoResult> write_all(std::span<const asio::const_buffer> buffers);

  void interrupt() override;
  void clear_interrupt() { interrupted_ = false; }
  bool interrupted() const { return interrupted_; }

  enum class Peer { open, half_closed, gone };
  /// What the kernel knows of the peer now; one system call.
  Peer peer() const;
  /// Puts one urgent byte on the wire, which no reader of the stream sees: a peer that has closed
  /// altogether answers with a reset, one that only finished sending does not (RFC 9293 §3.10.7).
  void probe_peer();
  /// True if an idle connection has nothing to say: no bytes, no end, no error.
  bool is_quiet();

  void close();
  /// Close with a reset, so that the peer's kernel tells its program at once.
  void reset();
  /// End of our side; the peer may still read what was written.
  void shutdown_send();

 private:
  struct Tls;
  IoResult try_write(std::span<const asio::const_buffer> buffers);

  TcpSocket socket_;
  std::unique_ptr<Tls> tls_;
  bool interrupted_ = false;
  std::atomic<int>* gauge_ = nullptr;
};

}  // namespace flashgate

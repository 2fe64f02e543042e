#pragma once
// One client connection: reads a request through the header gate, hands it to its endpoint, and
// again, until either side closes. One coroutine on one worker.
#include <span>
#include <string>
#include <string_view>

#include "gateway/call_monitor.hpp"
#include "gateway/worker.hpp"
#include "protocol/exchange.hpp"
#include "protocol/http1_head.hpp"

namespace flashgate {

class Session {
 public:
  Session(Worker& worker, TcpSocket socket);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Task<void> run();
  /// Between requests the connection closes; within one it will close after, or now if `hard`.
  void drain(bool hard);

  Worker& worker() { return worker_; }
  Runtime& runtime() { return worker_.runtime; }
  CallMonitor& monitor() { return monitor_; }
  Connection& client() { return client_; }
  const RequestHead& head() const { return head_; }
  TimePoint started() const { return started_; }
  std::string_view peer_address() const { return peer_address_; }
  /// False: the answer must say close.
  bool keeps_alive() const { return keep_alive_ && !draining_; }
  void close_after() { keep_alive_ = false; }
  /// The client's kernel has acknowledged nothing for client_stall.
  bool stalled() const { return stalled_; }

  /// Body bytes that came with the head, and what follows them.
  BodyBuffer& input() { return in_; }
  std::size_t body_begin() const { return scanner_.end(); }
  /// After input() has grown by other means than read_more(): views of head() are renewed.
  void renew_head();
  /// Everything of input() before `offset` is used up.
  void consumed(std::size_t offset) { consumed_ = offset; }

  /// Reads at least one byte into `to`, or says why not (monitor().stop() for interruptions).
  Task<IoResult> read_more(BodyBuffer& to, TimePoint at, Stop reason);
  /// Bounded by client_stall.
  Task<bool> write(std::span<const asio::const_buffer> buffers);
  /// A whole answer of ours; false if the client is gone.
  Task<bool> answer(int status, std::string_view extra_headers, std::string_view content_type,
                    std::string_view body);
  /// For an answer sent before the request was read: lets the client read it (RFC 9112 §9.6).
  Task<void> close_gracefully();

 private:
  Task<bool> read_head();
  Task<void> refuse_head(HeadRefusal refusal);
  void next_request();

  Worker& worker_;
  Connection client_;
  CallMonitor monitor_;
  BodyBuffer in_;
  HeadScanner scanner_;
  RequestHead head_;
  HeadLimits limits_;
  TimePoint started_{};
  std::string peer_address_{};
  std::size_t consumed_ = 0;
  bool keep_alive_ = true;
  bool draining_ = false;
  bool has_head_ = false;  // head_ has views into in_
  bool idle_ = false;
  bool stalled_ = false;
};

}  // namespace flashgate

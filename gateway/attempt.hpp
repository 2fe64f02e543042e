#pragma once
// One attempt at one backend: connection, request, the head of the answer; then reply or
// stream_relay carry the rest. Built from the target's own configuration alone, with the full body.
// An attempt that did not reach the client leaves a Failure. One call's own.
#include <functional>
#include <memory>
#include <string>

#include "gateway/call.hpp"
#include "protocol/body_decoder.hpp"
#include "protocol/token_usage.hpp"

namespace flashgate {

/// What the head of an answer says, copied out of the read buffer.
struct UpstreamHead {
  int status = 0;
  bool event_stream = false;
  bool keep_alive = false;
  std::string content_type{};
  std::string content_encoding{};
  std::string forwarded{};  // allow-listed fields, each line with CRLF
  std::optional<Duration> retry_after{};
  Duration keep = UpstreamPool::idle_time;
};

class Attempt {
 public:
  Attempt(Call& call, ProfileState& profile, Backend& backend, const Candidate& candidate);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// True: the client has its answer, or is gone, or the call must end. False: see failure().
  Task<bool> run();
  Failure& failure() { return failure_; }
  AttemptVerdict verdict() const { return verdict_; }

  // For reply and stream_relay:
  Call& call() { return call_; }
  Connection& upstream() { return *connection_; }
  bool has_connection() const { return connection_ != nullptr; }
  Backend& backend() { return backend_; }
  ProfileState& profile() { return profile_; }
  const UpstreamHead& head() const { return head_; }
  BodyDecoder& decoder() { return decoder_; }
  BodyBuffer& raw() { return raw_; }
  /// Where the body begins in raw().
  std::size_t raw_begin() const { return raw_begin_; }
  TimePoint started() const { return started_; }
  /// Limit of an attempt that is not streamed.
  TimePoint unary_until() const { return started_ + profile_.config.timeouts.total_unary; }
  bool asked_usage() const { return asked_usage_; }

  /// Waits for bytes and puts them at `to`, which only an eager or a TLS read holds while it waits;
  /// an eager one tries first.
  Task<IoResult> read(void* to, std::size_t bytes, TimePoint at, Stop reason, bool eager = false);
  /// The exchange ended cleanly: the connection may serve again.
  void release_connection();
  void drop_connection();
  void set_verdict(AttemptVerdict verdict) { verdict_ = verdict; }
  /// Says what went wrong before the commit; always false.
  bool fail(TransportFault fault, ApiErrorKind kind, std::string message);
  /// After an interrupted wait: true if the whole call is over, else the failure is set.
  bool interrupted(const char* waiting_for);
  /// Gives back what the attempt holds, before the answer's last byte: a client that asks again at
  /// once must find it free.
  void settle() {
    if (on_settle_) on_settle_();
  }
  void on_settle(std::function<void()> action) { on_settle_ = std::move(action); }
  void learn_usage(const TokenUsage& usage, double output_estimate);

 private:
  enum class Sent { whole, partly, failed };
  Task<bool> connect();
  Task<bool> connect_fresh();
  bool dial_failed(DialFault fault, const std::string& detail);
  Task<Sent> send();
  Task<Sent> send_rest(std::vector<asio::const_buffer> pieces, std::size_t sent);
  Task<bool> receive_head();
  bool take_head(std::size_t head_bytes);
  void copy_head(const ResponseHead& head);
  bool head_ended(const IoResult& got);
  std::string request_head(std::size_t body_bytes) const;

  Call& call_;
  ProfileState& profile_;
  Backend& backend_;
  const Candidate& candidate_;
  std::unique_ptr<Connection> connection_;
  BodyBuffer raw_;
  std::size_t raw_begin_ = 0;
  HeadScanner scanner_;
  UpstreamHead head_;
  BodyDecoder decoder_;
  Failure failure_;
  std::function<void()> on_settle_{};
  TimePoint started_{};
  AttemptVerdict verdict_ = AttemptVerdict::neutral;
  bool reused_ = false;
  bool stale_ = false;
  bool sent_whole_ = false;
  bool asked_usage_ = false;
};

/// The request head for `backend`: forwarded fields by rule, then the backend's own.
std::string upstream_request_head(Call& call, const Backend& backend, std::size_t body_bytes);
/// Fields of a backend's answer that clients may see.
std::string forwarded_fields(const ResponseHead& head);

/// Carry the rest of an answer; as Attempt::run().
Task<bool> relay_reply(Attempt& attempt);
Task<bool> relay_stream(Attempt& attempt);

}  // namespace flashgate

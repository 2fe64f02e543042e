#pragma once
// Stop 8 of a request: what happened becomes one log line and its metrics, exactly once, whatever
// way the call ended. Also writes our own answers, so that no refusal goes unrecorded.
#include "gateway/session.hpp"
#include "protocol/api_error.hpp"
#include "protocol/exchange.hpp"

namespace flashgate {

class Recorder {
 public:
  explicit Recorder(Session& session);
  /// Writes the line if finish() was never reached.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Exchange& exchange() { return exchange_; }
  void set_profile(int profile) { profile_ = profile; }
  int profile() const { return profile_; }
  /// The id that client, backend and log share: the client's if it is sound, else ours.
  std::string_view shared_id() const;
  /// Adopts the client's request id after validation.
  void adopt_client_id();

  /// x-request-id, openai-processing-ms, x-flashgate-*; each line ends with CRLF.
  void append_headers(std::string& out) const;

  /// Answers with `error` and finishes. Closes the connection where the request was not read.
  Task<void> refuse(const ApiError& error);
  /// As refuse(), with the outcome and the body already known.
  Task<void> refuse_with(const ApiError& error, Outcome outcome, std::string_view extra_headers);
  void finish(int status, Outcome outcome);
  bool finished() const { return finished_; }

 private:
  Session& session_;
  Exchange exchange_{};
  int profile_ = -1;
  bool finished_ = false;
};

Outcome outcome_of(ApiErrorKind kind);

}  // namespace flashgate

#pragma once
// Watches an event stream beside the relay: cuts it into whole events, says what each is, and
// keeps usage, finish reasons and errors. The sequence of events does not depend on how the bytes
// are segmented. Memory is bounded by `inspect_bytes_max`, time is linear, a typical event costs
// no allocation. One stream, one thread at a time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/api_kind.hpp"
#include "protocol/token_usage.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

enum class SseKind {
  comment,   // nothing that a client would dispatch, or a ping
  preamble,  // role only, empty choices, empty delta: no content yet
  content,   // text, reasoning, refusal, audio or a tool call
  finish,    // finish_reason without content
  usage,     // usage and no choices
  done,      // [DONE], message_stop, response.completed
  error,
  other,         // valid events that we do not know
  unterminated,  // part of an event over the cap or cut off by the end: not inspected
};

struct SseEvent {
  std::string_view bytes{};  // raw, the blank line included; valid during the callback only
  SseKind kind = SseKind::other;
  /// False: more bytes of this event follow, or the stream ended inside it.
  bool ends_event = true;
};

struct StreamFacts {
  bool content_seen = false;
  bool done_seen = false;
  bool error_seen = false;
  bool finished = false;  // every choice has a finish reason
  bool tool_calls = false;
  bool ids = false;  // the stream carries `id:` fields
  std::string finish_reason{};
  std::string response_id{};
  TokenUsage usage{};
  std::uint64_t events = 0;
  std::uint64_t content_events = 0;
  std::uint64_t bytes = 0;
  std::uint64_t uninspected = 0;
  std::string error_message{};  // at most 2 KiB, as the backend wrote it: mask before showing
  std::string error_code{};
  std::string error_type{};
  int error_status = 0;  // the HTTP status that the error stands for; 0: unknown
  std::size_t output_text_bytes = 0;
  double output_tokens_estimate = 0;
};

struct SseOptions {
  ApiKind api = ApiKind::chat;
  std::size_t inspect_bytes_max = 1024 * 1024;
  TokenizerFamily family = TokenizerFamily::o200k;
  /// The client did not ask for usage: usage-only events are swallowed, `"usage":null` cut out.
  bool strip_usage = false;
  int choices = 1;  // how many finish reasons to wait for
};

class SseScanner {
 public:
  explicit SseScanner(SseOptions options) : options_(options) {}

  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    facts_.bytes += bytes.size();
    SseEvent event;
    while (next(bytes, event)) sink(event);
  }
  /// The stream ended. What is left of an unfinished event comes with ends_event = false: with its
  /// own kind if its data is whole (only the blank line is missing), else as unterminated.
  template <class Sink>
  void finish(Sink&& sink) {
    SseEvent event;
    if (last(event)) sink(event);
  }

  const StreamFacts& facts() const { return facts_; }
  /// Bytes of an unfinished event are held or have been passed on: nothing may be written between.
  bool mid_event() const { return passing_ || !held_.empty(); }

 private:
  enum class LineEnd : std::uint8_t { none, lf, crlf, cr };

  bool next(std::string_view& bytes, SseEvent& event);
  bool last(SseEvent& event);
  std::size_t scan(std::string_view bytes);
  bool emit(std::string_view bytes, bool ends, SseEvent& event);
  void classify(std::string_view bytes, SseEvent& event);
  bool join_data(std::string_view bytes, std::string_view& data);
  void interpret(std::string_view data, std::string_view event_bytes, SseEvent& event);
  void cut_usage(std::string_view data, std::string_view event_bytes, SseEvent& event);

  SseOptions options_;
  StreamFacts facts_{};
  std::string held_{};     // the beginning of an unfinished event
  std::string joined_{};   // data lines of one event, joined
  std::string spliced_{};  // an event without its `"usage":null`
  std::string text_{};     // decoded output that is not in the estimate yet
  double estimated_ = 0;
  std::string_view event_name_{};
  std::array<std::uint64_t, 2> choices_seen_{};
  std::array<std::uint64_t, 2> choices_finished_{};
  LineEnd line_end_ = LineEnd::none;  // of the line before
  bool cr_pending_ = false;           // a CR whose LF may still come
  bool line_has_bytes_ = false;
  bool passing_ = false;  // inside an event over the cap
  bool held_given_ = false;
  bool started_ = false;
};

}  // namespace flashgate

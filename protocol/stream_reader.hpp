#pragma once
// What each event of a stream means, and what the stream says in sum: chat and completions chunks,
// Responses events, Messages events. Reads only, any bytes, linear. One stream, one thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/backend_report.hpp"
#include "protocol/output_text.hpp"
#include "protocol/request_facts.hpp"
#include "protocol/token_usage.hpp"

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
  std::uint64_t events = 0;  // without comments
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

class StreamReader {
 public:
  StreamReader(TokenizerFamily family, int choices) : output_(family), choices_(choices) {}

  /// `data` is the joined data of one event, `name` its `event:` field.
  SseKind read(std::string_view data, std::string_view name);
  /// The stream ended: makes the token estimate exact.
  void settle();

  const StreamFacts& facts() const { return facts_; }
  StreamFacts& facts() { return facts_; }
  /// Of the last event: its `"usage":null` with one comma, or empty.
  ByteRange null_usage() const { return chunk_.null_usage; }

 private:
  // What one event held; raw values, since members may come in any order.
  struct Chunk {
    std::string_view type{};
    std::string_view object{};
    std::string_view delta{};
    std::string_view nested{};  // response, message or content_block
    bool is_json = false;
    bool error = false;
    bool choices_key = false;
    bool choices = false;
    bool content = false;
    bool finish = false;
    bool usage = false;
    ByteRange null_usage{};
  };

  bool walk(std::string_view data);
  void walk_member(JsonCursor& json, std::string_view data, JsonString key);
  void walk_usage(JsonCursor& json, std::string_view data);
  void walk_choices(JsonCursor& json);
  void walk_choice(JsonCursor& json, std::size_t position);
  bool walk_finish(JsonCursor& json);
  void walk_nested(bool with_usage);
  void end_choice(std::size_t index);
  SseKind kind_of(std::string_view name);
  SseKind chat_kind() const;
  SseKind response_kind();
  SseKind message_kind();
  bool is_error(std::string_view name) const;
  SseKind take_error();
  bool add_delta(bool as_text);

  OutputText output_;
  StreamFacts facts_{};
  Chunk chunk_{};
  BackendError error_{};
  int choices_;
  std::array<std::uint64_t, 2> seen_{};
  std::array<std::uint64_t, 2> ended_{};
};

}  // namespace flashgate

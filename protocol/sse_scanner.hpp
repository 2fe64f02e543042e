#pragma once
// Watches an event stream beside the relay: cuts it into whole events, says what each is, and
// keeps usage, finish reasons and errors. The sequence of events does not depend on how the bytes
// are segmented. Memory is bounded by `inspect_bytes_max`, time is linear, a typical event costs
// no allocation. One stream, one thread at a time.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/api_kind.hpp"
#include "protocol/stream_reader.hpp"

namespace flashgate {

struct SseEvent {
  std::string_view bytes{};  // raw, the blank line included; valid during the callback only
  SseKind kind = SseKind::other;
  /// False: more bytes of this event follow, or the stream ended inside it.
  bool ends_event = true;
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
  explicit SseScanner(SseOptions options)
      : options_(options), reader_(options.family, options.choices) {}

  /// Calls `sink(const SseEvent&)` for each event that these bytes complete.
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    reader_.facts().bytes += bytes.size();
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

  const StreamFacts& facts() const { return reader_.facts(); }
  /// Bytes of an unfinished event are held or have been passed on: nothing may be written between.
  bool mid_event() const { return passing_ || (!held_given_ && !held_.empty()); }

 private:
  enum class LineEnd : std::uint8_t { none, lf, crlf, cr };

  bool next(std::string_view& bytes, SseEvent& event);
  bool last(SseEvent& event);
  std::size_t scan(std::string_view bytes);
  bool classify(std::string_view bytes, SseEvent& event);
  void take_line(std::string_view line);
  void cut_usage(std::string_view bytes, SseEvent& event);
  void let_go();

  SseOptions options_;
  StreamReader reader_;
  std::string held_{};     // the beginning of an unfinished event
  std::string joined_{};   // several data lines of one event
  std::string spliced_{};  // an event without its `"usage":null`
  std::string_view data_{};
  std::string_view name_{};
  int data_lines_ = 0;
  LineEnd line_end_ = LineEnd::none;  // of the line before
  bool cr_pending_ = false;           // a CR whose LF may still come
  bool line_has_bytes_ = false;
  bool passing_ = false;     // inside an event over the cap
  bool held_given_ = false;  // held_ was given to the sink and can go
  bool started_ = false;
};

}  // namespace flashgate

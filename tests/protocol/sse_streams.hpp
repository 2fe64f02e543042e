#pragma once
// Pieces of event streams for tests, and a scanner run over them that collects what came out.
#include <string>
#include <string_view>
#include <vector>

#include "protocol/sse_scanner.hpp"

namespace flashgate {

inline std::string chunk(std::string_view delta, std::string_view finish = "null", int index = 0) {
  return R"(data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":)" +
         std::to_string(index) + R"(,"delta":)" + std::string(delta) + R"(,"finish_reason":)" +
         std::string(finish) + "}]}\n\n";
}
inline std::string content(std::string_view text) {
  return chunk(R"({"content":")" + std::string(text) + R"("})");
}
inline const std::string role_chunk = chunk(R"({"role":"assistant","content":""})");
inline const std::string finish_chunk = chunk("{}", R"("stop")");
inline const std::string usage_chunk =
    R"(data: {"id":"c1","object":"chat.completion.chunk","choices":[],"usage":)"
    R"({"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,)"
    R"("prompt_tokens_details":{"cached_tokens":3},)"
    R"("completion_tokens_details":{"reasoning_tokens":2}}})"
    "\n\n";
inline const std::string done_event = "data: [DONE]\n\n";

struct SeenEvent {
  std::string bytes{};
  SseKind kind = SseKind::other;
  bool ends_event = true;
  bool operator==(const SeenEvent&) const = default;
};

struct Seen {
  std::vector<SeenEvent> events{};
  StreamFacts facts{};

  std::string bytes() const {
    std::string out;
    for (const SeenEvent& event : events) out += event.bytes;
    return out;
  }
  std::vector<SseKind> kinds() const {
    std::vector<SseKind> out;
    for (const SeenEvent& event : events) out.push_back(event.kind);
    return out;
  }
};

/// Pieces of one event over the cap are joined, since their number depends on the segments.
inline void collect(std::vector<SeenEvent>& events, const SseEvent& event) {
  if (event.kind == SseKind::unterminated && !events.empty() && !events.back().ends_event) {
    events.back().bytes += event.bytes;
    events.back().ends_event = event.ends_event;
    return;
  }
  events.push_back({std::string(event.bytes), event.kind, event.ends_event});
}

/// Each segment is its own heap block, so that a view kept too long is a sanitizer's find.
inline Seen scan_segments(const std::vector<std::string>& segments, SseOptions options = {}) {
  Seen seen;
  SseScanner scanner(options);
  const auto sink = [&seen](const SseEvent& event) { collect(seen.events, event); };
  for (const std::string& segment : segments) {
    const std::vector<char> copy(segment.begin(), segment.end());
    scanner.feed({copy.data(), copy.size()}, sink);
  }
  scanner.finish(sink);
  seen.facts = scanner.facts();
  return seen;
}

inline Seen scan_stream(const std::string& stream, SseOptions options = {}) {
  return scan_segments({stream}, options);
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace flashgate

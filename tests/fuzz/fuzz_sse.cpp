// Event streams: the bytes that come out are those that went in, and the events are the same when
// the stream is fed in one piece and in pieces whose sizes the input chooses.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/sse_scanner.hpp"

namespace {

using namespace flashgate;

struct Event {
  std::string bytes{};
  SseKind kind = SseKind::other;
  bool ends_event = true;
  bool operator==(const Event&) const = default;
};

std::vector<Event> run(std::string_view stream, SseOptions options, std::string_view cuts) {
  std::vector<Event> events;
  SseScanner scanner(options);
  const auto sink = [&events](const SseEvent& event) {
    const bool more =
        event.kind == SseKind::unterminated && !events.empty() && !events.back().ends_event;
    if (!more) events.push_back({});
    events.back().bytes += event.bytes;
    events.back().kind = event.kind;
    events.back().ends_event = event.ends_event;
  };
  for (std::size_t i = 0; !stream.empty(); ++i) {
    std::size_t size = stream.size();
    if (!cuts.empty()) {
      size =
          std::min<std::size_t>(size, static_cast<unsigned char>(cuts[i % cuts.size()]) % 32 + 1);
    }
    const std::vector<char> segment(stream.begin(), stream.begin() + static_cast<long>(size));
    scanner.feed({segment.data(), segment.size()}, sink);
    stream.remove_prefix(size);
  }
  scanner.finish(sink);
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  SseOptions options;
  options.strip_usage = (data[0] & 1) != 0;
  options.inspect_bytes_max = (data[0] & 2) != 0 ? 64 : 1 << 20;
  options.choices = data[0] >> 4;
  const std::string_view stream = input.substr(6);
  const std::vector<Event> whole = run(stream, options, {});
  if (run(stream, options, input.substr(1, 5)) != whole) std::abort();
  std::string bytes;
  for (const Event& event : whole) bytes += event.bytes;
  if (!options.strip_usage && bytes != stream) std::abort();
  return 0;
}

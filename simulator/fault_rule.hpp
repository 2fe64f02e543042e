#pragma once
// What can go wrong in a simulated backend, and for which requests: one FaultRule per line of the
// table in docs/simulator.md, written `kind[=value],argument=value,…,condition=value`.
// Choosing is a pure function of seed, ordinal and request. Plain values, any thread.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace flashgate {

enum class FaultKind {
  none,           // a clean answer; ends the search for more rules
  refuse,         // reset right after accept; for one request: reset before any byte
  reset,          // RST at a position
  cut,            // FIN at a position
  stall,          // silence at a position
  garbage,        // bytes that are not HTTP, or not a body
  wrong_length,   // Content-Length off by `delta`
  no_last_chunk,  // a chunked body that just ends
  bad_chunk,      // a chunk-size line that is none
  cl_te,          // Content-Length and Transfer-Encoding
  until_close,    // no framing: the body ends with the connection
  http10,         // an HTTP/1.0 answer
  interim,        // 1xx before the answer
  status,         // an error answer
  redirect,       // 3xx with Location
  error_event,    // an error inside a 200
  empty,          // a 200 with no content
  role_only,      // the first event, then the end of the connection
  no_done,        // the stream's end marker is missing
  no_finish,      // the finish reason is missing
  sse,            // odd but legal event streams
  one_byte,       // every byte its own segment
  tiny_chunks,    // every byte its own chunk
  drip,           // a few bytes at a time with pauses
  huge_line,      // one very long event, or a line that never ends
  big_header,     // large response headers
  gzip,           // a compressed answer
  close_idle,     // the kept connection is closed without notice
  extra,          // bytes nobody asked for after the answer
  raw,            // exactly these bytes
};

/// Conditions; all must hold.
struct FaultWhen {
  double probability = 1;
  std::uint64_t every = 0;  // 0: not asked; else ordinals divisible by it
  std::uint64_t request_first = 1;
  std::uint64_t request_last = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t attempt_first = 1;  // how often this simulator has seen this very body
  std::uint64_t attempt_last = std::numeric_limits<std::uint64_t>::max();
  std::string path{};   // prefix
  std::string model{};  // as asked for
  std::string on{};     // name of the simulator
  std::optional<bool> stream{};
};

/// A position in the answer. The first one set counts; none: before the first byte.
struct FaultPlace {
  std::optional<std::uint64_t> after_bytes{};       // of all bytes sent, interim answers included
  std::optional<std::uint64_t> after_body_bytes{};  // of the body as framed
  std::optional<std::uint64_t> after_events{};      // a unary body is one event
  std::uint64_t plus_bytes = 0;                     // so many bytes into the next event
  bool set() const { return after_bytes || after_body_bytes || after_events; }
};

struct FaultRule {
  FaultKind kind = FaultKind::none;
  FaultWhen when{};
  FaultPlace place{};
  int status = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 1;
  std::int64_t delta = 0;
  Duration duration{};  // 0 for stall: until the client leaves
  std::string style{};
  std::string text{};  // message, raw bytes, bad chunk size, Location
  std::string code{};
  std::vector<std::pair<std::string, std::string>> headers{};
  bool keep = false;
};

/// What the conditions look at.
struct FaultFacts {
  std::uint64_t ordinal = 1;
  std::uint64_t attempt = 1;
  std::string_view path{};
  std::string_view model{};
  std::string_view name{};
  bool stream = false;
};

std::string_view name(FaultKind kind);
/// Commas, semicolons and bytes that can't be typed are written \x2c, \x3b, \r, \n, \0, \\.
Result<FaultRule> parse_fault_rule(std::string_view text);
/// Several rules separated by `;`, as in the header x-sim-fault.
Result<std::vector<FaultRule>> parse_fault_rules(std::string_view text);
/// A `refuse` that looks at nothing of the request: it happens before one is read.
bool is_for_accept(const FaultRule& rule);
/// Rules that hold for this request, in order. Deterministic in `seed` and the facts.
std::vector<FaultRule> choose_faults(const std::vector<FaultRule>& rules, const FaultFacts& facts,
                                     std::uint64_t seed);
/// One line per kind, for --help and for the docs' test.
std::string describe_faults();

}  // namespace flashgate

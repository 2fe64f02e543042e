#include "simulator/wire_script.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/dice.hpp"

namespace flashgate {
namespace {

constexpr std::size_t flood_block_bytes = 64 * 1024;

enum class Frame { length, chunked, until_close };

/// The framing of this answer, faults included.
struct FramePlan {
  Frame frame = Frame::length;
  std::int64_t length_delta = 0;
  bool both = false;  // Content-Length beside chunked
  bool last_chunk = true;
  bool tiny = false;
  int version_minor = 1;
  std::string bad_chunk{};  // written instead of a size
  std::uint64_t bad_chunk_event = 0;
};

FramePlan plan_frame(const Reply& reply, const std::vector<FaultRule>& faults,
                     const ScriptFacts& facts) {
  FramePlan plan;
  if (reply.stream) plan.frame = facts.minor_version == 0 ? Frame::until_close : Frame::chunked;
  for (const FaultRule& rule : faults) {
    switch (rule.kind) {
      case FaultKind::wrong_length:
        plan.frame = Frame::length;
        plan.length_delta = rule.delta;
        break;
      case FaultKind::no_last_chunk:
        plan.frame = Frame::chunked;
        plan.last_chunk = false;
        break;
      case FaultKind::bad_chunk:
        plan.frame = Frame::chunked;
        plan.bad_chunk = rule.text;
        plan.bad_chunk_event = rule.place.after_events.value_or(0);
        break;
      case FaultKind::tiny_chunks:
        plan.frame = Frame::chunked;
        plan.tiny = true;
        break;
      case FaultKind::cl_te:
        plan.frame = Frame::chunked;
        plan.both = true;
        break;
      case FaultKind::http10:
        plan.version_minor = 0;
        [[fallthrough]];
      case FaultKind::until_close:
        plan.frame = Frame::until_close;
        break;
      default:
        break;
    }
  }
  return plan;
}

std::uint64_t payload_bytes(const Reply& reply) {
  std::uint64_t sum = 0;
  for (const Piece& piece : reply.pieces) sum += piece.bytes.size();
  return sum;
}

std::string write_head(const Reply& reply, const FramePlan& plan,
                       const std::vector<FaultRule>& faults, const ScriptFacts& facts, bool close) {
  std::string head = fmt::format("HTTP/1.{} {} {}\r\nserver: flashgate-sim\r\n", plan.version_minor,
                                 reply.status, reason_phrase(reply.status));
  if (!reply.content_type.empty()) {
    head += fmt::format("content-type: {}\r\n", reply.content_type);
  }
  if (!facts.request_id.empty()) head += fmt::format("x-request-id: {}\r\n", facts.request_id);
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  for (const FaultRule& rule : faults) {
    if (rule.kind != FaultKind::big_header) continue;
    for (std::uint64_t i = 0; i < rule.count; ++i) {
      head += fmt::format("x-big-{}: {}\r\n", i, std::string(rule.bytes, 'a'));
    }
  }
  if (plan.frame == Frame::length || plan.both) {
    const auto bytes = static_cast<std::int64_t>(payload_bytes(reply)) + plan.length_delta;
    head += fmt::format("content-length: {}\r\n", std::max<std::int64_t>(0, bytes));
  }
  if (plan.frame == Frame::chunked) head += "transfer-encoding: chunked\r\n";
  if (close) head += "connection: close\r\n";
  return head + "\r\n";
}

std::string as_chunks(const std::string& payload, bool tiny) {
  if (payload.empty()) return {};
  if (!tiny) return fmt::format("{:x}\r\n{}\r\n", payload.size(), payload);
  std::string out;
  for (const char c : payload) out += fmt::format("1\r\n{}\r\n", c);
  return out;
}

void add_body(Script& script, const Reply& reply, const FramePlan& plan) {
  std::uint64_t event = 0;
  for (const Piece& piece : reply.pieces) {
    Step step;
    step.part = Step::Part::event;
    step.wait = piece.wait;
    step.ends_event = true;
    if (!plan.bad_chunk.empty() && event == plan.bad_chunk_event) {
      step.bytes = plan.bad_chunk + "\r\n" + piece.bytes + "\r\n";
    } else {
      step.bytes = plan.frame == Frame::chunked ? as_chunks(piece.bytes, plan.tiny) : piece.bytes;
    }
    ++event;
    script.steps.push_back(std::move(step));
  }
  if (plan.frame == Frame::chunked && plan.last_chunk) {
    Step step;
    step.bytes = "0\r\n\r\n";
    script.steps.push_back(std::move(step));
  }
}

std::uint64_t bytes_of(const Step& step) {
  return step.what == Step::Do::send ? step.bytes.size() * step.repeat : 0;
}

/// Index of a step that begins after exactly `offset` bytes; splits one if it must.
std::size_t split_at(Script& script, std::uint64_t offset) {
  std::size_t i = 0;
  for (; i < script.steps.size(); ++i) {
    if (offset == 0) return i;
    const std::uint64_t size = bytes_of(script.steps[i]);
    if (offset < size) break;
    offset -= size;
  }
  if (i == script.steps.size()) return i;
  const Step whole = script.steps[i];
  const std::uint64_t blocks = offset / whole.bytes.size();
  const std::size_t bytes = offset % whole.bytes.size();
  const auto part = [&whole](std::string text, std::uint64_t repeat) {
    Step step = whole;
    step.bytes = std::move(text);
    step.repeat = repeat;
    step.ends_event = false;
    return step;
  };
  std::vector<Step> parts;
  if (blocks > 0) parts.push_back(part(whole.bytes, blocks));
  if (bytes > 0) parts.push_back(part(whole.bytes.substr(0, bytes), 1));
  const std::size_t before = parts.size();
  if (bytes > 0) parts.push_back(part(whole.bytes.substr(bytes), 1));
  const std::uint64_t left = whole.repeat - blocks - (bytes > 0 ? 1 : 0);
  if (left > 0) parts.push_back(part(whole.bytes, left));
  for (std::size_t k = 1; k < parts.size(); ++k) parts[k].wait = Duration{};
  parts.back().ends_event = whole.ends_event;
  const auto at = script.steps.erase(script.steps.begin() + static_cast<std::ptrdiff_t>(i));
  script.steps.insert(at, parts.begin(), parts.end());
  return i + before;
}

std::uint64_t head_end(const Script& script) {
  std::uint64_t sum = 0;
  for (const Step& step : script.steps) {
    if (step.part != Step::Part::interim && step.part != Step::Part::head) break;
    sum += bytes_of(step);
  }
  return sum;
}

/// The index of the step before which the fault happens.
std::size_t find_place(Script& script, const FaultPlace& place) {
  if (place.after_bytes) return split_at(script, *place.after_bytes);
  if (place.after_body_bytes) return split_at(script, head_end(script) + *place.after_body_bytes);
  if (!place.after_events) return 0;
  std::uint64_t offset = head_end(script);
  std::uint64_t events = 0;
  std::uint64_t sum = 0;
  for (const Step& step : script.steps) {
    if (events == *place.after_events) break;
    sum += bytes_of(step);
    if (!step.ends_event) continue;
    ++events;
    offset = sum;
  }
  return split_at(script, offset + place.plus_bytes);
}

Step plain(Step::Do what, Duration wait = {}) {
  Step step;
  step.what = what;
  step.wait = wait;
  step.paced = false;
  return step;
}

void end_at(Script& script, std::size_t index, Step::Do how) {
  const auto at = script.steps.begin() + static_cast<std::ptrdiff_t>(index);
  // What was due at this moment takes its time, then the connection breaks instead.
  const Duration wait = at == script.steps.end() ? Duration{} : at->wait;
  script.steps.erase(at, script.steps.end());
  Step step = plain(how, wait);
  step.paced = true;
  script.steps.push_back(std::move(step));
}

void stall_at(Script& script, const FaultRule& rule) {
  std::size_t index = find_place(script, rule.place);
  if (!rule.place.set() && rule.style == "after_headers") {
    index = split_at(script, head_end(script));
  }
  Step step = plain(Step::Do::stall, rule.duration);
  step.part = index == 0 ? Step::Part::interim : Step::Part::event;
  script.steps.insert(script.steps.begin() + static_cast<std::ptrdiff_t>(index), std::move(step));
}

void garbage_at(Script& script, const FaultRule& rule, std::uint64_t seed) {
  const std::size_t index = find_place(script, rule.place);
  end_at(script, index, Step::Do::finish);
  Step step;
  Dice dice(mix_bits(seed));
  // Never an H first: the bytes must not begin like a status line.
  step.bytes = "\x16";
  while (step.bytes.size() < rule.bytes) step.bytes += static_cast<char>(dice.next() & 0xff);
  step.wait = script.steps.back().wait;
  script.steps.back().wait = Duration{};
  script.steps.insert(script.steps.end() - 1, std::move(step));
}

void interim_first(Script& script, const FaultRule& rule) {
  Step step;
  step.part = Step::Part::interim;
  step.bytes = fmt::format("HTTP/1.1 {} {}\r\n", rule.status, reason_phrase(rule.status));
  if (rule.status == 103) step.bytes += "link: </style.css>; rel=preload\r\n";
  step.bytes += "\r\n";
  for (std::uint64_t i = 0; i < rule.count; ++i) {
    script.steps.insert(script.steps.begin(), step);
  }
}

/// `data: xxxx…` with no line end; chunked by hand since the whole may be larger than memory.
void flood(Script& script, const FaultRule& rule) {
  FaultPlace place = rule.place;
  if (!place.set()) place.after_events = 1;
  end_at(script, find_place(script, place), Step::Do::finish);
  Step step;
  step.part = Step::Part::event;
  step.bytes = as_chunks("data: ", false);
  script.steps.insert(script.steps.end() - 1, step);
  step.bytes = as_chunks(std::string(flood_block_bytes, 'x'), false);
  step.repeat = std::max<std::uint64_t>(1, rule.bytes / flood_block_bytes);
  script.steps.insert(script.steps.end() - 1, step);
}

void send_raw(Script& script, const FaultRule& rule) {
  const Duration wait = script.steps.empty() ? Duration{} : script.steps.front().wait;
  script = Script{};
  script.close = !rule.keep;
  Step step;
  step.bytes = rule.text;
  step.wait = wait;
  script.steps.push_back(std::move(step));
}

void add_extra(Script& script, const FaultRule& rule) {
  Step step;
  step.bytes = rule.text.empty() ? "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}" : rule.text;
  script.steps.push_back(std::move(step));
}

void apply_wire_fault(Script& script, const FaultRule& rule, std::uint64_t seed) {
  switch (rule.kind) {
    case FaultKind::refuse:
      end_at(script, 0, Step::Do::reset);
      break;
    case FaultKind::reset:
      end_at(script, find_place(script, rule.place), Step::Do::reset);
      break;
    case FaultKind::cut:
      end_at(script, find_place(script, rule.place), Step::Do::finish);
      break;
    case FaultKind::role_only: {
      FaultPlace place;
      place.after_events = 1;
      const bool cut = rule.style == "cut";
      end_at(script, find_place(script, place), cut ? Step::Do::finish : Step::Do::reset);
      break;
    }
    case FaultKind::stall:
      stall_at(script, rule);
      break;
    case FaultKind::garbage:
      garbage_at(script, rule, seed);
      break;
    case FaultKind::interim:
      interim_first(script, rule);
      break;
    case FaultKind::one_byte:
      script.send_bytes_max = 1;
      break;
    case FaultKind::drip:
      script.send_bytes_max = rule.bytes;
      script.pause = rule.duration;
      break;
    case FaultKind::huge_line:
      if (rule.style == "endless") flood(script, rule);
      break;
    case FaultKind::close_idle:
      script.steps.push_back(plain(Step::Do::finish, rule.duration));
      break;
    case FaultKind::extra:
      add_extra(script, rule);
      break;
    case FaultKind::raw:
      send_raw(script, rule);
      break;
    default:
      break;  // done already, in the reply or the frame
  }
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 102:
      return "Processing";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

Script write_script(const Reply& reply, const std::vector<FaultRule>& faults,
                    const ScriptFacts& facts) {
  const FramePlan plan = plan_frame(reply, faults, facts);
  Script script;
  const bool breaks = plan.length_delta != 0 || !plan.last_chunk || !plan.bad_chunk.empty();
  const bool announced = plan.frame == Frame::until_close || !facts.keep_alive;
  script.close = announced || breaks;
  Step head;
  head.part = Step::Part::head;
  head.bytes = write_head(reply, plan, faults, facts, announced);
  script.steps.push_back(std::move(head));
  if (!facts.to_head) add_body(script, reply, plan);
  if (!facts.early_headers && script.steps.size() > 1) {
    std::swap(script.steps[0].wait, script.steps[1].wait);
  }
  for (const FaultRule& rule : faults) apply_wire_fault(script, rule, facts.seed);
  return script;
}

}  // namespace flashgate

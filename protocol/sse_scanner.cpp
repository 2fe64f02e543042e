#include "protocol/sse_scanner.hpp"

#include "protocol/json_cursor.hpp"

namespace flashgate {
namespace {

constexpr std::size_t not_here = static_cast<std::size_t>(-1);
constexpr std::size_t idle_bytes_max = 64 * 1024;  // a larger buffer is freed after use
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void empty_out(std::string& buffer) {
  if (buffer.capacity() > idle_bytes_max) {
    buffer = std::string();
  } else {
    buffer.clear();
  }
}

}  // namespace

// Bytes up to the end of the event at hand, or not_here. Looks at each byte once; what it must
// remember between segments is in the members.
//
// Where an event ends must not depend on the segments, yet a blank line that is a CR could wait
// for its LF for ever. So such a CR ends the event at once if the line before ended in a lone CR
// too (an LF after it is then a blank line of its own, which dispatches nothing); after LF or CRLF
// we wait, since the next byte is on its way.
std::size_t SseScanner::scan(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  const char* at = begin;
  while (at != end) {
    if (cr_pending_) {
      const bool blank = !line_has_bytes_;
      const bool lf = *at == '\n';
      if (lf) ++at;
      cr_pending_ = false;
      line_has_bytes_ = false;
      line_end_ = lf ? LineEnd::crlf : LineEnd::cr;
      if (blank) return static_cast<std::size_t>(at - begin);
      continue;
    }
    const char* const stop = find_line_end(at, end);
    line_has_bytes_ |= stop != at;
    if (stop == end) break;
    at = stop + 1;
    if (*stop == '\r' && (line_has_bytes_ || line_end_ != LineEnd::cr)) {
      cr_pending_ = true;
      continue;
    }
    const bool blank = !line_has_bytes_;
    line_has_bytes_ = false;
    line_end_ = *stop == '\n' ? LineEnd::lf : LineEnd::cr;
    if (blank) return static_cast<std::size_t>(at - begin);
  }
  return not_here;
}

void SseScanner::let_go() {
  if (!held_given_) return;
  empty_out(held_);
  held_given_ = false;
}

bool SseScanner::next(std::string_view& bytes, SseEvent& event) {
  let_go();
  while (!bytes.empty()) {
    const std::size_t end = scan(bytes);
    const bool ends = end != not_here;
    const std::string_view piece = bytes.substr(0, ends ? end : bytes.size());
    bytes.remove_prefix(piece.size());
    event = {piece, SseKind::unterminated, ends};
    if (passing_) {
      passing_ = !ends;
      return true;
    }
    const bool too_large = held_.size() + piece.size() > options_.inspect_bytes_max;
    if (!ends && !too_large) {
      held_.append(piece);
      break;
    }
    if (!held_.empty()) {
      held_.append(piece);
      held_given_ = true;
      event.bytes = held_;
    }
    if (!too_large) {
      if (classify(event.bytes, event)) return true;
      let_go();
      continue;
    }
    ++reader_.facts().events;
    ++reader_.facts().uninspected;
    started_ = true;
    passing_ = !ends;
    return true;
  }
  return false;
}

bool SseScanner::last(SseEvent& event) {
  let_go();
  passing_ = false;
  bool give = false;
  if (!held_.empty()) {
    const bool whole = cr_pending_ && !line_has_bytes_;
    give = classify(held_, event);
    event.ends_event = whole;
    if (!whole && (event.kind == SseKind::comment || event.kind == SseKind::other)) {
      event.kind = SseKind::unterminated;
    }
    held_given_ = true;
  }
  cr_pending_ = false;
  line_has_bytes_ = false;
  reader_.settle();
  return give;
}

void SseScanner::take_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (data_lines_ == 1) joined_.assign(data_);
    if (data_lines_ > 0) {
      joined_ += '\n';
      joined_ += value;
    }
    data_ = value;
    ++data_lines_;
  } else if (field == "event") {
    name_ = value;
  } else if (field == "id") {
    reader_.facts().ids = true;
  }
}

// False: the client is not to see this event.
bool SseScanner::classify(std::string_view bytes, SseEvent& event) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  if (!started_ && bytes.starts_with(byte_order_mark)) at += byte_order_mark.size();
  started_ = true;
  data_ = {};
  name_ = {};
  data_lines_ = 0;
  while (at != end) {
    const char* const stop = find_line_end(at, end);
    take_line({at, static_cast<std::size_t>(stop - at)});
    at = stop;
    // A CRLF gives an empty line between its halves, which takes nothing.
    if (at != end) ++at;
  }
  event.bytes = bytes;
  event.ends_event = true;
  event.kind = SseKind::comment;
  if (data_lines_ == 0) return true;
  event.kind = reader_.read(data_lines_ > 1 ? std::string_view(joined_) : data_, name_);
  if (event.kind != SseKind::comment) ++reader_.facts().events;
  if (options_.strip_usage) {
    if (event.kind == SseKind::usage) return false;
    // In data of several lines the offsets are not those of the bytes; such events stay whole.
    if (data_lines_ == 1 && !reader_.null_usage().empty()) cut_usage(bytes, event);
  }
  if (data_lines_ > 1) empty_out(joined_);
  return true;
}

void SseScanner::cut_usage(std::string_view bytes, SseEvent& event) {
  const ByteRange cut = reader_.null_usage();
  const auto offset = static_cast<std::size_t>(data_.data() - bytes.data());
  empty_out(spliced_);
  spliced_.append(bytes.substr(0, offset + cut.begin));
  spliced_.append(bytes.substr(offset + cut.end));
  event.bytes = spliced_;
}

}  // namespace flashgate

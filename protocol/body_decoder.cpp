#include "protocol/body_decoder.hpp"

#include <algorithm>

namespace flashgate {
namespace {

constexpr std::size_t extension_bytes_max = 16 * 1024;
constexpr std::size_t trailer_bytes_cap = 16 * 1024;
constexpr std::uint64_t overhead_free_bytes = 64 * 1024;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyDecoder::BodyDecoder(Framing framing, std::uint64_t content_length, bool bound_overhead)
    : framing_(framing), bound_overhead_(bound_overhead), left_(content_length) {
  const bool empty =
      framing == Framing::none || (framing == Framing::length && content_length == 0);
  state_ = empty ? State::done : State::more;
  if (framing == Framing::chunked) left_ = 0;
}

BodyDecoder::Step BodyDecoder::fail(std::string_view why) {
  state_ = State::failed;
  why_ = why;
  return {{}, 0, state_};
}

/// Framing may not outweigh what it frames: over 64 KiB and over 4 x the payload is refused.
bool BodyDecoder::overhead(std::size_t bytes) {
  if (!bound_overhead_) return true;
  overhead_bytes_ += bytes;
  return overhead_bytes_ <= overhead_free_bytes || overhead_bytes_ <= 4 * payload_bytes_;
}

BodyDecoder::Step BodyDecoder::next(std::string_view input) {
  if (state_ != State::more) return {{}, 0, state_};
  if (framing_ == Framing::chunked) return next_chunked(input);
  if (framing_ == Framing::until_close) {
    payload_bytes_ += input.size();
    return {input, input.size(), state_};
  }
  const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  left_ -= take;
  payload_bytes_ += take;
  if (left_ == 0) state_ = State::done;
  return {input.substr(0, take), take, state_};
}

BodyDecoder::Step BodyDecoder::next_chunked(std::string_view input) {
  std::size_t at = 0;
  while (at < input.size()) {
    const char c = input[at];
    switch (part_) {
      case Part::data: {
        const auto take =
            static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - at));
        left_ -= take;
        payload_bytes_ += take;
        if (left_ == 0) part_ = Part::data_cr;
        if (!overhead(at)) return fail("chunk framing outweighs the payload");
        return {input.substr(at, take), at + take, state_};
      }
      case Part::size: {
        const int digit = hex_digit(c);
        if (digit >= 0) {
          if (++size_digits_ > 15) return fail("chunk size is too large");
          left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
        } else if (size_digits_ == 0) {
          return fail("chunk size is not a number");
        } else if (c == '\r') {
          part_ = Part::size_lf;
        } else if (c == ';') {
          part_ = Part::size_ext;
          trailer_line_bytes_ = 0;
        } else {
          return fail("chunk size is not a number");
        }
        break;
      }
      case Part::size_ext:
        if (c == '\n') return fail("LF in a chunk extension");
        if (c == '\r')
          part_ = Part::size_lf;
        else if (++trailer_line_bytes_ > extension_bytes_max)
          return fail("chunk extension is too long");
        break;
      case Part::size_lf:
        if (c != '\n') return fail("CR without LF after a chunk size");
        size_digits_ = 0;
        part_ = left_ == 0 ? Part::trailer : Part::data;
        trailer_line_bytes_ = 0;
        break;
      case Part::data_cr:
        if (c != '\r') return fail("chunk data is longer than its size");
        part_ = Part::data_lf;
        break;
      case Part::data_lf:
        if (c != '\n') return fail("chunk data is longer than its size");
        part_ = Part::size;
        break;
      case Part::trailer:
        if (c == '\r') {
          part_ = Part::trailer_lf;
          break;
        }
        if (c == '\n') return fail("a trailer line ends with a bare LF");
        ++trailer_line_bytes_;
        if (++trailer_bytes_ > trailer_bytes_cap) return fail("trailers are too large");
        break;
      case Part::trailer_lf:
        if (c != '\n') return fail("CR without LF in a trailer");
        part_ = Part::trailer;
        if (trailer_line_bytes_ == 0) {
          state_ = State::done;
          return {{}, at + 1, state_};
        }
        trailer_line_bytes_ = 0;
        break;
    }
    ++at;
  }
  if (!overhead(at)) return fail("chunk framing outweighs the payload");
  return {{}, at, state_};
}

bool BodyDecoder::closed() {
  if (state_ == State::more && framing_ == Framing::until_close) state_ = State::done;
  return state_ == State::done;
}

}  // namespace flashgate

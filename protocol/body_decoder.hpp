#pragma once
// Removes HTTP/1 body framing incrementally: length, chunked (RFC 9112 §7.1), or until close.
// Trailers are read, bounded and dropped. Bounded framing overhead, linear time. Pure, any thread.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/http1_head.hpp"

namespace flashgate {

class BodyDecoder {
 public:
  enum class State { more, done, failed };

  BodyDecoder() = default;
  /// `bound_overhead`: refuse chunk framing that outweighs the payload (request bodies).
  BodyDecoder(Framing framing, std::uint64_t content_length, bool bound_overhead = false);

  struct Step {
    std::string_view payload{};  // a view into the input
    std::size_t consumed = 0;    // bytes of input used up, payload included
    State state = State::more;
  };
  /// Takes a prefix of `input`; call again with the rest until `consumed` is 0 or state is not
  /// more.
  Step next(std::string_view input);
  /// The peer closed. True if that is a proper end (until_close, or already done).
  bool closed();

  State state() const { return state_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::string_view why() const { return why_; }

 private:
  enum class Part { data, size, size_ext, size_lf, data_cr, data_lf, trailer, trailer_lf };
  Step fail(std::string_view why);
  Step next_chunked(std::string_view input);
  bool overhead(std::size_t bytes);

  Framing framing_ = Framing::none;
  State state_ = State::done;
  bool bound_overhead_ = false;
  Part part_ = Part::size;
  std::uint64_t left_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t overhead_bytes_ = 0;
  unsigned size_digits_ = 0;
  std::size_t trailer_line_bytes_ = 0;
  std::size_t trailer_bytes_ = 0;
  std::string_view why_{};
};

}  // namespace flashgate

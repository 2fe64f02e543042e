// The header gate and the body decoder: the scanner finds the same end in pieces as in one, parsed
// views lie in the head, and decoded payload never exceeds what came.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/body_decoder.hpp"
#include "protocol/http1_head.hpp"

namespace {

using namespace flashgate;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string decode(std::string_view body, Framing framing, std::uint64_t length, std::size_t step) {
  BodyDecoder decoder(framing, length);
  std::string payload;
  while (!body.empty() && decoder.state() == BodyDecoder::State::more) {
    const BodyDecoder::Step result = decoder.next(body.substr(0, step));
    payload += result.payload;
    require(result.consumed <= body.size());
    if (result.consumed == 0) break;
    body.remove_prefix(result.consumed);
  }
  return payload;
}

template <class Head>
void check_fields(std::string_view head, const Head& parsed) {
  for (const HeaderField& field : parsed.fields) {
    require(!field.name.empty());
    require(field.name.data() >= head.data());
    require(field.value.data() + field.value.size() <= head.data() + head.size());
    require(field.value.find_first_of(std::string_view("\r\n\0", 3)) == field.value.npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool is_request = (data[0] & 1) != 0;
  const std::size_t step = data[1] % 16 + std::size_t{1};
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  HeadLimits limits;
  limits.bytes_max = 4096;
  HeadScanner whole;
  HeadScanner pieces;
  const HeadScanner::State state = whole.scan(input, limits, is_request);
  HeadScanner::State piecewise = HeadScanner::State::incomplete;
  for (std::size_t at = 0; at < input.size() && piecewise == HeadScanner::State::incomplete;) {
    at = std::min(input.size(), at + step);
    piecewise = pieces.scan(input.substr(0, at), limits, is_request);
  }
  if (state != HeadScanner::State::complete) return 0;
  require(piecewise == state && pieces.end() == whole.end());
  const std::string_view head = input.substr(whole.begin(), whole.end() - whole.begin());
  HeadRefusal refusal;
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  if (is_request) {
    RequestHead parsed;
    if (!parse_request_head(head, limits, parsed, refusal)) return 0;
    check_fields(head, parsed);
    framing = parsed.framing;
    length = parsed.content_length;
  } else {
    ResponseHead parsed;
    if (!parse_response_head(head, limits, false, parsed, refusal)) return 0;
    check_fields(head, parsed);
    framing = parsed.framing;
    length = parsed.content_length;
  }
  const std::string_view body = input.substr(whole.end());
  const std::string payload = decode(body, framing, length, body.size());
  require(payload.size() <= body.size());
  require(payload == decode(body, framing, length, step));
  return 0;
}

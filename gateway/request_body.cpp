#include "gateway/call.hpp"
#include "protocol/body_decoder.hpp"
#include "protocol/content_coding.hpp"

namespace flashgate {
namespace {

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

/// A body may pause for `client_stall`, and over its whole length keeps at least this pace: one
/// byte at a time would hold a connection and its buffer for ever.
struct BodyPace {
  static constexpr std::uint64_t bytes_per_second_min = 1024;
  TimePoint started{};
  std::uint64_t received = 0;

  TimePoint until(TimePoint now, Duration stall) const {
    const auto earned = std::chrono::seconds(received / bytes_per_second_min);
    return std::min(now + stall, started + stall + earned);
  }
};

/// Arguments by reference to the caller's own: GCC 12 destroys temporaries in a co_await twice.
Task<bool> refuse_and_close(Call& call, const ApiError& error) {
  call.session.close_after();
  co_await call.recorder.refuse(error);
  co_await call.session.close_gracefully();
  co_return false;
}

ApiError over_limit(const Call& call) {
  return {ApiErrorKind::body_too_large,
          "The request body is over the limit of " +
              with_commas(static_cast<std::int64_t>(call.session.runtime().config.limits.body)) +
              " bytes; send less, or raise limits.body."};
}

/// False: the client is gone, or was told that it is too slow.
Task<bool> read_piece(Call& call, BodyBuffer& to, BodyPace& pace) {
  const Duration stall = call.runtime().config.limits.client_stall;
  const TimePoint until = pace.until(call.worker().now(), stall);
  const IoResult got = co_await call.session.read_more(to, until, Stop::request_timeout);
  pace.received += got.bytes;
  if (!got.error) co_return true;
  if (call.monitor().stop() == Stop::request_timeout) {
    const ApiError error{ApiErrorKind::request_timeout,
                         "The request body took too long to arrive."};
    co_return co_await refuse_and_close(call, error);
  }
  call.session.close_after();
  co_return false;
}

Task<bool> read_sized(Call& call, std::size_t length) {
  BodyBuffer& input = call.session.input();
  const std::size_t begin = call.session.body_begin();
  BodyPace pace{call.worker().now()};
  while (input.size() < begin + length) {
    const bool more = co_await read_piece(call, input, pace);
    if (!more) co_return false;
  }
  call.body = input.view().substr(begin, length);
  call.session.consumed(begin + length);
  co_return true;
}

/// Ends of a chunked body: what was read past it belongs to the next request.
void keep_rest(Call& call, std::string_view rest) {
  BodyBuffer& input = call.session.input();
  const std::size_t end = input.size();
  input.append(rest);
  call.session.renew_head();
  call.session.consumed(end);
}

Task<bool> read_chunked(Call& call) {
  const std::size_t limit = call.runtime().config.limits.body;
  BodyDecoder decoder(Framing::chunked, 0, true);
  BodyPace pace{call.worker().now()};
  BodyBuffer& input = call.session.input();
  std::size_t at = call.session.body_begin();
  BodyBuffer raw;  // what is read now; the head stays in input
  const BodyBuffer* source = &input;
  while (true) {
    const BodyDecoder::Step step = decoder.next(source->view().substr(at));
    call.decoded.append(step.payload);
    at += step.consumed;
    if (call.decoded.size() > limit) {
      const ApiError error = over_limit(call);
      co_return co_await refuse_and_close(call, error);
    }
    if (step.state == BodyDecoder::State::failed) {
      const ApiError error{ApiErrorKind::invalid_request,
                           "The chunked body is malformed: " + std::string(decoder.why()) + "."};
      co_return co_await refuse_and_close(call, error);
    }
    if (step.state == BodyDecoder::State::done) break;
    if (at < source->size()) continue;
    raw.clear();
    const bool more = co_await read_piece(call, raw, pace);
    if (!more) co_return false;
    source = &raw;
    at = 0;
  }
  if (source == &raw)
    keep_rest(call, raw.view().substr(at));
  else
    call.session.consumed(at);
  call.body = call.decoded.view();
  co_return true;
}

Task<bool> undo_coding(Call& call) {
  const RequestHead& head = call.session.head();
  const std::string_view coding = field_value(head.fields, "content-encoding");
  if (coding.empty()) co_return true;
  std::string plain;
  const CodingOutcome outcome =
      decode_content(coding, call.body, call.runtime().config.limits.body, plain);
  switch (outcome) {
    case CodingOutcome::ok:
      break;
    case CodingOutcome::too_large: {
      const ApiError error = over_limit(call);
      co_return co_await refuse_and_close(call, error);
    }
    case CodingOutcome::corrupt: {
      const ApiError error{ApiErrorKind::invalid_request,
                           "The body is not what its Content-Encoding says."};
      co_await call.recorder.refuse(error);
      co_return false;
    }
    case CodingOutcome::unsupported: {
      const ApiError error{
          ApiErrorKind::unsupported_encoding,
          "This Content-Encoding is not supported; use gzip, deflate, br or zstd."};
      std::string accept = "Accept-Encoding: ";
      accept += accepted_codings;
      accept += "\r\n";
      co_await call.recorder.refuse_with(error, outcome_of(error.kind), accept);
      co_return false;
    }
  }
  BodyBuffer buffer{std::string_view(plain)};
  call.decoded = std::move(buffer);
  call.body = call.decoded.view();
  co_return true;
}

}  // namespace

Task<bool> read_body(Call& call) {
  const RequestHead& head = call.session.head();
  const std::size_t limit = call.runtime().config.limits.body;
  call.content_type = field_value(head.fields, "content-type");
  const std::uint64_t length = head.content_length;
  const Framing framing = head.framing;
  if (framing == Framing::none || (framing == Framing::length && length == 0)) co_return true;
  call.has_body = true;
  if (framing == Framing::length && length > limit) {
    const ApiError error = over_limit(call);
    co_return co_await refuse_and_close(call, error);
  }
  if (head.expect_continue && call.session.input().size() == call.session.body_begin()) {
    const std::array<asio::const_buffer, 1> go_on{asio::buffer(continue_line)};
    const bool written = co_await call.session.write(go_on);
    if (!written) co_return false;
  }
  bool complete = false;
  if (framing == Framing::chunked)
    complete = co_await read_chunked(call);
  else
    complete = co_await read_sized(call, static_cast<std::size_t>(length));
  if (!complete) co_return false;
  co_return co_await undo_coding(call);
}

}  // namespace flashgate

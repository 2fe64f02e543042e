// Body framing by tables, whole and in pieces of every size.
#include "protocol/body_decoder.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace flashgate {
namespace {

using namespace std::string_literals;

struct Decoded {
  BodyDecoder::State state = BodyDecoder::State::more;
  std::string payload{};
  std::size_t consumed = 0;
};

/// Feeds `input` in pieces of `step` bytes, as a session does.
Decoded decode(BodyDecoder decoder, std::string_view input, std::size_t step) {
  Decoded out;
  out.state = decoder.state();
  while (out.state == BodyDecoder::State::more && out.consumed < input.size()) {
    std::string_view piece = input.substr(out.consumed, step);
    while (!piece.empty() && out.state == BodyDecoder::State::more) {
      const BodyDecoder::Step got = decoder.next(piece);
      out.payload += got.payload;
      out.consumed += got.consumed;
      out.state = got.state;
      if (got.consumed == 0) break;
      piece.remove_prefix(got.consumed);
    }
  }
  return out;
}

Decoded chunked(std::string_view input, std::size_t step = 1 << 20) {
  return decode(BodyDecoder(Framing::chunked, 0, true), input, step);
}

const std::string good[] = {
    "5\r\nhello\r\n0\r\n\r\n",
    "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    "00000005\r\nhello\r\n00000\r\n\r\n",
    "5;a=b\r\nhello\r\n0;c\r\n\r\n",
    "5;a=\"5;\"\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nAuthorization: x\r\nContent-Length: 9\r\n\r\n",
    "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n",
};

const std::string bad[] = {
    "\r\nhello",
    "x\r\nhello",
    "-5\r\nhello",
    "+5\r\nhello",
    "0x5\r\nhello",
    " 5\r\nhello",
    "5 \r\nhello",
    "5\t\r\nhello",
    "5\nhello",
    "5\rhello",
    "5\r\nhello!\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello\rx",
    "5;a\nb\r\nhello",
    "5;a\rb\r\nhello",
    "1000000000000000\r\n",
    "ffffffffffffffff\r\n",
    "0\r\nX: y\n\r\n",
    "0\r\nX: y\rz",
    "0\r\n\n",
    "\0\r\n"s,
    "5;" + std::string(17 * 1024, 'a') + "\r\nhello",
    "0\r\nX: " + std::string(17 * 1024, 'a') + "\r\n\r\n",
};

TEST_CASE("chunks give their payload and leave what follows, whatever the pieces") {
  for (const std::string& body : good) {
    const std::string input = body + "GET / HTTP/1.1\r\n";
    for (std::size_t step = 1; step <= input.size(); ++step) {
      INFO(body << " in pieces of " << step);
      const Decoded got = chunked(input, step);
      REQUIRE(got.state == BodyDecoder::State::done);
      REQUIRE(got.payload == "hello");
      REQUIRE(got.consumed == body.size());
    }
  }
}

TEST_CASE("chunks that are not exact fail, whatever the pieces") {
  for (const std::string& body : bad) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, body.size()}) {
      INFO(body.substr(0, 60) << " in pieces of " << step);
      CHECK(chunked(body, step).state == BodyDecoder::State::failed);
    }
  }
}

TEST_CASE("every cut of a good body waits for more") {
  for (const std::string& body : good)
    for (std::size_t size = 0; size < body.size(); ++size)
      CHECK(chunked(std::string_view(body).substr(0, size)).state == BodyDecoder::State::more);
}

TEST_CASE("a chunked body that is cut is no proper end") {
  BodyDecoder decoder(Framing::chunked, 0);
  (void)decoder.next("5\r\nhel");
  CHECK_FALSE(decoder.closed());
}

TEST_CASE("framing that outweighs its payload is refused in requests only") {
  std::string heavy;
  for (int n = 0; n < 400; ++n) heavy += "1;" + std::string(300, 'e') + "\r\nx\r\n";
  heavy += "0\r\n\r\n";
  CHECK(chunked(heavy).state == BodyDecoder::State::failed);
  CHECK(decode(BodyDecoder(Framing::chunked, 0), heavy, heavy.size()).state ==
        BodyDecoder::State::done);
}

TEST_CASE("small chunks are fine: token streams and slow uploads look like this") {
  std::string small;
  for (int n = 0; n < 10000; ++n) small += "2\r\nab\r\n";
  small += "0\r\n\r\n";
  CHECK(chunked(small).state == BodyDecoder::State::done);
}

TEST_CASE("a length takes exactly its bytes") {
  for (std::size_t step = 1; step <= 8; ++step) {
    const Decoded got = decode(BodyDecoder(Framing::length, 5), "hello GET", step);
    CHECK(got.state == BodyDecoder::State::done);
    CHECK(got.payload == "hello");
    CHECK(got.consumed == 5);
  }
  CHECK(BodyDecoder(Framing::length, 0).state() == BodyDecoder::State::done);
  CHECK(BodyDecoder(Framing::none, 7).state() == BodyDecoder::State::done);
  BodyDecoder cut(Framing::length, 5);
  (void)cut.next("hel");
  CHECK_FALSE(cut.closed());
}

TEST_CASE("a body until close ends by closing") {
  BodyDecoder decoder(Framing::until_close, 0);
  CHECK(decoder.next("hello").payload == "hello");
  CHECK(decoder.state() == BodyDecoder::State::more);
  CHECK(decoder.closed());
  CHECK(decoder.state() == BodyDecoder::State::done);
}

}  // namespace
}  // namespace flashgate

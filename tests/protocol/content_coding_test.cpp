#include "protocol/content_coding.hpp"

#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <vector>

namespace flashgate {
namespace {

constexpr std::size_t cap = 1 << 20;
constexpr int gzip_bits = 31;
constexpr int zlib_bits = 15;
constexpr int raw_bits = -15;

std::string deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// `echo -n '{"model":"m","messages":[]}' | brotli`: made once, so that the encoder is not needed.
const std::string brotli_text = R"({"model":"m","messages":[]})";
const std::string brotli_bytes(
    "\x0b\x0d\x80\x7b\x22\x6d\x6f\x64\x65\x6c\x22\x3a\x22\x6d\x22\x2c\x22\x6d\x65\x73\x73\x61\x67"
    "\x65\x73\x22\x3a\x5b\x5d\x7d\x03",
    31);

std::pair<CodingOutcome, std::string> decoded(std::string_view coding, const std::string& body,
                                              std::size_t bytes_max = cap) {
  // A heap block of the exact size, so that an overrun is a sanitizer's find.
  const std::vector<char> copy(body.begin(), body.end());
  std::string out;
  const CodingOutcome outcome = decode_content(coding, {copy.data(), copy.size()}, bytes_max, out);
  return {outcome, out};
}

using Decoded = std::pair<CodingOutcome, std::string>;

TEST_CASE("every coding that we accept is undone") {
  const std::string text(5000, 'x');
  const Decoded expected{CodingOutcome::ok, text};
  CHECK(decoded("gzip", deflated(text, gzip_bits)) == expected);
  CHECK(decoded("X-GZip", deflated(text, gzip_bits)) == expected);
  CHECK(decoded("deflate", deflated(text, zlib_bits)) == expected);
  CHECK(decoded("deflate", deflated(text, raw_bits)) == expected);
  CHECK(decoded("zstd", zstd(text)) == expected);
  CHECK(decoded(" ZSTD ", zstd(text)) == expected);
  CHECK(decoded("br", brotli_bytes) == Decoded{CodingOutcome::ok, brotli_text});
  CHECK(decoded("identity", text) == expected);
  CHECK(decoded("", text) == expected);
}

TEST_CASE("a list of codings is undone from the right") {
  const std::string text = "hello";
  const Decoded expected{CodingOutcome::ok, text};
  CHECK(decoded("gzip, zstd", zstd(deflated(text, gzip_bits))) == expected);
  CHECK(decoded("zstd ,identity,, gzip", deflated(zstd(text), gzip_bits)) == expected);
  CHECK(decoded("zstd, gzip", zstd(deflated(text, gzip_bits))).first == CodingOutcome::corrupt);
  CHECK(decoded("gzip,gzip,gzip,gzip,gzip", text).first == CodingOutcome::unsupported);
}

TEST_CASE("members and frames that follow each other are one body") {
  CHECK(decoded("gzip", deflated("ab", gzip_bits) + deflated("cd", gzip_bits)).second == "abcd");
  CHECK(decoded("zstd", zstd("ab") + zstd("cd")).second == "abcd");
}

TEST_CASE("unknown codings are unsupported") {
  for (const std::string_view coding : {"compress", "aws-chunked", "gzip, lzma", "gzip;q=1", "*"}) {
    CHECK(decoded(coding, "x").first == CodingOutcome::unsupported);
  }
}

TEST_CASE("a truncated, damaged or padded body is corrupt") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919);
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"gzip", deflated(text, gzip_bits)},
      {"deflate", deflated(text, zlib_bits)},
      {"zstd", zstd(text)},
      {"br", brotli_bytes}};
  for (const auto& [coding, body] : bodies) {
    INFO(coding);
    CHECK(decoded(coding, body.substr(0, body.size() / 2)).first == CodingOutcome::corrupt);
    CHECK(decoded(coding, body.substr(0, body.size() - 1)).first == CodingOutcome::corrupt);
    CHECK(decoded(coding, body + "trailing text").first == CodingOutcome::corrupt);
    CHECK(decoded(coding, "{\"model\":\"m\"}").first == CodingOutcome::corrupt);
  }
}

TEST_CASE("an empty body stays empty") {
  CHECK(decoded("gzip", "") == Decoded{CodingOutcome::ok, ""});
}

TEST_CASE("output of exactly the cap passes and one byte more does not") {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{300'000}}) {
    const std::string text(size, 'x');
    CHECK(decoded("gzip", deflated(text, gzip_bits), size).first == CodingOutcome::ok);
    CHECK(decoded("gzip", deflated(text, gzip_bits), size - 1).first == CodingOutcome::too_large);
    CHECK(decoded("zstd", zstd(text), size).first == CodingOutcome::ok);
    CHECK(decoded("zstd", zstd(text), size - 1).first == CodingOutcome::too_large);
    CHECK(decoded("identity", text, size - 1).first == CodingOutcome::too_large);
  }
}

TEST_CASE("a bomb stops at the cap in memory and in time") {
  const std::string gigabyte_ish(std::size_t{256} << 20, '\0');
  const std::string once = deflated(gigabyte_ish, gzip_bits);
  const std::vector<std::pair<std::string, std::string>> bombs = {
      {"gzip", once}, {"zstd", zstd(gigabyte_ish)}, {"gzip, zstd", zstd(once)}};
  for (const auto& [coding, bomb] : bombs) {
    INFO(coding << " of " << bomb.size());
    std::string out;
    const std::clock_t begin = std::clock();
    CHECK(decode_content(coding, bomb, cap, out) == CodingOutcome::too_large);
    CHECK(std::clock() - begin < 2 * CLOCKS_PER_SEC);
    CHECK(out.capacity() <= 2 * (cap + 1));
  }
}

TEST_CASE("a zstd window over eight megabytes is refused") {
  // Frame header: magic, no content size, window descriptor of 2^27.
  const std::string frame("\x28\xB5\x2F\xFD\x00\x88\x01\x00\x00", 9);
  CHECK(decoded("zstd", frame).first == CodingOutcome::corrupt);
}

}  // namespace
}  // namespace flashgate

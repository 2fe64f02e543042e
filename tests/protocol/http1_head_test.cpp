// The header gate by tables: what is refused, what passes, and how a head is found in pieces.
// The same matrix runs against the whole program in tests/integration/test_wire_*.py.
#include "protocol/http1_head.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace flashgate {
namespace {

using namespace std::string_literals;

const HeadLimits limits{};

std::string with(const std::string& fields, const std::string& line = "POST /v1/x HTTP/1.1",
                 const std::string& host = "Host: a\r\n") {
  return line + "\r\n" + host + fields + "\r\n";
}

struct Row {
  std::string head;
  ApiErrorKind kind = ApiErrorKind::invalid_request;
};

const Row refused[] = {
    {with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")},
    {with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")},
    {with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
    {with("Transfer-Encoding: gzip\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding: gzip, chunked\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding: chunked, identity\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding: xchunked\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding: chunked;a=b\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding:\r\n"), ApiErrorKind::unsupported_transfer_coding},
    {with("Transfer-Encoding: chunked\r\n", "POST /v1/x HTTP/1.0")},
    {with("Content-Length: 5\r\nContent-Length: 5\r\n")},
    {with("Content-Length: 5, 5\r\n")},
    {with("Content-Length: +5\r\n")},
    {with("Content-Length: -5\r\n")},
    {with("Content-Length: 0x5\r\n")},
    {with("Content-Length:\r\n")},
    {with("Content-Length: 18446744073709551621\r\n")},
    {with("Content-Length : 5\r\n")},
    {with("", "POST /v1/x HTTP/1.1", "")},
    {with("Host: a\r\n")},
    {with("", "POST /v1/x HTTP/1.1", "Host: a b\r\n")},
    {with("", "POST /v1/x HTTP/1.1", "Host: a/b\r\n")},
    {with("X: a\r\n b\r\n")},
    {with("X: a\r\n\tb\r\n")},
    {with("X: a\rb\r\n")},
    {with("X: a\0b\r\n"s)},
    {with("X: \x7f\r\n")},
    {with("X Y: a\r\n")},
    {with("X\xe9: a\r\n")},
    {with(": a\r\n")},
    {with("no colon\r\n")},
    {with("", "POST /v1/x HTTP/2.0")},
    {with("", "POST /v1/x HTTP/1.1 ")},
    {with("", "POST  /v1/x HTTP/1.1")},
    {with("", "POST /v1 x HTTP/1.1")},
    {with("", "POST /v1/x")},
    {with("", "P(ST /v1/x HTTP/1.1")},
    {with("", "POST /" + std::string(17 * 1024, 'a') + " HTTP/1.1"), ApiErrorKind::target_too_long},
    {with("X: " + std::string(70 * 1024, 'a') + "\r\n"), ApiErrorKind::headers_too_large},
};

struct Passed {
  std::string head;
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  bool keep_alive = true;
};

const Passed passed[] = {
    {with("")},
    {with("Content-Length: 5\r\n"), Framing::length, 5},
    {with("content-length:005\r\n"), Framing::length, 5},
    {with("Content-Length: \t5 \t\r\n"), Framing::length, 5},
    {with("Content-Length: 999999999999999999\r\n"), Framing::length, 999999999999999999},
    {with("Transfer-Encoding: cHuNkEd\t\r\n"), Framing::chunked},
    {with("X: caf\xe9\r\n")},
    {with("X:\r\n")},
    {with("Connection: a, close\r\n"), Framing::none, 0, false},
    {with("", "POST /v1/x HTTP/1.0", ""), Framing::none, 0, false},
    {with("Connection: keep-alive\r\n", "POST /v1/x HTTP/1.0", "")},
    {with("", "POST http://b:9/v1/x HTTP/1.1")},
    {with("", "POST /v1/x HTTP/1.1", "Host: [::1]:80\r\n")},
    {with("", "POST /v1/x HTTP/1.1", "Host:\r\n")},
};

TEST_CASE("a head with more than one reading is refused, and the reason quotes no input") {
  for (const Row& row : refused) {
    INFO(row.head.substr(0, 200));
    RequestHead head;
    HeadRefusal refusal;
    REQUIRE_FALSE(parse_request_head(row.head, limits, head, refusal));
    CHECK(refusal.kind == row.kind);
    CHECK_FALSE(refusal.why.empty());
  }
}

TEST_CASE("a sound head gives its one framing") {
  for (const Passed& row : passed) {
    INFO(row.head);
    RequestHead head;
    HeadRefusal refusal;
    REQUIRE(parse_request_head(row.head, limits, head, refusal));
    CHECK(head.framing == row.framing);
    CHECK(head.content_length == row.length);
    CHECK(head.keep_alive == row.keep_alive);
  }
}

TEST_CASE("the number of fields is bounded") {
  HeadLimits few = limits;
  few.fields_max = 3;
  RequestHead head;
  HeadRefusal refusal;
  CHECK(parse_request_head(with("A: 1\r\nB: 2\r\n"), few, head, refusal));
  CHECK_FALSE(parse_request_head(with("A: 1\r\nB: 2\r\nC: 3\r\n"), few, head, refusal));
  CHECK(refusal.kind == ApiErrorKind::headers_too_large);
}

TEST_CASE("the end of a head is found at the same place whatever the pieces") {
  const std::string head = "\r\n\r\n" + with("Content-Length: 5\r\n");
  const std::string all = head + "hello";
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    HeadScanner scanner;
    HeadScanner::State state = scanner.scan(std::string_view(all).substr(0, cut), limits, true);
    if (cut < head.size()) {
      REQUIRE(state == HeadScanner::State::incomplete);
      state = scanner.scan(all, limits, true);
    }
    REQUIRE(state == HeadScanner::State::complete);
    CHECK(scanner.begin() == 4);
    CHECK(scanner.end() == head.size());
  }
}

TEST_CASE("the scanner refuses what would grow for ever, before its end is seen") {
  const std::string long_line(20 * 1024, 'a');
  std::string long_head = "POST /x HTTP/1.1\r\n";
  std::string many = long_head;
  for (int n = 0; n < 100; ++n) long_head += "X: " + std::string(1000, 'a') + "\r\n";
  for (int n = 0; n < 300; ++n) many += "X: a\r\n";
  const std::string bare = "POST /x HTTP/1.1\nHost: a\n\n";
  const std::string empties = "\r\n\r\n\r\n\r\n\r\n\r\n\r\n";
  HeadScanner a, b, c, d;
  CHECK(a.scan(long_line, limits, true) == HeadScanner::State::refused);
  CHECK(a.refusal().kind == ApiErrorKind::target_too_long);
  CHECK(b.scan(long_head, limits, true) == HeadScanner::State::refused);
  CHECK(b.refusal().kind == ApiErrorKind::headers_too_large);
  CHECK(c.scan(many, limits, true) == HeadScanner::State::refused);
  CHECK(d.scan(bare, limits, true) == HeadScanner::State::refused);
  HeadScanner e;
  CHECK(e.scan(empties, limits, true) == HeadScanner::State::complete);
  RequestHead head;
  HeadRefusal refusal;
  const std::string found = empties.substr(e.begin(), e.end() - e.begin());
  CHECK_FALSE(parse_request_head(found, limits, head, refusal));
}

TEST_CASE("answers without a body have none, whatever their fields say") {
  HeadRefusal refusal;
  for (const char* status : {"204 No", "304 Not", "103 Early"}) {
    ResponseHead head;
    REQUIRE(parse_response_head("HTTP/1.1 "s + status + "\r\nContent-Length: 9\r\n\r\n", limits,
                                false, head, refusal));
    CHECK(head.framing == Framing::none);
  }
  ResponseHead head;
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
  REQUIRE(parse_response_head(ok, limits, true, head, refusal));
  CHECK(head.framing == Framing::none);
  REQUIRE(parse_response_head(ok, limits, false, head, refusal));
  CHECK(head.content_length == 9);
  REQUIRE(parse_response_head("HTTP/1.1 200\r\n\r\n", limits, false, head, refusal));
  CHECK(head.framing == Framing::until_close);
  CHECK_FALSE(head.keep_alive);
}

TEST_CASE("fields that Connection names are hop-by-hop, and the fixed ones") {
  const std::vector<HeaderField> fields = {{"Connection", "X-One, x-TWO ,"},
                                           {"connection", "three"}};
  for (const char* name : {"x-one", "X-Two", "Three", "TE", "Upgrade", "Keep-Alive", "Trailer",
                           "transfer-encoding", "Proxy-Authorization", "HTTP2-Settings"})
    CHECK(is_hop_by_hop(fields, name));
  CHECK_FALSE(is_hop_by_hop(fields, "x-on"));
  CHECK_FALSE(is_hop_by_hop(fields, ""));
}

}  // namespace
}  // namespace flashgate

#include "protocol/padded_body.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

namespace flashgate {
namespace {

bool is_padded(const BodyBuffer& body) {
  const char* const end = body.data() + body.size();
  return std::all_of(end, end + BodyBuffer::padding_bytes, [](char c) { return c == 0; });
}

TEST_CASE("zeroed padding follows the bytes at every size") {
  BodyBuffer body;
  CHECK(is_padded(body));
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 17), static_cast<char>('a' + i % 26));
    body.append(piece);
    expected += piece;
    REQUIRE(is_padded(body));
  }
  CHECK(body.view() == expected);
}

TEST_CASE("bytes written in place are kept as far as they were committed") {
  BodyBuffer body("ab");
  std::memcpy(body.prepare(100), "cdef", 4);
  body.commit(2);
  CHECK(body.view() == "abcd");
  CHECK(is_padded(body));
}

TEST_CASE("clear keeps the memory and release gives it back") {
  BodyBuffer body(std::string(10'000, 'x'));
  body.clear();
  CHECK(body.empty());
  CHECK(body.capacity() >= 10'000);
  CHECK(is_padded(body));
  body.release();
  CHECK(body.capacity() == 0);
  CHECK(is_padded(body));
}

TEST_CASE("a moved-from buffer is empty and usable") {
  BodyBuffer from("abc");
  BodyBuffer to(std::move(from));
  from.append("z");
  CHECK(to.view() == "abc");
  CHECK(from.view() == "z");
}

}  // namespace
}  // namespace flashgate

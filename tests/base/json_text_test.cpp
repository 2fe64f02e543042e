#include "base/json_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

namespace flashgate {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST_CASE("text is quoted so that any JSON reader gives it back") {
  for (const std::string& text : {std::string(), std::string("a\"b\\c/"), std::string("é你🙂"),
                                  std::string("\n\r\t\b\f\x01\x1f\x7f"), std::string("a\0b", 3),
                                  std::string("\u2028\u2029\u0085")}) {
    const std::string json = json_of(text);
    CHECK(nlohmann::json::parse(json).get<std::string>() == text);
    CHECK(json.find('\n') == std::string::npos);
    CHECK(json.find("\u2028") == std::string::npos);
  }
}

TEST_CASE("bad UTF-8 becomes the replacement character") {
  CHECK(json_of("a\xFFz") == "\"a\xEF\xBF\xBDz\"");
  CHECK(json_of("\xE4\xBD") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST_CASE("random bytes always give valid JSON on one line") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 3000; ++run) {
    std::string text(random() % 20, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string json = json_of(text);
    REQUIRE(nlohmann::json::accept(json));
    REQUIRE(is_valid_utf8(json));
    REQUIRE(json.find('\n') == std::string::npos);
    if (is_valid_utf8(text)) REQUIRE(nlohmann::json::parse(json).get<std::string>() == text);
  }
}

TEST_CASE("UTF-8 is judged by RFC 3629") {
  for (const std::string_view good : {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF",
                                      "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK(is_valid_utf8(good));
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE4\xBD",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC2z"}) {
    CHECK_FALSE(is_valid_utf8(bad));
  }
}

TEST_CASE("a prefix ends between characters") {
  CHECK(utf8_prefix("abc", 5) == 3);
  CHECK(utf8_prefix("abc", 2) == 2);
  CHECK(utf8_prefix("a🙂b", 4) == 1);
  CHECK(utf8_prefix("a🙂b", 5) == 5);
  CHECK(utf8_prefix("é", 1) == 0);
  CHECK(utf8_prefix("\x80\x80\x80\x80\x80\x80", 5) == 5);
}

}  // namespace
}  // namespace flashgate

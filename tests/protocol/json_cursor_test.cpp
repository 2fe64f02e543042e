#include "protocol/json_cursor.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace flashgate {
namespace {

bool is_valid(std::string_view text, std::size_t depth_max = 512) {
  JsonCursor json(text, depth_max);
  json.skip();
  return json.at_end();
}

TEST_CASE("valid JSON passes, whatever its numbers and escapes mean") {
  for (const std::string_view text : {"{}",
                                      "[]",
                                      " [ ] ",
                                      "{ }",
                                      "null",
                                      "true",
                                      "false",
                                      "0",
                                      "-0",
                                      "1e2",
                                      "1E+2",
                                      "0.5e-7",
                                      "18446744073709551616",
                                      "1e400",
                                      "0.30000000000000004",
                                      R"("\ud83d")",
                                      R"("\udc49")",
                                      R"("\u0000")",
                                      R"("\"\\\/\b\f\n\r\t")",
                                      R"({"a":[1,{"b":[]},"c"],"d":{}})",
                                      "\t\r\n {\"a\" : 1 , \"b\" : [ 1 , 2 ] }\n",
                                      "\"\x7f\"",
                                      "[[[]],[{}]]"}) {
    INFO(text);
    CHECK(is_valid(text));
  }
}

TEST_CASE("anything else is refused") {
  for (const std::string_view text : {"",           " ",
                                      "{",          "}",
                                      "[",          "]",
                                      "{]",         "[}",
                                      "[1,]",       "{\"a\":1,}",
                                      "[,1]",       "{,}",
                                      "[1 2]",      "{\"a\" 1}",
                                      "{\"a\":}",   "{\"a\"}",
                                      "{1:2}",      "{\"a\":1 \"b\":2}",
                                      "01",         "-",
                                      "+1",         "1.",
                                      ".5",         "1e",
                                      "1e+",        "0x1",
                                      "NaN",        "Infinity",
                                      "nul",        "nulll",
                                      "truefalse",  "tru",
                                      "'a'",        "\"",
                                      "\"\\\"",     "\"\\x\"",
                                      "\"\\u12\"",  "\"\\u12g4\"",
                                      "\"a\nb\"",   "\"\t\"",
                                      "{}{}",       "{} x",
                                      "[1]]",       "\xEF\xBB\xBF{}",
                                      "{\"a\":1}}", "[\"a\",]",
                                      "/**/1",      "[1,,2]",
                                      "--1"}) {
    INFO(text);
    CHECK_FALSE(is_valid(text));
  }
  CHECK_FALSE(is_valid(std::string_view("{}\0", 3)));
  CHECK_FALSE(is_valid(std::string_view("\"a\0b\"", 5)));
}

TEST_CASE("every proper prefix of a document is refused") {
  const std::string text = R"({"a":[1.5e3,true,null,{"b\u00e9":"c\\"}],"d":"e"})";
  REQUIRE(is_valid(text));
  for (std::size_t i = 0; i < text.size(); ++i) CHECK_FALSE(is_valid(text.substr(0, i)));
}

TEST_CASE("nesting is bounded and needs no stack") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(is_valid(nested(512)));
  CHECK_FALSE(is_valid(nested(513)));
  CHECK(is_valid(nested(1024), 5000));
  CHECK_FALSE(is_valid(nested(1025), 5000));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  JsonCursor json(objects);
  json.skip();
  CHECK(json.failed());
  CHECK(json.too_deep());
}

TEST_CASE("special bytes are found wherever they stand in a word") {
  for (const char special : {'"', '\\', '\x1f', '\0'}) {
    for (std::size_t size = 1; size < 40; ++size) {
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, '\x80');
        text[at] = special;
        const char* const end = text.data() + size;
        REQUIRE(find_string_special(text.data(), end) == text.data() + at);
      }
    }
  }
  const std::string plain = " !#[]\x7f\x80\xff 012";
  CHECK(find_string_special(plain.data(), plain.data() + plain.size()) ==
        plain.data() + plain.size());
}

std::string decoded(std::string_view raw, std::size_t bytes_max = 1000) {
  std::string out;
  append_decoded(out, {raw, true}, bytes_max);
  return out;
}

TEST_CASE("strings are decoded with lone surrogates replaced") {
  CHECK(decoded(R"(a\n\"\\\/\t)") == "a\n\"\\/\t");
  CHECK(decoded(R"(\u00e9\u4f60)") == "é你");
  CHECK(decoded(R"(\ud83d\ude42)") == "🙂");
  CHECK(decoded(R"(\ud83dx)") == "\xEF\xBF\xBDx");
  CHECK(decoded(R"(\ude42)") == "\xEF\xBF\xBD");
  CHECK(decoded(R"(\ud83d\ud83d\ude42)") == "\xEF\xBF\xBD🙂");
  CHECK(decoded(R"(\u0000)") == std::string(1, '\0'));
}

TEST_CASE("a capped string ends between characters") {
  CHECK(decoded("aé", 2) == "a");
  CHECK(decoded("a🙂b", 4) == "a");
  CHECK(decoded("a🙂b", 5) == "a🙂");
  CHECK(decoded(R"(a\u4f60)", 3) == "a");
}

TEST_CASE("numbers are clamped and rounded down") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  CHECK(json_integer("0") == 0);
  CHECK(json_integer("-7") == -7);
  CHECK(json_integer("1e2") == 100);
  CHECK(json_integer("99.9") == 99);
  CHECK(json_integer("18446744073709551616") == largest);
  CHECK(json_integer("-18446744073709551616") == smallest);
  CHECK(json_integer("1e400") == largest);
  CHECK(json_integer("-1e400") == smallest);
  CHECK(json_integer("1e-400") == 0);
  CHECK(json_integer("9223372036854775807.0") == largest);
}

TEST_CASE("members tell where they stand") {
  const std::string_view text = R"({ "a":1 , "b":2})";
  JsonCursor json(text);
  JsonString key;
  json.begin_object();
  REQUIRE(json.next_member(key));
  CHECK(json.key_offset() == 2);
  CHECK(json.separator_offset() == 2);
  json.skip();
  REQUIRE(json.next_member(key));
  CHECK(key.raw == "b");
  CHECK(text[json.separator_offset()] == ',');
  json.skip();
  CHECK_FALSE(json.next_member(key));
  CHECK(json.at_end());
}

}  // namespace
}  // namespace flashgate

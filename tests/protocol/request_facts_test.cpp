#include "protocol/request_facts.hpp"

#include <catch2/catch.hpp>

#include "tests/protocol/facts_of.hpp"

namespace flashgate {
namespace {

TEST_CASE("the fields we act on are read") {
  const std::string body =
      R"( { "model" : "fl\u0061sh", "stream":true, "stream_options":{"include_usage":true,"x":1},)"
      R"("max_tokens":100,"max_completion_tokens":200,"n":3,"user":"u","prompt_cache_key":"k",)"
      R"("store":true,"tools":[{"type":"function"}],)"
      R"("response_format":{"type":"json_schema","json_schema":{"name":"s"}},)"
      R"("messages":[{"role":"user","content":"hi"}]} )";
  const RequestFacts facts = facts_of(body);
  CHECK(facts.model == "flash");
  const auto at = [&](ByteRange range) { return body.substr(range.begin, range.size()); };
  CHECK(at(facts.model_range) == R"("fl\u0061sh")");
  CHECK(facts.stream);
  CHECK(facts.include_usage);
  CHECK(at(facts.stream_options_range) == R"({"include_usage":true,"x":1})");
  CHECK(at(facts.include_usage_range) == "true");
  CHECK(facts.max_tokens == 200);
  CHECK(at(facts.max_tokens_range) == "100");
  CHECK(at(facts.max_completion_tokens_range) == "200");
  CHECK(body[facts.object_begin - 1] == '{');
  CHECK(facts.choices == 3);
  CHECK(facts.turns == 1);
  CHECK(facts.tools);
  CHECK(facts.response_format == ResponseFormat::json_schema);
  CHECK(facts.user == "u");
  CHECK(facts.prompt_cache_key == "k");
  CHECK(facts.store);
  CHECK(facts.last_user_text == "hi");
}

TEST_CASE("what is not one JSON object in UTF-8 is refused with a fixed message") {
  const std::string ok = R"({"model":"m"})";
  REQUIRE(refusal_of(ok).empty());
  REQUIRE(refusal_of(" \r\n\t" + ok + "\n ").empty());
  for (const std::string& body :
       {std::string(), std::string("x"), std::string("[]"), std::string("\"a\""),
        "\xEF\xBB\xBF" + ok, ok + std::string(1, '\0'), ok + " xyz", ok + ok,
        std::string(R"({"model":"m",})"), std::string(R"({"model":"m","x":tru})"),
        std::string(R"({"model":"m","x":{"y":[1,}]}})"),
        std::string(R"({"model":"m","messages":[{"role":"user","content":"\x"}]})")}) {
    const std::string refusal = refusal_of(body);
    INFO(body << " gives " << refusal);
    CHECK((refusal.find("not valid JSON") != std::string::npos ||
           refusal.find("must be a JSON object") != std::string::npos));
  }
  for (const std::string bad :
       {"\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xE4\xBD", "\xC4\xE3\xBA\xC3"}) {
    const std::string refusal = refusal_of(R"({"model":"m","user":")" + bad + "\"}");
    CHECK(refusal == ": the request body is not valid UTF-8");
  }
}

TEST_CASE("numbers and escapes that many parsers refuse pass") {
  CHECK(refusal_of(R"({"model":"m","seed":18446744073709551616,"a":1e400,"b":"\ud83d","c":-0})")
            .empty());
}

TEST_CASE("deep nesting is refused, a deep tool schema is not") {
  const auto nested = [](std::size_t depth) {
    return R"({"model":"m","tools":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(refusal_of(nested(40)).empty());
  CHECK(refusal_of(nested(511)).empty());
  CHECK(refusal_of(nested(512)) == ": the request body is nested too deeply");
  CHECK(refusal_of(std::string(200'000, '[')) == ": the request body is nested too deeply");
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  CHECK(refusal_of(objects) == ": the request body is nested too deeply");
}

TEST_CASE("a key we act on may stand once, however it is spelled") {
  for (const std::string body :
       {R"({"model":"a","model":"b"})", R"({"model":"a","mod\u0065l":"b"})",
        R"({"model":"a","stream":true,"stream":false})",
        R"({"model":"a","messages":[],"messages":[]})",
        R"({"model":"a","max_tokens":1,"max_tokens":2})",
        R"({"model":"a","stream_options":{},"stream_options":{}})",
        R"({"model":"a","stream_options":{"include_usage":true,"include_usage":false}})",
        R"({"model":"a","Model":"b"})", R"({"MODEL":"b","model":"a"})"}) {
    INFO(body);
    CHECK_FALSE(refusal_of(body).empty());
  }
  CHECK(refusal_of(R"({"model":"a","vendor":1,"vendor":2})").empty());
  CHECK(refusal_of(R"({"model":"a","x":{"model":"b"}})").empty());
}

TEST_CASE("wrong types of the fields we act on name the parameter") {
  struct Row {
    std::string body;
    std::string param;
  };
  const Row rows[] = {
      {R"({})", "model"},
      {R"({"messages":[]})", "model"},
      {R"({"model":5})", "model"},
      {R"({"model":null})", "model"},
      {R"({"model":""})", "model"},
      {R"({"model":")" + std::string(2000, 'm') + "\"}", "model"},
      {R"({"model":"m","stream":"true"})", "stream"},
      {R"({"model":"m","stream":1})", "stream"},
      {R"({"model":"m","max_tokens":"99999"})", "max_tokens"},
      {R"({"model":"m","max_completion_tokens":[1]})", "max_completion_tokens"},
  };
  for (const Row& row : rows) {
    INFO(row.body.substr(0, 60));
    const auto result = facts_result(row.body);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == ApiErrorKind::invalid_request);
    CHECK(result.error().param == row.param);
  }
}

TEST_CASE("stream that is absent, null or false is no stream") {
  CHECK_FALSE(facts_of(R"({"model":"m"})").stream);
  CHECK_FALSE(facts_of(R"({"model":"m","stream":null})").stream);
  CHECK_FALSE(facts_of(R"({"model":"m","stream":false})").stream);
}

TEST_CASE("messages of any type are tolerated") {
  for (
      const std::string messages :
      {"\"text\"", "5", "null", "[]", "[null]", "[5]", R"([{"role":5}])", R"([{"content":{}}])",
       R"([{"role":"user","content":[null,5,"a",{"type":7,"text":{}}]}])", "{}", "[[[[[[[[]]]]]]]]",
       R"([{"role":"assistant","content":null,"tool_calls":null}])",
       R"([{"role":"user","content":[{"content":[{"content":[{"content":[{"content":[]}]}]}]}]}])"}) {
    INFO(messages);
    CHECK(refusal_of(R"({"model":"m","messages":)" + messages + "}").empty());
  }
}

TEST_CASE("token limits that are floats, negative or huge are understood") {
  CHECK(facts_of(R"({"model":"m","max_tokens":1e2})").max_tokens == 100);
  CHECK(facts_of(R"({"model":"m","max_tokens":-1})").max_tokens == -1);
  CHECK(facts_of(R"({"model":"m","max_tokens":1e400})").max_tokens ==
        std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(facts_of(R"({"model":"m","max_tokens":null})").max_tokens);
  CHECK(facts_of(R"({"model":"m","max_output_tokens":7})", ApiKind::responses).max_tokens == 7);
}

TEST_CASE("what follows a failure inside a known field is still a refusal") {
  for (const std::string tail :
       {R"("messages":[{"role":"user","content":"a)", R"("model":"b)", R"("stream_options":{"incl)",
        R"("max_tokens":)", R"("max_tokens":1)", R"("response_format":{"type":)", R"("tools":[)",
        R"("text":{"format":{)", R"("n":)", R"("n":-)", R"("store":t)", R"("user":)",
        R"("stream":t)", R"("prompt_cache_key":"x)"}) {
    INFO(tail);
    CHECK_FALSE(refusal_of("{\"a\":1," + tail).empty());
  }
}

}  // namespace
}  // namespace flashgate

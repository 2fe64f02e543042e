#include "protocol/reply_facts.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "protocol/padded_body.hpp"

namespace flashgate {
namespace {

ReplyFacts reply(std::string_view body, ApiKind api = ApiKind::chat) {
  return read_reply_facts(api, BodyBuffer(body).view(), TokenizerFamily::o200k);
}

TEST_CASE("a chat answer gives usage, finish reason and the size of its text") {
  const ReplyFacts facts = reply(
      R"({"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"Hello\nthere","refusal":null},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":5,"completion_tokens":3},"error":null})");
  CHECK(facts.is_json);
  CHECK_FALSE(facts.has_error);
  CHECK(facts.has_choices);
  CHECK_FALSE(facts.empty);
  CHECK(facts.finish_reason == "stop");
  CHECK(facts.response_id == "c1");
  CHECK(facts.usage.input == 5);
  CHECK(facts.usage.output == 3);
  CHECK(facts.output_text_bytes == 11);
  CHECK(facts.output_tokens_estimate > 1);
}

TEST_CASE("an answer is empty when it answers nothing") {
  struct Row {
    std::string body;
    ApiKind api;
    bool empty;
  };
  const Row rows[] = {
      {"", ApiKind::chat, true},
      {" \n", ApiKind::other, true},
      {"{}", ApiKind::chat, true},
      {"{}", ApiKind::other, false},
      {R"({"choices":[]})", ApiKind::chat, true},
      {R"({"choices":[{"message":{"content":""},"finish_reason":"stop"}]})", ApiKind::chat, true},
      {R"({"choices":[{"message":{"content":null}}]})", ApiKind::chat, true},
      {R"({"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":{}}}]}}]})",
       ApiKind::chat, false},
      {R"({"choices":[{"message":{"reasoning_content":"hm"}}]})", ApiKind::chat, false},
      {R"({"choices":[{"text":"a"}]})", ApiKind::completions, false},
      {R"({"data":[]})", ApiKind::embeddings, true},
      {R"({"data":[{"embedding":[0.1]}]})", ApiKind::embeddings, false},
      {R"({"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]})",
       ApiKind::responses, false},
      {R"({"output":[{"type":"function_call","name":"f","arguments":"{}"}]})", ApiKind::responses,
       false},
      {R"({"output":[],"status":"completed"})", ApiKind::responses, true},
      {R"({"content":[{"type":"text","text":"a"}],"type":"message","stop_reason":"end_turn"})",
       ApiKind::messages, false},
      {R"({"content":[],"type":"message"})", ApiKind::messages, true},
      {R"({"error":{"message":"m"}})", ApiKind::chat, false},
      {"plain text", ApiKind::chat, false},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    CHECK(reply(row.body, row.api).empty == row.empty);
  }
}

TEST_CASE("an error in a 200 is seen in every shape, a null error is none") {
  struct Row {
    std::string body;
    bool error;
  };
  const Row rows[] = {
      {R"({"error":{"message":"m","code":"rate_limit_exceeded"}})", true},
      {R"({"error":"m"})", true},
      {R"({"object":"error","message":"m","code":400})", true},
      {R"({"detail":"m"})", true},
      {R"([{"error":{"message":"m","code":429}}])", true},
      {R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})", true},
      {R"({"error":null,"choices":[{"message":{"content":"a"}}]})", false},
      {R"({"error":{},"choices":[{"message":{"content":"a"}}]})", false},
      {R"({"id":"r","object":"response","status":"completed","error":null,"output":[]})", false},
      {R"({"error":{"message":"m"})", false},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    const ReplyFacts facts = reply(row.body);
    CHECK(facts.has_error == row.error);
    if (row.error) CHECK(facts.error_message == "m");
  }
  CHECK(reply(R"({"error":{"message":"m","code":429}})").error_status == 429);
}

TEST_CASE("Responses and Messages answers give their usage and reason") {
  const ReplyFacts responses = reply(
      R"({"id":"r1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},)"
      R"("output":[{"type":"message","content":[{"type":"output_text","text":"ab"}]}],)"
      R"("usage":{"input_tokens":4,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}})",
      ApiKind::responses);
  CHECK(responses.finish_reason == "max_output_tokens");
  CHECK(responses.usage.input == 4);
  CHECK(responses.usage.reasoning == 1);
  CHECK(responses.output_text_bytes == 2);
  const ReplyFacts messages = reply(
      R"({"id":"m1","type":"message","content":[{"type":"text","text":"ab"}],"stop_reason":"end_turn",)"
      R"("usage":{"input_tokens":4,"cache_creation_input_tokens":6,"output_tokens":2}})",
      ApiKind::messages);
  CHECK(messages.finish_reason == "end_turn");
  CHECK(messages.usage.input == 10);
}

nlohmann::json normalized(std::string_view body, int status = 400) {
  const auto json = nlohmann::json::parse(normalize_error_body(status, body));
  CHECK(json.size() == 1);
  const auto error = json.at("error");
  CHECK(error.at("message").is_string());
  CHECK(error.at("type").is_string());
  CHECK((error.at("code").is_null() || error.at("code").is_string()));
  CHECK((error.at("param").is_null() || error.at("param").is_string()));
  return error;
}

TEST_CASE("error bodies of every shape leave in OpenAI's") {
  struct Row {
    std::string body;
    std::string message;
  };
  const Row rows[] = {
      {R"({"error":{"message":"m","type":"t","param":null,"code":"c"}})", "m"},
      {R"({"detail":"m"})", "m"},
      {R"({"object":"error","message":"m","code":400})", "m"},
      {R"({"error":"m"})", "m"},
      {R"({"message":"m"})", "m"},
      {R"("m")", "m"},
      {R"([{"error":{"message":"m"}}])", "m"},
      {"m", "m"},
      {R"({"detail":[{"loc":["body","messages",0],"msg":"field required","type":"x"},{"msg":"b"}]})",
       "body.messages.0: field required; b"},
      {R"({"errors":["a","b"]})", "a; b"},
      {R"({"error":{"message":{"detail":"m"}}})", "m"},
      {"", "the backend answered 400 without a message"},
      {" \r\n", "the backend answered 400 without a message"},
      {"<html><head><title>502 Bad Gateway</title></head></html>",
       "the backend answered 400 with an HTML page: 502 Bad Gateway"},
      {"<!DOCTYPE html><p>x", "the backend answered 400 with an HTML page"},
      {"\xFF\xFE", "the backend answered 400 with a message that is not UTF-8"},
      {R"({"a":)", "the backend answered 400 in a form we do not know"},
      {R"({"a":1})", "the backend answered 400 in a form we do not know"},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    CHECK(normalized(row.body).at("message") == row.message);
  }
  const auto kept = normalized(R"({"error":{"message":"m","type":"t","param":"p","code":7}})");
  CHECK(kept.at("type") == "t");
  CHECK(kept.at("param") == "p");
  CHECK(kept.at("code") == "7");
  CHECK(normalized("", 503).at("type") == "server_error");
  CHECK(normalized("", 429).at("type") == "rate_limit_error");
}

TEST_CASE("a long message is cut and control characters go") {
  const auto error = normalized("a\x1b[31mb\r\n" + std::string(100'000, 'x'));
  CHECK(error.at("message").get<std::string>().size() == 2048);
  CHECK(error.at("message").get<std::string>().find('\x1b') == std::string::npos);
}

TEST_CASE("keys and internal addresses are masked, harmless words stay") {
  struct Row {
    std::string message;
    std::string expected;
  };
  const Row rows[] = {
      {"Incorrect API key provided: sk-abcdef123456.", "Incorrect API key provided: [key]."},
      {"key=sk-proj-abcdef123456 failed", "key=[key] failed"},
      {"Authorization: Bearer abcdef.ghi-jk", "Authorization: Bearer [key]"},
      {"Incorrect API key provided: 0123456789abcdef", "Incorrect API key provided: [key]"},
      {"connect to http://10.0.0.5:8000/v1/chat failed", "connect to [address] failed"},
      {"see https://platform.openai.com/docs/errors.",
       "see https://platform.openai.com/docs/errors."},
      {"from http://vllm-0/v1", "from [address]"},
      {"https://user:secret@example.com/x", "[address]"},
      {"https://api.example.com:8443/v1", "[address]"},
      {"dial tcp 192.168.1.7:9000: refused", "dial tcp [address]: refused"},
      {"host 10.1.2.3 is down", "host [address] is down"},
      {"cannot connect to vllm:8000", "cannot connect to [address]"},
      {"llm.svc.cluster.local:80 timed out", "[address] timed out"},
      {"[fd00::1]:8000 refused", "[address] refused"},
      {"(host='localhost', port=8000)", "(host='localhost', port=8000)"},
      {"at 12:30:45 max_tokens:4096 is too large", "at 12:30:45 max_tokens:4096 is too large"},
      {"maximum context length is 8192 tokens, however you requested 9000",
       "maximum context length is 8192 tokens, however you requested 9000"},
      {"risk-averse task-based desk-1234567", "risk-averse task-based desk-1234567"},
      {"消息：请求过长", "消息：请求过长"},
  };
  for (const Row& row : rows) CHECK(mask_secrets(row.message) == row.expected);
  const std::string out = normalize_error_body(
      401, R"({"error":{"message":"bad sk-secret123456","code":"sk-secret123456"}})");
  CHECK(out.find("secret") == std::string::npos);
}

TEST_CASE("a key is masked before the message is cut") {
  for (std::size_t size = 2030; size < 2060; ++size) {
    const std::string message = std::string(size, 'x') + " sk-verysecret0123456789";
    CHECK(normalize_error_body(400, message).find("secret") == std::string::npos);
  }
}

}  // namespace
}  // namespace flashgate

#include "protocol/stream_reader.hpp"

#include <catch2/catch.hpp>

#include "tests/protocol/sse_streams.hpp"

namespace flashgate {
namespace {

using Kinds = std::vector<SseKind>;

TEST_CASE("what a chat chunk is depends on its content") {
  struct Row {
    std::string data;
    SseKind kind;
  };
  const Row rows[] = {
      {R"({"choices":[],"prompt_filter_results":[]})", SseKind::preamble},
      {R"({"choices":[{"delta":{"role":"assistant"}}]})", SseKind::preamble},
      {R"({"choices":[{"delta":{}}]})", SseKind::preamble},
      {R"({"choices":[{"delta":null}]})", SseKind::preamble},
      {R"({"choices":[{"delta":{"content":null,"tool_calls":null}}]})", SseKind::preamble},
      {R"({"choices":[{"delta":{"tool_calls":[]}}]})", SseKind::preamble},
      {R"({"choices":[{"delta":{"content":"a"}}]})", SseKind::content},
      {R"({"choices":[{"delta":{"reasoning_content":"a"}}]})", SseKind::content},
      {R"({"choices":[{"delta":{"reasoning":"a"}}]})", SseKind::content},
      {R"({"choices":[{"delta":{"refusal":"a"}}]})", SseKind::content},
      {R"({"choices":[{"delta":{"audio":{"data":"AAAA"}}}]})", SseKind::content},
      {R"({"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]})", SseKind::content},
      {R"({"choices":[{"text":"a","finish_reason":null}]})", SseKind::content},
      {R"({"choices":[{"text":"a","finish_reason":"stop"}]})", SseKind::content},
      {R"({"choices":[{"text":"","finish_reason":"stop"}]})", SseKind::finish},
      {R"({"choices":[],"usage":{"prompt_tokens":1}})", SseKind::usage},
      {R"({"choices":null,"usage":{"prompt_tokens":1}})", SseKind::usage},
      {R"({"usage":{"prompt_tokens":1}})", SseKind::usage},
      {R"({"object":"chat.completion.chunk","usage":null})", SseKind::preamble},
      {R"({"error":null,"choices":[{"delta":{"content":"a"}}]})", SseKind::content},
      {R"({"error":{"message":"quota","code":429},"choices":[]})", SseKind::error},
      {R"({"error":"quota"})", SseKind::error},
      {R"({"object":"error","message":"m","code":400})", SseKind::error},
      {R"({"something":1})", SseKind::other},
      {R"({"choices":[{"delta":{"content":"a"}}])", SseKind::other},
      {R"([1])", SseKind::other},
      {"", SseKind::other},
      {"text", SseKind::other},
  };
  for (const Row& row : rows) {
    INFO(row.data);
    CHECK(StreamReader(TokenizerFamily::o200k, 1).read(row.data, "") == row.kind);
  }
}

TEST_CASE("an error in the stream gives its message, code, type and status") {
  struct Row {
    std::string event;
    std::string message;
    std::string code;
    int status;
  };
  const Row rows[] = {
      {R"(data: {"error":{"message":"quota","code":429}})", "quota", "429", 429},
      {R"(data: {"error":{"message":"m","type":"server_error"}})", "m", "", 500},
      {"event: error\ndata: it broke", "it broke", "", 0},
      {"event: error\ndata: {\"message\":\"m\",\"code\":\"rate_limit_exceeded\"}", "m",
       "rate_limit_exceeded", 429},
      {R"(data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}})", "busy", "",
       529},
      {R"(data: {"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}})",
       "m", "server_error", 500},
  };
  for (const Row& row : rows) {
    INFO(row.event);
    const Seen seen = scan_stream(row.event + "\n\n");
    CHECK(seen.kinds() == Kinds{SseKind::error});
    CHECK(seen.facts.error_seen);
    CHECK(seen.facts.error_message == row.message);
    CHECK(seen.facts.error_code == row.code);
    CHECK(seen.facts.error_status == row.status);
  }
}

TEST_CASE("an error message is capped") {
  const std::string text(100'000, 'e');
  CHECK(scan_stream(R"(data: {"error":{"message":")" + text + "\"}}\n\n")
            .facts.error_message.size() == 2048);
  CHECK(scan_stream("event: error\ndata: " + text + "\n\n").facts.error_message.size() == 2048);
}

TEST_CASE("a stream is finished only when every choice has a finish reason") {
  SseOptions options;
  options.choices = 2;
  const std::string first = chunk(R"({"content":"a"})", "null", 0) +
                            chunk(R"({"content":"b"})", "null", 1) + chunk("{}", "\"stop\"", 1);
  CHECK_FALSE(scan_stream(first, options).facts.finished);
  CHECK(scan_stream(first + chunk("{}", "\"length\"", 0), options).facts.finished);
  CHECK_FALSE(scan_stream(finish_chunk, options).facts.finished);
  CHECK_FALSE(scan_stream(first).facts.finished);
}

TEST_CASE("hostile choice indexes are harmless") {
  for (const std::string index : {"-1", "99999999999999999999", "1e400", "0.5", "\"a\"", "null"}) {
    const std::string event = R"(data: {"choices":[{"index":)" + index +
                              R"(,"delta":{},"finish_reason":"stop"}]})"
                              "\n\n";
    CHECK(scan_stream(event).facts.finished);
  }
}

TEST_CASE("usage on every chunk counts the last one and null changes nothing") {
  const auto with = [](std::string_view usage) {
    return replaced(content("a"), "}]}", R"(}],"usage":)" + std::string(usage) + "}");
  };
  const Seen seen =
      scan_stream(with("null") + with(R"({"prompt_tokens":5,"completion_tokens":1})") +
                  with(R"({"prompt_tokens":5,"completion_tokens":2})") + with("null"));
  CHECK(seen.facts.usage.present);
  CHECK(seen.facts.usage.input == 5);
  CHECK(seen.facts.usage.output == 2);
}

TEST_CASE("usage with odd numbers is taken as far as it makes sense") {
  const Seen seen = scan_stream(
      R"(data: {"usage":{"prompt_tokens":-5,"completion_tokens":1e400,"cached":{},"prompt_tokens_details":null}})"
      "\n\n");
  CHECK(seen.facts.usage.input == 0);
  CHECK(seen.facts.usage.output == 1'000'000'000'000);
}

TEST_CASE("tool calls of every shape are content and are counted") {
  for (const std::string delta :
       {R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]})",
        R"({"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]})",
        R"({"tool_calls":[{"id":"a"},{"id":"b"}]})", R"({"tool_calls":[null]})",
        R"({"function_call":{"name":"f","arguments":""}})"}) {
    INFO(delta);
    const Seen seen = scan_stream(chunk(delta));
    CHECK(seen.kinds() == Kinds{SseKind::content});
    CHECK(seen.facts.tool_calls);
  }
  const Seen args =
      scan_stream(chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]})"));
  CHECK(args.facts.output_text_bytes == 7);
}

TEST_CASE("the token estimate of a stream is that of its text, not one per delta") {
  std::string text;
  std::string stream;
  for (int i = 0; i < 2000; ++i) {
    const std::string word = i % 3 == 0 ? " under" : i % 3 == 1 ? "stand" : "ing";
    text += word;
    stream += content(word);
  }
  const Seen seen = scan_stream(stream + done_event);
  CHECK(seen.facts.output_text_bytes == text.size());
  CHECK(seen.facts.output_tokens_estimate ==
        Approx(estimate_tokens(text, TokenizerFamily::o200k)).epsilon(0.1));
}

TEST_CASE("Responses events are understood") {
  const std::string stream =
      "event: response.created\n"
      "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"status\":\"in_progress\","
      "\"usage\":null,\"error\":null}}\n\n"
      "event: response.output_item.added\n"
      "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\"}}\n\n"
      "event: response.output_text.delta\n"
      "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n"
      "event: response.output_text.delta\n"
      "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n"
      "event: response.completed\n"
      "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\","
      "\"error\":null,\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":4},"
      "\"output_tokens\":5,\"output_tokens_details\":{\"reasoning_tokens\":1}}}}\n\n";
  const Seen seen = scan_stream(stream);
  CHECK(seen.kinds() == Kinds{SseKind::preamble, SseKind::preamble, SseKind::content,
                              SseKind::preamble, SseKind::done});
  CHECK(seen.facts.response_id == "r1");
  CHECK(seen.facts.usage.input == 9);
  CHECK(seen.facts.usage.cached == 4);
  CHECK(seen.facts.usage.output == 5);
  CHECK(seen.facts.usage.reasoning == 1);
  CHECK(seen.facts.finish_reason == "completed");
  CHECK(seen.facts.done_seen);
  CHECK(seen.facts.finished);
  CHECK_FALSE(seen.facts.error_seen);
  const Seen cut = scan_stream(
      "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
      "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n");
  CHECK(cut.facts.finish_reason == "max_output_tokens");
}

TEST_CASE("Messages events are understood") {
  const std::string stream =
      "event: message_start\n"
      "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"content\":[],\"usage\":"
      "{\"input_tokens\":10,\"cache_read_input_tokens\":30,\"output_tokens\":1}}}\n\n"
      "event: content_block_start\n"
      "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
      "{\"type\":\"text\",\"text\":\"\"}}\n\n"
      "event: ping\ndata: {\"type\": \"ping\"}\n\n"
      "event: content_block_delta\n"
      "data: "
      "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n"
      "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
      "event: message_delta\n"
      "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":"
      "{\"output_tokens\":15}}\n\n"
      "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  const Seen seen = scan_stream(stream);
  CHECK(seen.kinds() == Kinds{SseKind::preamble, SseKind::preamble, SseKind::comment,
                              SseKind::content, SseKind::preamble, SseKind::finish, SseKind::done});
  CHECK(seen.facts.response_id == "m1");
  CHECK(seen.facts.usage.input == 40);
  CHECK(seen.facts.usage.cached == 30);
  CHECK(seen.facts.usage.output == 15);
  CHECK(seen.facts.finish_reason == "end_turn");
  CHECK(seen.facts.finished);
  CHECK(seen.facts.output_text_bytes == 2);
  const Seen tool = scan_stream(
      "data: "
      "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\","
      "\"name\":\"f\",\"input\":{}}}\n\n");
  CHECK(tool.kinds() == Kinds{SseKind::content});
  CHECK(tool.facts.tool_calls);
}

}  // namespace
}  // namespace flashgate

#include "simulator/reply.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "simulator/pretend_text.hpp"

using namespace flashgate;

namespace {

Prompt prompt_of(SimApi api, const char* body) {
  const ReadBody read = read_json(body);
  INFO(body);
  REQUIRE(read.why.empty());
  return read_prompt(api, read.json);
}

Json first_json(const Reply& reply) {
  return Json::parse(reply.pieces.at(0).bytes);
}

/// The JSON of all data lines but [DONE].
std::vector<Json> events_of(const Reply& reply) {
  std::vector<Json> out;
  for (const Piece& piece : reply.pieces) {
    const std::size_t at = piece.bytes.find("data: ");
    REQUIRE(at != std::string::npos);
    CHECK(piece.bytes.ends_with("\n\n"));
    const std::string data = piece.bytes.substr(at + 6);
    if (!data.starts_with("[DONE]")) out.push_back(Json::parse(data));
  }
  return out;
}

const SimulatorOptions options{};
const ReplyContext context{options};

}  // namespace

TEST_CASE("splitting gives back the text and as many tokens as counting") {
  for (const char* text :
       {"", "Hello, world!", "internationalization", "  two  spaces ", "你好，世界🙂",
        "{\"a\":[1,2.5,true]}", "x\n\n\ny\t", "\xff\xc0 broken \xe4\xbd"}) {
    INFO(text);
    std::string joined;
    const auto tokens = split_tokens(text);
    for (const std::string& token : tokens) joined += token;
    CHECK(joined == text);
    CHECK(count_tokens(text) == tokens.size());
  }
  CHECK(count_tokens("The plan keeps order.") == 5);
  CHECK(count_tokens("你好，世界") == 5);
}

TEST_CASE("an answer has exactly the tokens asked for and depends on prompt and seed") {
  for (const std::size_t tokens : {0, 1, 7, 40, 1000}) {
    CHECK(count_tokens(pretend_answer("Tell me", 1, tokens)) == tokens);
    CHECK(count_tokens(pretend_answer("讲一讲", 1, tokens)) == tokens);
  }
  CHECK(pretend_answer("a", 1, 40) == pretend_answer("a", 1, 40));
  CHECK(pretend_answer("a", 1, 40) != pretend_answer("b", 1, 40));
  CHECK(pretend_answer("a", 1, 40) != pretend_answer("a", 2, 40));
}

TEST_CASE("a Chinese prompt gets a Chinese answer") {
  CHECK(looks_chinese(pretend_answer("请介绍一下路由", 1, 20)));
  CHECK_FALSE(looks_chinese(pretend_answer("Tell me about routing", 1, 20)));
  CHECK_FALSE(looks_chinese(pretend_answer("Où est l'été?", 1, 20)));
}

TEST_CASE("values fit their schema") {
  const Json schema = Json::parse(R"({"type":"object","properties":{
    "name":{"type":"string","minLength":30},"short":{"type":"string","maxLength":3},
    "age":{"type":"integer","minimum":18,"maximum":20},
    "rate":{"type":"number","exclusiveMinimum":50},
    "kind":{"enum":["a","b"]},"fixed":{"const":5},"tags":{"type":"array","items":{"type":"string"},
    "minItems":3,"maxItems":4},"maybe":{"anyOf":[{"type":"null"},{"type":"boolean"}]},
    "list":{"type":["null","array"],"items":{"$ref":"#/$defs/point"}},"when":{"type":"string",
    "format":"date"}},"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}}}}})");
  const Json value = value_for_schema(schema, 3);
  CHECK(value["name"].get<std::string>().size() >= 30);
  CHECK(value["short"].get<std::string>().size() <= 3);
  CHECK(value["age"].get<int>() >= 18);
  CHECK(value["age"].get<int>() <= 20);
  CHECK(value["rate"].get<double>() > 50);
  CHECK((value["kind"] == "a" || value["kind"] == "b"));
  CHECK(value["fixed"] == 5);
  CHECK(value["tags"].size() == 3);
  CHECK(value["maybe"].is_boolean());
  CHECK(value["list"][0]["x"].is_number());
  CHECK(value["when"] == "2024-05-17");
  CHECK(value == value_for_schema(schema, 3));
}

TEST_CASE("a schema that contains itself ends") {
  const Json schema = Json::parse(
      R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["v","next"],"properties":
      {"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]},
      "more":{"type":"array","items":{"$ref":"#/$defs/n"}}}}}})");
  CHECK(value_for_schema(schema, 1)["v"].is_number());
  const Json loop = Json::parse(R"({"$ref":"#"})");
  CHECK(value_for_schema(loop, 1).is_null());
}

TEST_CASE("a body of odd types is read without harm") {
  for (const char* body :
       {R"({"messages":5,"tools":{},"n":"x","max_tokens":1e400,"stream":1})",
        R"({"messages":[null,5,{"role":5},{"role":"user"}],"tools":[null,{"function":3}]})",
        R"({"messages":[],"stream_options":[],"response_format":"x","tool_choice":7})",
        R"({"messages":{"a":[{}]},"n":-5,"max_tokens":-9,"sim_tokens":99999999999})"}) {
    const ReadBody read = read_json(body);
    if (!read.why.empty()) continue;
    const Prompt prompt = read_prompt(SimApi::chat, read.json);
    CHECK(prompt.choices == 1);
    CHECK_FALSE(chat_reply(prompt, context).pieces.empty());
  }
  CHECK(read_json(std::string(200'000, '[')).why == "the body is nested too deeply");
  CHECK(read_json("{\"a\":").why == "the body is not valid JSON");
  CHECK(read_json("[]").why == "the body is not a JSON object");
}

TEST_CASE("the usage of a chat answer is its tokens, streamed or not") {
  const char* const body = R"({"model":"m","messages":[{"role":"user","content":"one two"}],
    "stream":%,"stream_options":{"include_usage":true}})";
  std::string whole(body);
  std::string streamed(body);
  whole.replace(whole.find('%'), 1, "false");
  streamed.replace(streamed.find('%'), 1, "true");
  const Json unary = first_json(chat_reply(prompt_of(SimApi::chat, whole.c_str()), context));
  CHECK(unary["usage"]["completion_tokens"] == 40);
  CHECK(unary["usage"]["prompt_tokens"] == 6);
  CHECK(unary["usage"]["total_tokens"] == 46);
  CHECK(unary["choices"][0]["finish_reason"] == "stop");

  const auto events = events_of(chat_reply(prompt_of(SimApi::chat, streamed.c_str()), context));
  REQUIRE(events.size() == 1 + 40 + 1 + 1);
  std::string text;
  for (const Json& event : events) {
    if (event["choices"].empty()) continue;
    const Json& delta = event["choices"][0]["delta"];
    if (delta.contains("content")) text += delta["content"].get<std::string>();
  }
  CHECK(text == unary["choices"][0]["message"]["content"]);
  CHECK(events.back()["choices"].empty());
  CHECK(events.back()["usage"] == unary["usage"]);
}

TEST_CASE("a stream without include_usage has no usage and ends with DONE") {
  const Reply reply = chat_reply(prompt_of(SimApi::chat, R"({"stream":true})"), context);
  for (const Json& event : events_of(reply)) CHECK_FALSE(event.contains("usage"));
  CHECK(reply.pieces.back().bytes == "data: [DONE]\n\n");
  CHECK(reply.pieces.back().kind == PieceKind::done);
}

TEST_CASE("max_tokens cuts the answer and says so") {
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    const std::string body = std::string("{\"messages\":[],\"") + key + "\":5}";
    const Json answer = first_json(chat_reply(prompt_of(SimApi::chat, body.c_str()), context));
    CHECK(answer["usage"]["completion_tokens"] == 5);
    CHECK(answer["choices"][0]["finish_reason"] == "length");
  }
}

TEST_CASE("n choices differ and are counted together") {
  const Json answer =
      first_json(chat_reply(prompt_of(SimApi::chat, R"({"messages":[],"n":3})"), context));
  REQUIRE(answer["choices"].size() == 3);
  std::set<std::string> texts;
  for (const Json& choice : answer["choices"]) texts.insert(choice["message"]["content"]);
  CHECK(texts.size() == 3);
  CHECK(answer["usage"]["completion_tokens"] == 120);
}

TEST_CASE("a tool is called when the request asks for it and not otherwise") {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"get_weather",
    "parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}])";
  const auto finish = [&tools](const std::string& rest) {
    const std::string body = "{" + tools + "," + rest + "}";
    return first_json(chat_reply(prompt_of(SimApi::chat, body.c_str()), context))["choices"][0];
  };
  const std::string weather = R"("messages":[{"role":"user","content":"The Weather in Rome?"}])";
  const std::string hello = R"("messages":[{"role":"user","content":"hello"}])";
  const Json called = finish(weather);
  CHECK(called["finish_reason"] == "tool_calls");
  CHECK(called["message"]["content"].is_null());
  const Json& call = called["message"]["tool_calls"][0];
  CHECK(call["function"]["name"] == "get_weather");
  CHECK(Json::parse(call["function"]["arguments"].get<std::string>()).contains("city"));
  CHECK(finish(hello)["finish_reason"] == "stop");
  CHECK(finish(hello + R"(,"tool_choice":"required")")["finish_reason"] == "tool_calls");
  CHECK(finish(weather + R"(,"tool_choice":"none")")["finish_reason"] == "stop");
  const Json after = finish(
      R"("messages":[{"role":"user","content":"weather"},{"role":"tool","content":"22 degrees"}])");
  CHECK(after["finish_reason"] == "stop");
  CHECK_THAT(after["message"]["content"].get<std::string>(), Catch::Contains("22 degrees"));
}

TEST_CASE("streamed tool arguments join to the whole call") {
  const char* const body = R"({"stream":true,"tool_choice":"required","tools":[{"type":"function",
    "function":{"name":"f","parameters":{"properties":{"a":{"type":"integer"}}}}}]})";
  std::string arguments;
  std::string name;
  for (const Json& event : events_of(chat_reply(prompt_of(SimApi::chat, body), context))) {
    const Json& delta = event["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const Json& function = delta["tool_calls"][0]["function"];
    if (function.contains("name")) name = function["name"];
    arguments += function["arguments"].get<std::string>();
  }
  CHECK(name == "f");
  CHECK(Json::parse(arguments)["a"].is_number_integer());
}

TEST_CASE("structured output is JSON of the wanted shape") {
  const auto content = [](const char* body) {
    const Json answer = first_json(chat_reply(prompt_of(SimApi::chat, body), context));
    return Json::parse(answer["choices"][0]["message"]["content"].get<std::string>());
  };
  CHECK(content(R"({"response_format":{"type":"json_object"}})").is_object());
  CHECK(content(R"({"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":
    {"type":"object","properties":{"ok":{"type":"boolean"}}}}}})")["ok"]
            .is_boolean());
}

TEST_CASE("sim_answer is said word for word and sim_tokens sets the length") {
  const Json exact = first_json(
      chat_reply(prompt_of(SimApi::chat, R"({"messages":[],"sim_answer":"pong 你好"})"), context));
  CHECK(exact["choices"][0]["message"]["content"] == "pong 你好");
  CHECK(exact["usage"]["completion_tokens"] == 3);
  const Json longer = first_json(
      chat_reply(prompt_of(SimApi::chat, R"({"messages":[],"sim_tokens":99})"), context));
  CHECK(longer["usage"]["completion_tokens"] == 99);
}

TEST_CASE("the Messages API names its events and counts the same tokens") {
  const char* const body = R"({"system":"Be brief.","max_tokens":6,"stream":true,
    "messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]})";
  const Reply reply = messages_reply(prompt_of(SimApi::messages, body), context);
  const auto events = events_of(reply);
  CHECK(events.front()["type"] == "message_start");
  CHECK(events.front()["message"]["usage"]["input_tokens"] == reply.input_tokens);
  CHECK(events.back()["type"] == "message_stop");
  const Json& delta = events[events.size() - 2];
  CHECK(delta["delta"]["stop_reason"] == "max_tokens");
  CHECK(delta["usage"]["output_tokens"] == 6);
  CHECK(reply.input_tokens == 3 + 1 + 4);
  for (const Piece& piece : reply.pieces) CHECK(piece.bytes.starts_with("event: "));
}

TEST_CASE("a Messages tool call carries its input as an object") {
  const Json answer = first_json(messages_reply(
      prompt_of(SimApi::messages, R"({"tools":[{"name":"f","input_schema":{"type":"object",
      "properties":{"q":{"type":"string"}}}}],"tool_choice":{"type":"any"},"messages":[]})"),
      context));
  CHECK(answer["stop_reason"] == "tool_use");
  CHECK(answer["content"][0]["input"]["q"].is_string());
}

TEST_CASE("the Responses API numbers its events and ends with usage") {
  const Reply reply = responses_reply(
      prompt_of(SimApi::responses, R"({"input":"hi","stream":true,"instructions":"be kind"})"),
      context);
  const auto events = events_of(reply);
  for (std::size_t i = 0; i < events.size(); ++i) CHECK(events[i]["sequence_number"] == i);
  CHECK(events.front()["type"] == "response.created");
  CHECK(events.back()["type"] == "response.completed");
  const Json& response = events.back()["response"];
  CHECK(response["usage"]["output_tokens"] == 40);
  CHECK(response["usage"]["input_tokens"] == 3);
  std::string text;
  for (const Json& event : events) {
    if (event["type"] == "response.output_text.delta") text += event["delta"].get<std::string>();
  }
  CHECK(response["output"][0]["content"][0]["text"] == text);
}

TEST_CASE("a Responses answer over its limit is incomplete") {
  const Json answer = first_json(responses_reply(
      prompt_of(SimApi::responses, R"({"input":"hi","max_output_tokens":3})"), context));
  CHECK(answer["status"] == "incomplete");
  CHECK(answer["incomplete_details"]["reason"] == "max_output_tokens");
}

TEST_CASE("embeddings are unit vectors, closer for texts that share words") {
  const Json body = Json::parse(
      R"({"input":["the red car","the red truck","quantum field theory"],"dimensions":128})");
  const Reply reply = embeddings_reply(read_prompt(SimApi::embeddings, body), body, context);
  const Json answer = first_json(reply);
  std::vector<std::vector<double>> vectors;
  for (const Json& item : answer["data"]) vectors.push_back(item["embedding"]);
  REQUIRE(vectors.size() == 3);
  const auto dot = [&vectors](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < vectors[a].size(); ++i) sum += vectors[a][i] * vectors[b][i];
    return sum;
  };
  CHECK(vectors[0].size() == 128);
  CHECK(dot(0, 0) == Approx(1.0));
  CHECK(dot(0, 1) > dot(0, 2));
  CHECK(answer["usage"]["prompt_tokens"] == 10);
}

TEST_CASE("embeddings come as base64 when asked") {
  const Json body = Json::parse(R"({"input":"hi","dimensions":2,"encoding_format":"base64"})");
  const Json answer =
      first_json(embeddings_reply(read_prompt(SimApi::embeddings, body), body, context));
  CHECK(answer["data"][0]["embedding"].get<std::string>().size() == 12);
}

TEST_CASE("rerank puts the closest document first") {
  const Json body = Json::parse(
      R"({"query":"red car","documents":["green tea","a red car here","car"],"top_n":2})");
  const Json answer = first_json(rerank_reply(read_prompt(SimApi::rerank, body), body, context));
  REQUIRE(answer["results"].size() == 2);
  CHECK(answer["results"][0]["index"] != 0);
}

TEST_CASE("waits follow the timing and are the same for the same seed") {
  Timing timing;
  timing.ttft_spread = 0;
  timing.inter_token_spread = 0;
  Pace plain(timing, 1);
  CHECK(plain.first(2000) == std::chrono::milliseconds(90));
  CHECK(plain.next(3) == std::chrono::milliseconds(30));
  timing.inter_token_spread = 0.3;
  Pace a(timing, 5);
  Pace b(timing, 5);
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    const Duration wait = a.next(1);
    CHECK(wait == b.next(1));
    sum += static_cast<double>(wait.count()) / 1e6;
  }
  CHECK(sum / 2000 == Approx(10.46).margin(0.5));
}

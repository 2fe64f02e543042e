// What the facts say about the prompt: tokens, turns, texts, state of other backends.
#include <catch2/catch.hpp>
#include <ctime>

#include "protocol/prompt_walk.hpp"
#include "tests/protocol/facts_of.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {
namespace {

RequestFacts chat(std::string_view messages, std::string_view more = "") {
  return facts_of(R"({"model":"m","messages":)" + std::string(messages) + std::string(more) + "}");
}

double tokens(std::string_view text) {
  return estimate_tokens(text, TokenizerFamily::o200k);
}

TEST_CASE("text counts alike as a string, as parts and with escapes") {
  const std::string text = "请用中文回答这个问题。 How many tokens is that?";
  const double expected = tokens(text) + PromptWalk::message_tokens;
  const double as_string = chat(R"([{"role":"user","content":")" + text + "\"}]").input_tokens[0];
  const double as_part =
      chat(R"([{"content":[{"type":"text","text":")" + text + R"("}],"role":"user"}])")
          .input_tokens[0];
  const double escaped =
      chat(R"([{"role":"user","content":"\u8bf7\u7528\u4e2d\u6587\u56de\u7b54\u8fd9\u4e2a\u95ee)"
           R"(\u9898\u3002 How many tokens is that?"}])")
          .input_tokens[0];
  CHECK(as_string == Approx(expected));
  CHECK(as_part == Approx(expected));
  CHECK(escaped == Approx(expected));
}

TEST_CASE("only the families asked for are estimated") {
  FactsOptions options;
  options.families = 1U << static_cast<unsigned>(TokenizerFamily::qwen);
  const RequestFacts facts = facts_of(
      R"({"model":"m","messages":[{"role":"user","content":"hi"}]})", ApiKind::chat, options);
  CHECK(facts.input_tokens[0] == 0);
  CHECK(facts.input_tokens[static_cast<std::size_t>(TokenizerFamily::qwen)] > 0);
}

TEST_CASE("system messages, tools, schemas and images are counted") {
  const RequestFacts bare = chat(R"([{"role":"user","content":"a"}])");
  const RequestFacts system =
      chat(R"([{"role":"system","content":"Be brief."},{"role":"user","content":"a"}])");
  CHECK(system.system_tokens[0] == Approx(tokens("Be brief.") + PromptWalk::message_tokens));
  CHECK(system.input_tokens[0] == Approx(bare.input_tokens[0] + system.system_tokens[0]));
  CHECK(system.system_text == "Be brief.");
  const std::string tools = R"([{"type":"function","function":{"name":"f","parameters":{}}}])";
  CHECK(chat(R"([{"role":"user","content":"a"}])", ",\"tools\":" + tools).input_tokens[0] ==
        Approx(bare.input_tokens[0] + tokens(tools)));
  const RequestFacts image = chat(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:)" +
      std::string(50'000, 'A') + R"("}}]}])");
  CHECK(image.images);
  CHECK(image.input_tokens[0] == Approx(bare.input_tokens[0] + PromptWalk::image_tokens));
  CHECK(chat("[]", R"(,"response_format":{"type":"json_schema","json_schema":{"a":"bcd"}})")
            .input_tokens[0] > 0);
}

TEST_CASE("turns are user messages and the last one's text is kept") {
  const RequestFacts facts = chat(
      R"([{"role":"user","content":"one"},{"role":"assistant","content":"two"},)"
      R"({"content":[{"type":"text","text":"thr\u00e9e"},{"type":"text","text":"four"}],"role":"user"},)"
      R"({"role":"assistant","content":"five"}])");
  CHECK(facts.turns == 2);
  CHECK(facts.last_user_text == "thrée\nfour");
}

TEST_CASE("kept texts are a head and a tail, cut between characters") {
  for (const std::string unit : {"你", "a", "\\n", "\\u4f60", "\\ud83d\\ude42", "\\\\"}) {
    std::string text = "HEAD";
    for (int i = 0; i < 40'000; ++i) text += unit;
    text += "TAIL";
    const RequestFacts facts = chat(R"([{"role":"user","content":")" + text + "\"}]");
    INFO(unit);
    CHECK(facts.last_user_text.size() <= RequestFacts::text_bytes_max);
    CHECK(facts.last_user_text.starts_with("HEAD"));
    if (unit != "\\\\") CHECK(facts.last_user_text.ends_with("TAIL"));
    CHECK(facts.last_user_text.find("\xEF\xBF\xBD") == std::string::npos);
  }
}

TEST_CASE("completions, embeddings and responses have their own shapes of input") {
  const auto completion = [](std::string_view prompt) {
    return facts_of(R"({"model":"m","prompt":)" + std::string(prompt) + "}", ApiKind::completions)
        .input_tokens[0];
  };
  const double overhead = PromptWalk::message_tokens;
  CHECK(completion("\"hello\"") == Approx(tokens("hello") + overhead));
  CHECK(completion(R"(["hello","hello"])") == Approx(2 * tokens("hello") + overhead));
  CHECK(completion("[1,2,3]") == Approx(3 + overhead));
  CHECK(completion("[[1,2],[3]]") == Approx(3 + overhead));
  const RequestFacts responses = facts_of(
      R"({"model":"m","instructions":"Be brief.","input":[{"type":"message","role":"user",)"
      R"("content":[{"type":"input_text","text":"hello"}]}],"text":{"format":{"type":"json_object"}}})",
      ApiKind::responses);
  CHECK(responses.input_tokens[0] == Approx(tokens("Be brief.") + tokens("hello") + 2 * overhead));
  CHECK(responses.last_user_text == "hello");
  CHECK(responses.turns == 1);
  CHECK(responses.response_format == ResponseFormat::json_object);
  const RequestFacts text = facts_of(R"({"model":"m","input":"hello"})", ApiKind::responses);
  CHECK(text.last_user_text == "hello");
  const RequestFacts messages =
      facts_of(R"({"model":"m","system":[{"type":"text","text":"Be brief."}],"max_tokens":5,)"
               R"("metadata":{"user_id":"u"},"messages":[{"role":"user","content":"hello"}]})",
               ApiKind::messages);
  CHECK(messages.system_text == "Be brief.");
  CHECK(messages.user == "u");
}

TEST_CASE("state that belongs to one backend is noticed") {
  CHECK_FALSE(chat(R"([{"role":"user","content":"a"}])").has_foreign_state);
  CHECK(chat(R"([{"role":"assistant","tool_calls":[{"id":"x"}]}])").has_foreign_state);
  CHECK(chat(R"([{"role":"tool","tool_call_id":"x","content":"a"}])").has_foreign_state);
  CHECK(chat("[]", R"(,"previous_response_id":"r1")").has_foreign_state);
  CHECK_FALSE(chat("[]", R"(,"previous_response_id":null)").has_foreign_state);
  CHECK(facts_of(R"({"model":"m","input":[{"type":"reasoning","encrypted_content":"x"}]})",
                 ApiKind::responses)
            .has_foreign_state);
  CHECK(chat(R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}])")
            .has_foreign_state);
}

TEST_CASE("a conversation keeps its hash as it grows and differs from others") {
  const std::string start = R"({"role":"system","content":"s"},{"role":"user","content":"a"})";
  const auto one = chat("[" + start + "]").conversation_hash;
  const auto grown =
      chat("[" + start + R"(,{"role":"assistant","content":"b"},{"role":"user","content":"c"}])")
          .conversation_hash;
  CHECK(one != 0);
  CHECK(one == grown);
  CHECK(
      one !=
      chat(R"([{"role":"system","content":"s"},{"role":"user","content":"b"}])").conversation_hash);
  CHECK(one != chat(R"([{"role":"user","content":"a"}])").conversation_hash);
  // Replicas share it, so it may never change.
  CHECK(one == 0x624145ef1031dc09U);
}

TEST_CASE("a body of 8 MB is read in bounded time and counted near enough") {
  struct Row {
    std::string name;
    std::string messages;
  };
  std::string words;
  while (words.size() < 8'000'000) words += "The notice period is ninety days, in writing. ";
  std::string parts = R"([{"role":"user","content":[{"type":"text","text":"a"})";
  while (parts.size() < 8'000'000) parts += R"(,{"type":"text","text":"The notice\n period"})";
  const Row rows[] = {
      {"one text", R"([{"role":"user","content":")" + words + "\"}]"},
      {"many parts", parts + "]}]"},
      {"escapes", R"([{"role":"user","content":")" + std::string(8'000'000, '\\') + "\"}]"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const std::clock_t begin = std::clock();  // processor time: other tests may run beside us
    const RequestFacts facts = chat(row.messages);
    CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);
    if (row.name == "one text") {
      CHECK(facts.input_tokens[0] ==
            Approx(tokens(words.substr(0, 46 * 1000)) * static_cast<double>(words.size()) / 46'000)
                .epsilon(0.1));
    }
  }
}

}  // namespace
}  // namespace flashgate

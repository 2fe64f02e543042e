#include "simulator/simulator.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "simulator/schema_value.hpp"
#include "tests/simulator/running_simulator.hpp"

using namespace flashgate;
using namespace flashgate::test;
using namespace std::chrono_literals;

namespace {

std::string get(std::uint16_t port, std::string_view path) {
  RawClient client(port);
  client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: sim\r\n\r\n");
  return client.read_answer();
}

}  // namespace

TEST_CASE("a kept connection answers one request after another, pipelined ones too") {
  Running running(quick());
  RawClient client(running.port());
  for (int i = 0; i < 3; ++i) {
    client.post(chat, ask);
    CHECK(Json::parse(client.read_answer())["object"] == "chat.completion");
  }
  client.post(chat, ask);
  client.post(chat, ask);
  CHECK(Json::parse(client.read_answer())["object"] == "chat.completion");
  CHECK(Json::parse(client.read_answer())["object"] == "chat.completion");
  CHECK(eventually([&] { return running.simulator.stats().completed == 5; }));
  CHECK(running.simulator.stats().connections == 1);
  CHECK(running.simulator.stats().by_status.at(200) == 5);
  CHECK(running.simulator.stats().in_flight == 0);
}

TEST_CASE("a chunked body sent byte by byte with Expect is read like any other") {
  Running running(quick());
  RawClient client(running.port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nExpect: 100-continue\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  REQUIRE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  for (const char c : std::string("11\r\n{\"messages\": [] }\r\n0\r\n\r\n")) {
    client.send(std::string_view(&c, 1));
  }
  REQUIRE(client.read_until("chat.completion"));
  CHECK(eventually([&] { return running.simulator.stats().completed == 1; }));
}

TEST_CASE("every endpoint answers 200 in its own words") {
  Running running(quick());
  struct Row {
    const char* path;
    const char* body;
    const char* says;
  };
  const Row table[] = {
      {"/v1/chat/completions", R"({"messages":[]})", "\"chat.completion\""},
      {"/chat/completions?api-version=1", R"({"messages":[]})", "\"chat.completion\""},
      {"/v1/completions", R"({"prompt":"hi"})", "\"text_completion\""},
      {"/v1/embeddings", R"({"input":"hi"})", "\"embedding\""},
      {"/v1/responses", R"({"input":"hi"})", "\"response\""},
      {"/v1/messages", R"({"messages":[],"max_tokens":9})", "\"end_turn\""},
      {"/v1/messages/count_tokens", R"({"messages":[]})", "{\"input_tokens\":0}"},
      {"/v1/rerank", R"({"query":"a","documents":["b"]})", "\"relevance_score\""},
      {"/v1/moderations", R"({"input":"a"})", "\"flagged\":false"},
      {"/v1/audio/transcriptions", "--x\r\n\r\n--x--", "\"text\":"},
  };
  RawClient client(running.port());
  for (const Row& row : table) {
    INFO(row.path);
    client.post(row.path, row.body);
    CHECK_THAT(client.read_answer(), Catch::Contains(row.says));
    CHECK(client.last_head().starts_with("HTTP/1.1 200 OK\r\n"));
  }
  CHECK_THAT(get(running.port(), "/v1/models"), Catch::Contains(R"("id":"sim")"));
  CHECK_THAT(get(running.port(), "/health"), Catch::Contains("ok"));
  CHECK_THAT(get(running.port(), "/metrics"),
             Catch::Contains("vllm:request_success_total{model_name=\"sim\"} 10"));
}

TEST_CASE("bad requests get errors, not silence") {
  SimulatorOptions options = quick();
  options.api_key = "secret";
  options.strict_model = true;
  options.context_length = 100;
  Running running(options);
  const std::string key = "Authorization: Bearer secret\r\n";
  struct Row {
    const char* path;
    std::string body;
    std::string fields;
    const char* status;
    const char* code;
  };
  const Row table[] = {
      {"/v1/chat/completions", std::string(ask), "", "401", "invalid_api_key"},
      {"/v1/chat/completions", std::string(ask), "Authorization: Bearer wrong\r\n", "401",
       "invalid_api_key"},
      {"/v1/chat/completions", std::string(ask), "x-api-key: secret\r\n", "200", ""},
      {"/v1/chat/completions", std::string(ask), key, "200", ""},
      {"/v1/chat/completions", "{", key, "400", "invalid_json"},
      {"/v1/chat/completions", R"({"model":"other"})", key, "404", "model_not_found"},
      {"/v1/chat/completions", R"({"model":"sim","max_tokens":200})", key, "400",
       "context_length_exceeded"},
      {"/v1/chat/completions", R"({"model":"sim","sim_fault":"nonsense"})", key, "400",
       "bad_fault"},
      {"/v1/nothing", std::string(ask), key, "404", "unknown_path"},
  };
  RawClient client(running.port());
  for (const Row& row : table) {
    INFO(row.path << ' ' << row.body << ' ' << row.fields);
    client.post(row.path, row.body, row.fields);
    CHECK_THAT(client.read_answer(), Catch::Contains(row.code));
    CHECK(client.last_head().substr(9, 3) == row.status);
  }
  client.send("DELETE /v1/chat/completions HTTP/1.1\r\nHost: sim\r\n" + key + "\r\n");
  client.read_answer();
  CHECK_THAT(client.last_head(), Catch::Contains("405") && Catch::Contains("allow: POST"));
  RawClient garbage(running.port());
  garbage.send("\x16\x03\x01 nonsense\r\n\r\n");
  CHECK(garbage.read_all() == Ending::fin);
  CHECK(garbage.bytes().starts_with("HTTP/1.1 400"));
}

TEST_CASE("the first token and the tokens after it come when the timing says") {
  SimulatorOptions options = quick();
  options.timing.ttft = 80ms;
  options.timing.inter_token = 20ms;
  options.timing.ttft_spread = 0;
  options.timing.inter_token_spread = 0;
  options.answer_tokens = 6;
  Running running(options);
  RawClient client(running.port());
  const auto start = std::chrono::steady_clock::now();
  client.post(chat, ask_stream);
  REQUIRE(client.read_until("data: "));
  CHECK(seconds_since(start) >= 0.079);
  CHECK(seconds_since(start) < 2);
  REQUIRE(client.read_until("0\r\n\r\n"));
  CHECK(seconds_since(start) >= 0.179);
  CHECK(seconds_since(start) < 4);
  CHECK(client.reads().size() >= 4);
}

TEST_CASE("a whole answer takes as long as its stream would") {
  SimulatorOptions options = quick();
  options.timing.ttft = 50ms;
  options.timing.inter_token = 10ms;
  options.timing.ttft_spread = 0;
  options.timing.inter_token_spread = 0;
  options.answer_tokens = 11;
  Running running(options);
  RawClient client(running.port());
  const auto start = std::chrono::steady_clock::now();
  client.post(chat, ask);
  CHECK_FALSE(client.read_answer().empty());
  CHECK(seconds_since(start) >= 0.149);
}

TEST_CASE("waits grow with the requests beside") {
  SimulatorOptions options = quick();
  options.timing.ttft = 100ms;
  options.timing.ttft_spread = 0;
  options.timing.load_growth = 1;
  Running running(options);
  RawClient one(running.port());
  RawClient two(running.port());
  const auto start = std::chrono::steady_clock::now();
  one.post(chat, ask);
  REQUIRE(eventually([&] { return running.simulator.stats().in_flight == 1; }));
  two.post(chat, ask);
  CHECK_FALSE(two.read_answer().empty());
  CHECK(seconds_since(start) >= 0.199);
}

TEST_CASE("over max_concurrency requests wait in line in order") {
  SimulatorOptions options = quick();
  options.timing.ttft = 60ms;
  options.timing.ttft_spread = 0;
  options.timing.max_concurrency = 1;
  Running running(options);
  RawClient first(running.port());
  RawClient second(running.port());
  RawClient third(running.port());
  const auto start = std::chrono::steady_clock::now();
  first.post(chat, ask);
  REQUIRE(eventually([&] { return running.simulator.stats().in_flight == 1; }));
  second.post(chat, ask);
  REQUIRE(eventually([&] { return running.simulator.stats().waiting == 1; }));
  third.post(chat, ask);
  REQUIRE(eventually([&] { return running.simulator.stats().waiting == 2; }));
  CHECK_THAT(get(running.port(), "/metrics"),
             Catch::Contains("vllm:num_requests_waiting{model_name=\"sim\"} 2"));
  second.close();
  CHECK(eventually([&] { return running.simulator.stats().waiting == 1; }));
  CHECK_FALSE(third.read_answer().empty());
  CHECK(seconds_since(start) >= 0.119);
  CHECK(eventually([&] { return running.simulator.stats().in_flight == 0; }));
  CHECK(running.simulator.stats().completed == 2);
  CHECK(running.simulator.stats().cancelled == 1);
}

TEST_CASE("until it is warm a simulator answers 503, health too") {
  SimulatorOptions options = quick();
  options.timing.startup = 1h;
  Running running(options);
  RawClient client(running.port());
  client.post(chat, ask);
  CHECK_THAT(client.read_answer(), Catch::Contains("Loading model"));
  CHECK(client.last_head().starts_with("HTTP/1.1 503"));
  CHECK_THAT(get(running.port(), "/health"), Catch::Contains("Loading model"));
  Timing timing = options.timing;
  timing.startup = Duration{};
  running.simulator.set_timing(timing);
  client.post(chat, ask);
  CHECK_THAT(client.read_answer(), Catch::Contains("chat.completion"));
}

TEST_CASE("a client that leaves is noticed before the answer ends, and counted") {
  SimulatorOptions options = quick();
  options.timing.ttft = 1h;
  Running running(options);
  RawClient client(running.port());
  client.post(chat, ask_stream);
  REQUIRE(eventually([&] { return running.simulator.stats().in_flight == 1; }));
  client.close();
  CHECK(eventually([&] { return running.simulator.stats().cancelled == 1; }));
  CHECK(running.simulator.stats().in_flight == 0);
  CHECK(running.simulator.stats().completed == 0);
}

TEST_CASE("a client that leaves in the middle of a stream is noticed too") {
  SimulatorOptions options = quick();
  options.timing.inter_token = 5ms;
  options.answer_tokens = 100000;
  Running running(options);
  RawClient client(running.port());
  client.post(chat, ask_stream);
  REQUIRE(client.read_until("content"));
  client.close();
  CHECK(eventually([&] { return running.simulator.stats().cancelled == 1; }));
}

TEST_CASE("the last requests are kept as they came") {
  SimulatorOptions options = quick();
  options.record = 2;
  Running running(options);
  RawClient client(running.port());
  for (const char* body : {R"({"a":1})", R"({"a":2})", R"({"a":3})"}) {
    client.post(chat, body, "X-Mine: yes\r\n");
    client.read_answer();
  }
  const auto recorded = running.simulator.recorded();
  REQUIRE(recorded.size() == 2);
  CHECK(recorded[1].body == R"({"a":3})");
  CHECK_THAT(recorded[1].head, Catch::Contains("X-Mine: yes\r\n"));
}

TEST_CASE("a body over the limit is refused") {
  SimulatorOptions options = quick();
  options.body_bytes_max = 1000;
  Running running(options);
  RawClient client(running.port());
  client.post(chat, std::string(5000, ' '));
  CHECK(client.read_all() == Ending::fin);
  CHECK(client.bytes().starts_with("HTTP/1.1 413"));
}

TEST_CASE("several simulators live in one process and stop in the middle of work") {
  SimulatorOptions options = quick();
  options.timing.ttft = 1h;
  auto slow = std::make_unique<Running>(options);
  Running other(quick());
  RawClient client(slow->port());
  client.post(chat, ask_stream);
  REQUIRE(eventually([&] { return slow->simulator.stats().in_flight == 1; }));
  slow->simulator.stop();
  slow->simulator.stop();
  CHECK(client.read_all() != Ending::timeout);
  slow.reset();
  RawClient still(other.port());
  still.post(chat, ask);
  CHECK_THAT(still.read_answer(), Catch::Contains("chat.completion"));
}

TEST_CASE("a port in use and a bad host are refused with a reason") {
  Running running(quick());
  SimulatorOptions options = quick();
  options.port = running.port();
  Simulator second(options);
  const auto taken = second.start();
  REQUIRE(taken.has_error());
  CHECK(taken.error().code == "listen_failed");
  options.host = "not an address";
  Simulator third(options);
  CHECK(third.start().has_error());
}

TEST_CASE("two hundred clients at once leave nothing behind") {
  SimulatorOptions options = quick();
  options.timing.inter_token = 1ms;
  options.faults = *parse_fault_rules("reset,after_events=2,every=5;cut,every=7");
  Running running(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&running] {
      for (int i = 0; i < 25; ++i) {
        RawClient client(running.port());
        client.post(chat, ask_stream, "Connection: close\r\n");
        client.read_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(eventually([&] { return running.simulator.stats().in_flight == 0; }));
  const SimulatorStats stats = running.simulator.stats();
  CHECK(stats.requests == 200);
  CHECK(stats.completed + stats.broken == 200);
  CHECK(stats.by_fault.at("reset") == 40);
}

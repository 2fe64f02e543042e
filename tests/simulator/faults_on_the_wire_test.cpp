#include "simulator/simulator.hpp"

#include <catch2/catch.hpp>

#include "simulator/schema_value.hpp"
#include "tests/simulator/running_simulator.hpp"

using namespace flashgate;
using namespace flashgate::test;
using namespace std::chrono_literals;

namespace {

std::string body_with(std::string_view fault, bool stream) {
  Json body = Json::parse(stream ? ask_stream : ask);
  body["sim_fault"] = fault;
  return body.dump();
}

}  // namespace

TEST_CASE("the connection ends the way the fault says") {
  Running running(quick());
  struct Row {
    const char* fault;
    Ending ending;
    const char* last;
  };
  const Row table[] = {
      {"reset", Ending::reset, ""},
      {"cut", Ending::fin, ""},
      {"cut,after_events=1", Ending::fin, "\n\n\r\n"},
      {"cut,after_bytes=12", Ending::fin, "HTTP/1.1 200"},
      {"role_only", Ending::reset, ""},
      {"no_last_chunk", Ending::fin, "data: [DONE]\n\n\r\n"},
      {"garbage=20", Ending::fin, ""},
      {"until_close", Ending::fin, "data: [DONE]\n\n"},
      {"raw=HTTP/1.1 2x0 OK\\r\\n\\r\\n", Ending::fin, "HTTP/1.1 2x0 OK\r\n\r\n"},
      {"close_idle", Ending::fin, "0\r\n\r\n"},
      {"huge_line=2m,style=endless", Ending::fin, "x\r\n"},
  };
  for (const Row& row : table) {
    INFO(row.fault);
    RawClient client(running.port());
    client.post(chat, body_with(row.fault, true));
    CHECK(client.read_all() == row.ending);
    CHECK_THAT(client.bytes(), Catch::EndsWith(row.last));
  }
  CHECK(running.simulator.stats().by_status.at(0) == 4);
  CHECK(eventually([&] { return running.simulator.stats().in_flight == 0; }));
}

TEST_CASE("a stall is silence on an open connection, and leaving ends it") {
  Running running(quick());
  RawClient client(running.port());
  client.set_timeout(150ms);
  client.post(chat, ask_stream, "x-sim-fault: stall:after_events=2\r\n");
  CHECK(client.read_all() == Ending::timeout);
  CHECK(client.bytes().ends_with("\n\n\r\n"));
  client.close();
  CHECK(eventually([&] { return running.simulator.stats().cancelled == 1; }));
}

TEST_CASE("a stall with an end goes on afterwards") {
  Running running(quick());
  RawClient client(running.port());
  const auto start = std::chrono::steady_clock::now();
  client.post(chat, ask, "x-sim-fault: stall,for=100ms\r\n");
  CHECK_THAT(client.read_answer(), Catch::Contains("chat.completion"));
  CHECK(seconds_since(start) >= 0.099);
}

TEST_CASE("one byte at a time still makes a whole answer") {
  Running running(quick());
  RawClient client(running.port());
  client.post(chat, ask, "x-sim-fault: one_byte\r\n");
  CHECK(Json::parse(client.read_answer())["object"] == "chat.completion");
  client.post(chat, R"({"messages":[],"sim_tokens":1})", "x-sim-fault: drip:64,pause=1ms\r\n");
  CHECK(Json::parse(client.read_answer())["object"] == "chat.completion");
}

TEST_CASE("a refuse rule resets before a request is read") {
  SimulatorOptions options = quick();
  options.faults = *parse_fault_rules("refuse,requests=1");
  Running running(options);
  RawClient refused(running.port());
  CHECK(refused.read_all() == Ending::reset);
  RawClient served(running.port());
  served.post(chat, ask);
  CHECK_THAT(served.read_answer(), Catch::Contains("chat.completion"));
  CHECK(running.simulator.stats().by_fault.at("refuse") == 1);
}

TEST_CASE("rules hit the same requests for the same seed, and the texts are the same") {
  const auto run = [](std::uint64_t seed) {
    SimulatorOptions options = quick();
    options.seed = seed;
    options.faults = *parse_fault_rules("status=503,probability=30%;status=429,every=7");
    Running running(options);
    RawClient client(running.port());
    std::string out;
    for (int i = 0; i < 40; ++i) {
      client.post(chat, ask);
      const Json answer = Json::parse(client.read_answer());
      out += client.last_head().substr(9, 3);
      if (answer.contains("choices")) out += answer["choices"].dump();
    }
    return out;
  };
  const std::string first = run(7);
  CHECK(first == run(7));
  CHECK(first != run(8));
  CHECK_THAT(first, Catch::Contains("503") && Catch::Contains("429") && Catch::Contains("200"));
}

TEST_CASE("attempts count how often the same body has come") {
  Running running(quick());
  const std::string body = body_with("status=500,attempts=1-2", false);
  RawClient client(running.port());
  std::string statuses;
  for (int i = 0; i < 4; ++i) {
    client.post(chat, body);
    client.read_answer();
    statuses += client.last_head().substr(9, 3) + " ";
  }
  CHECK(statuses == "500 500 200 200 ");
}

TEST_CASE("faults can be changed while it runs, also over HTTP") {
  Running running(quick());
  RawClient client(running.port());
  running.simulator.set_faults(*parse_fault_rules("status=500"));
  client.post(chat, ask);
  client.read_answer();
  CHECK(client.last_head().starts_with("HTTP/1.1 500"));
  client.post("/sim/faults", "status=418");
  CHECK(client.read_answer() == "{\"rules\":1}");
  client.post(chat, ask);
  client.read_answer();
  CHECK(client.last_head().starts_with("HTTP/1.1 418"));
  client.post("/sim/faults", "nonsense");
  CHECK_THAT(client.read_answer(), Catch::Contains("unknown fault"));
  client.post("/sim/faults", "");
  client.read_answer();
  client.post(chat, ask);
  client.read_answer();
  CHECK(client.last_head().starts_with("HTTP/1.1 200"));
}

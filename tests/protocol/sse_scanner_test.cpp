#include "protocol/sse_scanner.hpp"

#include <catch2/catch.hpp>
#include <ctime>
#include <random>

#include "tests/protocol/sse_streams.hpp"

namespace flashgate {
namespace {

using Kinds = std::vector<SseKind>;

const std::string plain_stream = role_chunk + content("你好") + content("，世界🙂") +
                                 finish_chunk + usage_chunk + done_event;
const Kinds plain_kinds = {SseKind::preamble, SseKind::content, SseKind::content,
                           SseKind::finish,   SseKind::usage,   SseKind::done};

std::vector<std::string> split_at(const std::string& text, const std::vector<std::size_t>& cuts) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    out.push_back(text.substr(at, cut - at));
    at = cut;
  }
  out.push_back(text.substr(at));
  return out;
}

std::vector<std::string> single_bytes(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) out.emplace_back(1, c);
  return out;
}

TEST_CASE("events of a plain stream come whole, in order and with their kinds") {
  const Seen seen = scan_stream(plain_stream);
  CHECK(seen.kinds() == plain_kinds);
  CHECK(seen.bytes() == plain_stream);
  CHECK(seen.facts.finished);
  CHECK(seen.facts.done_seen);
  CHECK(seen.facts.finish_reason == "stop");
  CHECK(seen.facts.response_id == "c1");
  CHECK(seen.facts.usage.input == 11);
  CHECK(seen.facts.usage.output == 7);
  CHECK(seen.facts.usage.cached == 3);
  CHECK(seen.facts.usage.reasoning == 2);
  CHECK(seen.facts.content_events == 2);
  CHECK(seen.facts.events == 6);
  CHECK(seen.facts.bytes == plain_stream.size());
}

TEST_CASE("line ends of every kind give the same kinds and untouched bytes") {
  for (const std::string line_end : {"\r\n", "\r"}) {
    const std::string stream = replaced(plain_stream, "\n", line_end);
    const Seen seen = scan_stream(stream);
    CHECK(seen.kinds() == plain_kinds);
    CHECK(seen.bytes() == stream);
    CHECK(seen.facts.usage.output == 7);
  }
  const std::string mixed = "data: [DONE]\r\n\ndata: 1\n\r\ndata: 2\r\r";
  CHECK(scan_stream(mixed).kinds() == Kinds{SseKind::done, SseKind::other, SseKind::other});
}

TEST_CASE("a stream with lone CRs is not held up by the wait for an LF") {
  SseScanner scanner(SseOptions{});
  int events = 0;
  scanner.feed("data: 1\r\r", [&](const SseEvent&) { ++events; });
  CHECK(events == 1);
  CHECK_FALSE(scanner.mid_event());
}

TEST_CASE("the sequence of events does not depend on the segments") {
  const std::string extras = ": note\n\nevent: x\nid: 7\ndata: {\"a\":\ndata: 1}\n\n\n\n" +
                             chunk(R"({"content":"x"})", "null") + "retry: 5\n\ndata\n\n";
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    for (const bool strip : {false, true}) {
      for (const std::size_t cap : {std::size_t{1} << 20, std::size_t{120}}) {
        SseOptions options;
        options.strip_usage = strip;
        options.inspect_bytes_max = cap;
        const std::string stream = replaced(plain_stream + extras, "\n", line_end) + "data: {\"cu";
        const Seen whole = scan_stream(stream, options);
        CHECK(scan_segments(single_bytes(stream), options).events == whole.events);
        for (int run = 0; run < 60; ++run) {
          std::vector<std::size_t> cuts(std::size_t{1} + random() % 12);
          for (std::size_t& cut : cuts) cut = random() % stream.size();
          std::sort(cuts.begin(), cuts.end());
          const Seen split = scan_segments(split_at(stream, cuts), options);
          REQUIRE(split.events == whole.events);
          REQUIRE(split.facts.usage.output == whole.facts.usage.output);
          REQUIRE(split.facts.uninspected == whole.facts.uninspected);
          REQUIRE(split.facts.output_text_bytes == whole.facts.output_text_bytes);
        }
      }
    }
  }
}

TEST_CASE("random bytes of the framing alphabet give the same events however they are cut") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::string_view alphabet = "\r\n\r\n:d ata{}\"";
  for (int run = 0; run < 3000; ++run) {
    std::string stream;
    for (auto i = random() % 40; i > 0; --i) stream += alphabet[random() % alphabet.size()];
    const Seen whole = scan_stream(stream);
    REQUIRE(whole.bytes() == stream);
    REQUIRE(scan_segments(single_bytes(stream)).events == whole.events);
  }
}

TEST_CASE("one optional space is stripped and a field may lack its colon") {
  CHECK(scan_stream("data:[DONE]\n\n").kinds() == Kinds{SseKind::done});
  CHECK(scan_stream("data:  [DONE]\n\n").kinds() == Kinds{SseKind::done});
  CHECK(scan_stream("data\n\n").kinds() == Kinds{SseKind::other});
  CHECK(scan_stream(replaced(finish_chunk, "data: ", "data:")).facts.finished);
  CHECK(scan_stream(replaced(finish_chunk, "data: ", "data:  ")).facts.finished);
}

TEST_CASE("data over several lines is joined before it is read") {
  const std::string stream =
      "event: message\nid: 4\nunknown: x\ndata: {\"choices\":[{\"index\":0,\n"
      "data: \"delta\":{\"content\":\"a\"}}]}\n\n";
  const Seen seen = scan_stream(stream);
  CHECK(seen.kinds() == Kinds{SseKind::content});
  CHECK(seen.bytes() == stream);
  CHECK(seen.facts.ids);
  CHECK(seen.facts.output_text_bytes == 1);
}

TEST_CASE("a byte order mark is looked past at the start only") {
  CHECK(scan_stream("\xEF\xBB\xBF" + done_event).kinds() == Kinds{SseKind::done});
  CHECK(scan_stream(": x\n\n\xEF\xBB\xBF" + done_event).kinds() ==
        Kinds{SseKind::comment, SseKind::comment});
}

TEST_CASE("comments and events without data are not counted as events") {
  const Seen seen = scan_stream(": keep-alive\n\nretry: 10\n\nid: 9\n\n\n");
  CHECK(seen.kinds() == Kinds(4, SseKind::comment));
  CHECK(seen.facts.events == 0);
  CHECK(seen.facts.ids);
}

TEST_CASE("an event over the cap is passed on uninspected and the next one is read again") {
  SseOptions options;
  options.inspect_bytes_max = 4096;
  const std::string large = content(std::string(100'000, 'x'));
  const std::string stream = large + finish_chunk + done_event;
  for (const bool byte_wise : {false, true}) {
    const Seen seen =
        byte_wise ? scan_segments(single_bytes(stream), options) : scan_stream(stream, options);
    CHECK(seen.kinds() == Kinds{SseKind::unterminated, SseKind::finish, SseKind::done});
    CHECK(seen.bytes() == stream);
    CHECK(seen.facts.uninspected == 1);
    CHECK(seen.facts.events == 3);
  }
}

TEST_CASE("a line that never ends is passed on in linear time with nothing held") {
  SseScanner scanner(SseOptions{});
  const std::string segment(64 * 1024, 'x');
  std::size_t passed = 0;
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 1024; ++i) {
    scanner.feed(segment, [&](const SseEvent& event) {
      CHECK(event.kind == SseKind::unterminated);
      CHECK_FALSE(event.ends_event);
      passed += event.bytes.size();
    });
  }
  CHECK(passed == segment.size() * 1024);
  CHECK(scanner.mid_event());
  CHECK(scanner.facts().uninspected == 1);
  CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);
}

TEST_CASE("mid_event says whether bytes of an unfinished event are held") {
  SseScanner scanner(SseOptions{});
  const auto ignore = [](const SseEvent&) {};
  CHECK_FALSE(scanner.mid_event());
  scanner.feed("data: {\"choi", ignore);
  CHECK(scanner.mid_event());
  scanner.feed("ces\":[]}\n", ignore);
  CHECK(scanner.mid_event());
  bool inside = true;
  scanner.feed("\n", [&](const SseEvent&) { inside = scanner.mid_event(); });
  CHECK_FALSE(inside);
  CHECK_FALSE(scanner.mid_event());
}

TEST_CASE("the end of the stream gives a whole event its kind and half an event none") {
  const std::string unended = finish_chunk.substr(0, finish_chunk.size() - 1);
  for (const std::string& last : {std::string("data: [DONE]"), std::string("data: [DONE]\n")}) {
    const Seen seen = scan_stream(last);
    REQUIRE(seen.events.size() == 1);
    CHECK(seen.events[0].kind == SseKind::done);
    CHECK_FALSE(seen.events[0].ends_event);
    CHECK(seen.facts.done_seen);
  }
  CHECK(scan_stream(unended).facts.finished);
  for (const std::string half : {"data: {\"choi", "da", "data: [DON", ": comm"}) {
    const Seen seen = scan_stream(half);
    REQUIRE(seen.events.size() == 1);
    CHECK(seen.events[0].kind == SseKind::unterminated);
    CHECK_FALSE(seen.events[0].ends_event);
  }
  const Seen whole = scan_stream("data: [DONE]\n\r");
  REQUIRE(whole.events.size() == 1);
  CHECK(whole.events[0].ends_event);
}

TEST_CASE("usage the client did not ask for is taken out and nothing else") {
  SseOptions options;
  options.strip_usage = true;
  const std::string with_null = replaced(content("a"), "}]}", R"(}],"usage":null})");
  const std::string null_first =
      "id: 3\ndata: { \"usage\" : null , "
      "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n";
  const std::string null_middle =
      R"(data: {"id":"c1" , "usage":null,"choices":[],"x":{"usage":null}})"
      "\r\n\r\n";
  const Seen seen =
      scan_stream(with_null + null_first + null_middle + usage_chunk + done_event, options);
  CHECK(seen.bytes() ==
        content("a") +
            "id: 3\ndata: {  \"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n" +
            R"(data: {"id":"c1" ,"choices":[],"x":{"usage":null}})" + "\r\n\r\n" + done_event);
  CHECK(seen.kinds() ==
        Kinds{SseKind::content, SseKind::content, SseKind::preamble, SseKind::done});
  CHECK(seen.facts.usage.input == 11);
}

TEST_CASE("stripping leaves a lone usage member's object valid") {
  SseOptions options;
  options.strip_usage = true;
  CHECK(scan_stream("data: {\"usage\":null}\n\n", options).bytes() == "data: {}\n\n");
}

TEST_CASE("without stripping usage is relayed as it came") {
  const std::string stream = replaced(content("a"), "}]}", R"(}],"usage":null})") + usage_chunk;
  CHECK(scan_stream(stream).bytes() == stream);
}

}  // namespace
}  // namespace flashgate

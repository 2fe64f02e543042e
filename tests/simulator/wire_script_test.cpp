#include "simulator/wire_script.hpp"

#include <catch2/catch.hpp>

#include "simulator/gzip_writer.hpp"

using namespace flashgate;
using namespace std::chrono_literals;

namespace {

const std::string plain_head =
    "HTTP/1.1 200 OK\r\nserver: flashgate-sim\r\ncontent-type: application/json\r\n"
    "content-length: 10\r\n\r\n";
const std::string stream_head =
    "HTTP/1.1 200 OK\r\nserver: flashgate-sim\r\ncontent-type: text/event-stream\r\n"
    "transfer-encoding: chunked\r\n\r\n";

Reply unary() {
  Reply reply;
  reply.pieces.push_back({"{\"a\":\"bc\"}", 50ms, PieceKind::body});
  return reply;
}

Reply stream() {
  Reply reply;
  reply.stream = true;
  reply.content_type = "text/event-stream";
  reply.pieces = {{"data: R\n\n", 50ms, PieceKind::preamble},
                  {"data: A\n\n", 10ms, PieceKind::content},
                  {"data: B\n\n", 10ms, PieceKind::content},
                  {"data: F\n\n", 0ms, PieceKind::finish},
                  {"data: [DONE]\n\n", 0ms, PieceKind::done}};
  return reply;
}

std::string chunk(const std::string& text) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx", text.size());
  return std::string(size) + "\r\n" + text + "\r\n";
}

const std::string r = chunk("data: R\n\n");
const std::string a = chunk("data: A\n\n");
const std::string b = chunk("data: B\n\n");
const std::string f = chunk("data: F\n\n");
const std::string done = chunk("data: [DONE]\n\n");
const std::string end = "0\r\n\r\n";

/// Bytes as sent, with «fin», «reset», «stall» where these happen.
std::string spelled(const Script& script) {
  std::string out;
  for (const Step& step : script.steps) {
    if (step.what == Step::Do::send) {
      for (std::uint64_t i = 0; i < step.repeat; ++i) out += step.bytes;
    }
    if (step.what == Step::Do::finish) out += "«fin»";
    if (step.what == Step::Do::reset) out += "«reset»";
    if (step.what == Step::Do::stall) out += "«stall»";
  }
  return out + (script.close ? "«close»" : "");
}

Script script_of(Reply reply, std::string_view faults, const ScriptFacts& facts = {}) {
  const auto rules = parse_fault_rules(faults);
  INFO(faults);
  REQUIRE(rules.has_value());
  apply_to_reply(reply, *rules);
  return write_script(reply, *rules, facts);
}

std::string wire(const Reply& reply, std::string_view faults) {
  return spelled(script_of(reply, faults));
}

}  // namespace

TEST_CASE("without faults an answer is framed plainly") {
  CHECK(wire(unary(), "") == plain_head + "{\"a\":\"bc\"}");
  CHECK(wire(stream(), "") == stream_head + r + a + b + f + done + end);
}

TEST_CASE("every fault of position and framing is exact to the byte") {
  struct Row {
    const char* fault;
    std::string bytes;
  };
  const Row table[] = {
      {"refuse", "«reset»"},
      {"reset", "«reset»"},
      {"reset,after_bytes=12", "HTTP/1.1 200«reset»"},
      {"cut,after_bytes=9999", stream_head + r + a + b + f + done + end + "«fin»"},
      {"cut,after_body_bytes=0", stream_head + "«fin»"},
      {"cut,after_body_bytes=4", stream_head + r.substr(0, 4) + "«fin»"},
      {"cut,after_events=2", stream_head + r + a + "«fin»"},
      {"reset,after_events=2,plus_bytes=5", stream_head + r + a + b.substr(0, 5) + "«reset»"},
      {"cut,after_events=5", stream_head + r + a + b + f + done + "«fin»"},
      {"stall", "«stall»" + stream_head + r + a + b + f + done + end},
      {"stall,at=after_headers", stream_head + "«stall»" + r + a + b + f + done + end},
      {"stall,after_events=1", stream_head + r + "«stall»" + a + b + f + done + end},
      {"no_last_chunk", stream_head + r + a + b + f + done + "«close»"},
      {"bad_chunk", stream_head + "zz\r\ndata: R\n\n\r\n" + a + b + f + done + end + "«close»"},
      {"bad_chunk=-1,after_events=1",
       stream_head + r + "-1\r\ndata: A\n\n\r\n" + b + f + done + end + "«close»"},
      {"interim", "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n" +
                      stream_head + r + a + b + f + done + end},
      {"interim=100,count=2;cut,after_events=0",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + stream_head + "«fin»"},
      {"no_done", stream_head + r + a + b + f + end},
      {"no_finish", stream_head + r + a + b + done + end},
      {"no_finish;no_done", stream_head + r + a + b + end},
      {"role_only", stream_head + r + "«reset»"},
      {"role_only,then=cut", stream_head + r + "«fin»"},
      {"close_idle", stream_head + r + a + b + f + done + end + "«fin»"},
      {"extra=zzz", stream_head + r + a + b + f + done + end + "zzz"},
      {"raw=abc\\r\\n", "abc\r\n«close»"},
      {"raw=abc,keep=true", "abc"},
  };
  for (const Row& row : table) {
    INFO(row.fault);
    CHECK(wire(stream(), row.fault) == row.bytes);
  }
}

TEST_CASE("a wrong length is announced, the body stays whole") {
  CHECK_THAT(wire(unary(), "wrong_length=+10"), Catch::Contains("content-length: 20\r\n"));
  CHECK_THAT(wire(unary(), "wrong_length=-3"), Catch::Contains("content-length: 7\r\n"));
  CHECK(wire(unary(), "wrong_length=-3").ends_with("\r\n\r\n{\"a\":\"bc\"}«close»"));
}

TEST_CASE("framing faults change the head") {
  const std::string both = wire(unary(), "cl_te");
  CHECK_THAT(both, Catch::Contains("content-length: 10\r\ntransfer-encoding: chunked\r\n"));
  const std::string bare = wire(unary(), "until_close");
  CHECK(bare.find("content-length") == std::string::npos);
  CHECK(bare.ends_with("connection: close\r\n\r\n{\"a\":\"bc\"}«close»"));
  CHECK(wire(stream(), "http10").starts_with("HTTP/1.0 200 OK\r\n"));
  CHECK_THAT(wire(unary(), "tiny_chunks"),
             Catch::EndsWith("1\r\nc\r\n1\r\n\"\r\n1\r\n}\r\n" + end));
  CHECK_THAT(wire(unary(), "big_header=8,count=2"),
             Catch::Contains("x-big-0: aaaaaaaa\r\nx-big-1: aaaaaaaa\r\n"));
}

TEST_CASE("an HTTP/1.0 client gets no chunks") {
  ScriptFacts facts;
  facts.minor_version = 0;
  const std::string bytes = spelled(script_of(stream(), "", facts));
  CHECK(bytes.find("transfer-encoding") == std::string::npos);
  CHECK(bytes.ends_with("data: [DONE]\n\n«close»"));
}

TEST_CASE("an error answer has the shape asked for") {
  struct Row {
    const char* fault;
    const char* body;
  };
  const Row table[] = {
      {"status=503,message=m",
       R"({"error":{"message":"m","type":"server_error","param":null,"code":null}})"},
      {"status=429,code=c,message=m",
       R"({"error":{"message":"m","type":"rate_limit_error","param":null,"code":"c"}})"},
      {"status=500,shape=detail,message=m", R"({"detail":"m"})"},
      {"status=400,shape=object,message=m",
       R"({"object":"error","message":"m","type":"BadRequestError","code":400})"},
      {"status=500,shape=string,message=m", R"({"error":"m"})"},
      {"status=529,shape=anthropic,message=m",
       R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})"},
      {"status=502,shape=text,message=m", "m"},
      {"status=502,shape=empty", ""},
  };
  for (const Row& row : table) {
    INFO(row.fault);
    CHECK(wire(stream(), row.fault).ends_with("\r\n\r\n" + std::string(row.body)));
  }
  const std::string limited = wire(stream(), "status=429,retry_after=2,retry_after_ms=1500");
  CHECK_THAT(limited, Catch::Contains("retry-after: 2\r\nretry-after-ms: 1500\r\n"));
  const std::string moved = wire(unary(), "redirect=http://127.0.0.1:1/");
  CHECK(moved.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"));
  CHECK_THAT(moved, Catch::Contains("location: http://127.0.0.1:1/\r\n"));
}

TEST_CASE("an in-band error ends the stream where it is asked to") {
  const std::string error = R"(data: {"error":{"message":"m","type":"server_error","param":null,)"
                            R"("code":null}})"
                            "\n\n";
  CHECK(wire(stream(), "error_event,message=m") == stream_head + chunk(error) + end);
  CHECK(wire(stream(), "error_event=2,message=m,done=true") ==
        stream_head + r + a + chunk(error) + done + end);
  CHECK(wire(stream(), "error_event=1,message=m,named=true") ==
        stream_head + r + chunk("event: error\n" + error) + end);
  CHECK_THAT(wire(unary(), "error_event,status=429"), Catch::Contains(R"("code":429)"));
}

TEST_CASE("odd event streams keep their content") {
  const auto body = [](const char* fault) {
    std::string out;
    Reply reply = stream();
    apply_to_reply(reply, *parse_fault_rules(fault));
    for (const Piece& piece : reply.pieces) out += piece.bytes;
    return out;
  };
  CHECK(body("sse=crlf").starts_with("data: R\r\n\r\ndata: A\r\n\r\n"));
  CHECK(body("sse=cr").starts_with("data: R\r\rdata: A\r\r"));
  CHECK(body("sse=mixed").starts_with("data: R\r\n\rdata: A\n\r\n"));
  CHECK(
      body("sse=bom").starts_with("\xef\xbb\xbf"
                                  "data: R\n\n"));
  CHECK(body("sse=no_space").starts_with("data:R\n\ndata:A\n\n"));
  CHECK(body("sse=comments").starts_with(": keep-alive\n\ndata: R\n\n"));
  CHECK_THAT(body("sse=preamble"), Catch::Contains("prompt_filter_results"));
}

TEST_CASE("a split event joins to the same JSON") {
  Reply reply = stream();
  reply.pieces = {{"data: {\"a\":1,\"b\":2}\n\n", {}, PieceKind::content}};
  apply_to_reply(reply, *parse_fault_rules("sse=split"));
  CHECK(reply.pieces[0].bytes == "data: {\"a\":1,\ndata: \"b\":2}\n\n");
}

TEST_CASE("a huge line is as long as asked, whole or endless") {
  const std::string whole = wire(stream(), "huge_line=200k");
  CHECK_THAT(whole, Catch::Contains(std::string(200 * 1024, 'x')));
  CHECK(whole.ends_with(done + end));
  const Script script = script_of(stream(), "huge_line=256m,style=endless");
  std::uint64_t bytes = 0;
  std::uint64_t held = 0;
  for (const Step& step : script.steps) {
    bytes += step.bytes.size() * step.repeat;
    held += step.bytes.size();
  }
  CHECK(bytes > 256u * 1024 * 1024);
  CHECK(held < 100'000);
  CHECK(script.steps.back().what == Step::Do::finish);
}

TEST_CASE("a cut inside a repeated block keeps the count of bytes") {
  const Script script = script_of(stream(), "huge_line=1m,style=endless;cut,after_bytes=700000");
  std::uint64_t bytes = 0;
  for (const Step& step : script.steps) bytes += step.bytes.size() * step.repeat;
  CHECK(bytes == 700000);
}

TEST_CASE("garbage is seeded, never begins like a status line, and can stand in the middle") {
  const std::string one = wire(stream(), "garbage=100");
  CHECK(one.size() == 100 + std::string("«fin»").size());
  CHECK(one[0] != 'H');
  CHECK(one == wire(stream(), "garbage=100"));
  CHECK(wire(stream(), "garbage=10,after_events=1").starts_with(stream_head + r));
}

TEST_CASE("waits stay with their events when the head is sent along") {
  const Script merged = script_of(stream(), "");
  CHECK(merged.steps[0].wait == Duration(50ms));
  CHECK(merged.steps[1].wait == Duration{});
  CHECK(merged.steps[2].wait == Duration(10ms));
  ScriptFacts facts;
  facts.early_headers = true;
  const Script early = script_of(stream(), "", facts);
  CHECK(early.steps[0].wait == Duration{});
  CHECK(early.steps[1].wait == Duration(50ms));
  CHECK(script_of(stream(), "status=503").steps[0].wait == Duration{});
  CHECK(script_of(stream(), "drip=3,pause=5ms").send_bytes_max == 3);
}

TEST_CASE("compression covers every event and ends the stream") {
  Reply reply = stream();
  apply_to_reply(reply, *parse_fault_rules("gzip"));
  CHECK(reply.headers.at(0).second == "gzip");
  std::string packed;
  for (const Piece& piece : reply.pieces) packed += piece.bytes;
  z_stream zlib{};
  REQUIRE(inflateInit2(&zlib, 15 + 16) == Z_OK);
  std::string out(1000, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_in = static_cast<uInt>(packed.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&zlib, Z_FINISH) == Z_STREAM_END);
  out.resize(zlib.total_out);
  inflateEnd(&zlib);
  CHECK(out == "data: R\n\ndata: A\n\ndata: B\n\ndata: F\n\ndata: [DONE]\n\n");
}

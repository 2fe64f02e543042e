#include "protocol/body_edit.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/protocol/facts_of.hpp"

namespace flashgate {
namespace {

std::string edited(const std::string& body, const EditWishes& wishes, ApiKind api = ApiKind::chat) {
  const std::vector<BodyEdit> edits = plan_edits(facts_of(body, api), wishes);
  std::string out;
  for (const std::string_view piece : edited_pieces(body, edits)) out += piece;
  CHECK(edited_size(body.size(), edits) == out.size());
  return out;
}

EditWishes model_wish(std::string_view model) {
  EditWishes wishes;
  wishes.model = model;
  return wishes;
}

EditWishes cap_wish(std::int64_t cap) {
  EditWishes wishes;
  wishes.max_tokens_cap = cap;
  return wishes;
}

TEST_CASE("a body without wishes, or already as wished, stays as it is") {
  const std::string body = R"({"model":"m","max_tokens":5})";
  CHECK(plan_edits(facts_of(body), {}).empty());
  CHECK(plan_edits(facts_of(body), model_wish("m")).empty());
  CHECK(plan_edits(facts_of(body), cap_wish(5)).empty());
  CHECK(edited(body, {}) == body);
}

TEST_CASE("only the value of model changes, all other bytes stay") {
  const std::string before =
      R"( { "z":18446744073709551616,"a":1e400,"c":0.30000000000000004, "model" : )";
  const std::string after = R"( ,"e":"\u00e9é\ud83d","-0":-0,"x":{"model":"fast"} } )";
  CHECK(edited(before + R"("fast")" + after, model_wish("a-much-longer-name")) ==
        before + R"("a-much-longer-name")" + after);
  CHECK(edited(before + R"("f\u0061st")" + after, model_wish("x")) == before + R"("x")" + after);
  CHECK(edited(before + R"("fast")" + after, model_wish("a\"b\\c\n")) ==
        before + R"("a\"b\\c\n")" + after);
}

TEST_CASE("the cap lowers a larger limit and stands in for a missing one") {
  struct Row {
    std::string body;
    std::string expected;
    ApiKind api = ApiKind::chat;
  };
  const Row rows[] = {
      {R"({"model":"m","max_tokens":500})", R"({"model":"m","max_tokens":100})"},
      {R"({"model":"m","max_tokens":100})", R"({"model":"m","max_tokens":100})"},
      {R"({"model":"m","max_tokens":7})", R"({"model":"m","max_tokens":7})"},
      {R"({"model":"m","max_tokens":-1})", R"({"model":"m","max_tokens":100})"},
      {R"({"model":"m","max_tokens":1e400})", R"({"model":"m","max_tokens":100})"},
      {R"({"model":"m","max_tokens":null})", R"({"model":"m","max_tokens":100})"},
      {R"({"model":"m"})", R"({"max_tokens":100,"model":"m"})"},
      {R"({"model":"m","max_completion_tokens":500})",
       R"({"model":"m","max_completion_tokens":100})"},
      {R"({"model":"m","max_completion_tokens":null})",
       R"({"model":"m","max_completion_tokens":100})"},
      {R"({"model":"m","max_completion_tokens":5,"max_tokens":null})",
       R"({"model":"m","max_completion_tokens":5,"max_tokens":null})"},
      {R"({"max_tokens":900,"max_completion_tokens":500,"model":"m"})",
       R"({"max_tokens":100,"max_completion_tokens":100,"model":"m"})"},
      {R"({"model":"m"})", R"({"max_output_tokens":100,"model":"m"})", ApiKind::responses},
      {R"({"model":"m","max_output_tokens":500})", R"({"model":"m","max_output_tokens":100})",
       ApiKind::responses},
      {R"({"model":"m"})", R"({"max_tokens":100,"model":"m"})", ApiKind::messages},
      {R"({"model":"m"})", R"({"model":"m"})", ApiKind::embeddings},
      {R"({"model":"m","max_tokens":500})", R"({"model":"m","max_tokens":500})", ApiKind::other},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    CHECK(edited(row.body, cap_wish(100), row.api) == row.expected);
  }
}

TEST_CASE("usage is asked for in streams that did not ask") {
  struct Row {
    std::string body;
    std::string expected;
    ApiKind api = ApiKind::chat;
  };
  const Row rows[] = {
      {R"({"model":"m","stream":true})",
       R"({"stream_options":{"include_usage":true},"model":"m","stream":true})"},
      {R"({"model":"m","stream":true,"stream_options":null})",
       R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"},
      {R"({"model":"m","stream":true,"stream_options":{}})",
       R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"},
      {R"({"model":"m","stream":true,"stream_options":{ "x":1}})",
       R"({"model":"m","stream":true,"stream_options":{"include_usage":true, "x":1}})"},
      {R"({"model":"m","stream":true,"stream_options":{"include_usage":false}})",
       R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"},
      {R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})",
       R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"},
      {R"({"model":"m","stream":true,"stream_options":"x"})",
       R"({"model":"m","stream":true,"stream_options":"x"})"},
      {R"({"model":"m"})", R"({"model":"m"})"},
      {R"({"model":"m","stream":true})", R"({"model":"m","stream":true})", ApiKind::responses},
      {R"({"model":"m","stream":true})", R"({"model":"m","stream":true})", ApiKind::messages},
  };
  EditWishes wishes;
  wishes.ask_usage = true;
  for (const Row& row : rows) {
    INFO(row.body);
    CHECK(edited(row.body, wishes, row.api) == row.expected);
  }
}

TEST_CASE("random bodies keep every member that no wish names, byte for byte") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> others = {R"("seed":18446744073709551616)",
                                           R"("t" : 0.30000000000000004)",
                                           R"("u":"\u00e9é")",
                                           R"("x":{"model":"n","max_tokens":[]})",
                                           R"( "top_k":1e2 )",
                                           R"("messages":[ null ])"};
  for (int run = 0; run < 2000; ++run) {
    std::vector<std::string> members = {R"("model" : "m")"};
    const auto maybe = [&](const std::string& member) {
      if (random() % 2 == 0) members.push_back(member);
    };
    for (const std::string& other : others) maybe(other);
    maybe(R"("stream":true)");
    maybe(random() % 2 == 0 ? R"("max_tokens": 900)" : R"("max_tokens":null)");
    maybe(random() % 2 == 0 ? R"("stream_options":{ })" : R"("stream_options" :null)");
    std::shuffle(members.begin(), members.end(), random);
    std::string body = "{";
    for (const std::string& member : members) body += (body.size() > 1 ? "," : "") + member;
    body += "}";
    EditWishes wishes = cap_wish(64);
    wishes.model = "other";
    wishes.ask_usage = true;
    const std::string out = edited(body, wishes);
    INFO(body << " became " << out);
    const RequestFacts facts = facts_of(out);
    REQUIRE(facts.model == "other");
    REQUIRE(facts.max_tokens == 64);
    REQUIRE(facts.include_usage == facts.stream);
    REQUIRE(nlohmann::json::accept(out.find("18446744073709551616") == out.npos ? out : "{}"));
    for (const std::string& member : members) {
      const bool ours = member.find("\"model\" :") == 0 || member.find("\"max_tokens\"") == 0 ||
                        member.find("\"stream_options\"") == 0;
      if (!ours) REQUIRE(out.find(member) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace flashgate

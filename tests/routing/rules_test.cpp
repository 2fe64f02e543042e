#include "routing/rules.hpp"

#include <catch2/catch.hpp>

using namespace flashgate;

TEST_CASE("a token range is read as it is written") {
  struct Row {
    const char* text;
    std::optional<TokenRange> expected;
  };
  constexpr std::int64_t most = INT64_MAX;
  const std::vector<Row> table{
      {">16000", TokenRange{16001, most}},
      {"> 16k", TokenRange{16001, most}},
      {">=16K", TokenRange{16000, most}},
      {"<2000", TokenRange{0, 1999}},
      {"<=2k", TokenRange{0, 2000}},
      {"1000..4000", TokenRange{1000, 4000}},
      {"1k .. 1M", TokenRange{1000, 1'000'000}},
      {"500", TokenRange{500, 500}},
      {"0", TokenRange{0, 0}},
      {"", std::nullopt},
      {">", std::nullopt},
      {"<0", std::nullopt},
      {"..5", std::nullopt},
      {"5..", std::nullopt},
      {"9..5", std::nullopt},
      {"-5", std::nullopt},
      {"1e3", std::nullopt},
      {"k", std::nullopt},
      {">99999999999999999999", std::nullopt},
      {"9999999999999M", std::nullopt},
  };
  for (const Row& row : table) {
    INFO(row.text);
    CHECK(parse_token_range(row.text) == row.expected);
  }
}

TEST_CASE("a star stands for any characters") {
  CHECK(wildcard_match("gpt-*", "gpt-4o"));
  CHECK(wildcard_match("*", ""));
  CHECK(wildcard_match("*mini*", "gpt-4o-mini-2024"));
  CHECK(wildcard_match("a*b*c", "aXbXbc"));
  CHECK_FALSE(wildcard_match("gpt-*", "xgpt-4"));
  CHECK_FALSE(wildcard_match("a*b", "abc"));
  CHECK_FALSE(wildcard_match("", "a"));
  CHECK(wildcard_match("", ""));
}

namespace {

struct Call {
  RequestFacts facts{};
  std::vector<std::string> tags{"team-a", "batch"};
  std::vector<HeaderField> headers{{"X-Team", "red"}, {"x-empty", ""}};

  bool holds(const When& when) const {
    RuleFacts in;
    in.facts = &facts;
    in.model = "auto";
    in.key_name = "alice";
    in.key_tags = &tags;
    in.headers = &headers;
    in.task = TaskClass::code;
    in.input_tokens = 1500;
    return rule_matches(when, in);
  }
};

}  // namespace

TEST_CASE("each field holds when its value does, and lists are OR") {
  Call call;
  call.facts.max_tokens = 100;
  call.facts.turns = 3;
  call.facts.stream = true;
  call.facts.tools = true;
  call.facts.response_format = ResponseFormat::json_object;
  call.facts.last_user_text = "请把下面这段话翻译成英文，然后总结它的要点。";
  struct Row {
    const char* what;
    When yes;
    When no;
  };
  std::vector<Row> table(12);
  table[0] = {"model", {.model = {"x", "au*"}}, {.model = {"x", "y"}}};
  table[1] = {"key", {.key = {"bob", "alice"}}, {.key = {"bob"}}};
  table[2] = {"tag", {.tag = {"batch"}}, {.tag = {"team-b"}}};
  table[3] = {"language", {.language = {"english", "chinese"}}, {.language = {"english"}}};
  table[4] = {"task", {.task = {TaskClass::qa, TaskClass::code}}, {.task = {TaskClass::qa}}};
  table[5] = {"response_format",
              {.response_format = {ResponseFormat::json_object}},
              {.response_format = {ResponseFormat::json_schema}}};
  table[6] = {"input_tokens",
              {.input_tokens = TokenRange{1500, 1500}},
              {.input_tokens = TokenRange{1501, 9999}}};
  table[7] = {"max_tokens", {.max_tokens = TokenRange{0, 100}}, {.max_tokens = TokenRange{0, 99}}};
  table[8] = {"turns", {.turns = TokenRange{2, 4}}, {.turns = TokenRange{0, 2}}};
  table[9] = {"flags", {.stream = true, .tools = true, .images = false}, {.images = true}};
  table[10] = {"header", {.header = {{"x-team", "red"}}}, {.header = {{"x-team", "blue"}}}};
  table[11] = {"present", {.header = {{"x-empty", "*"}}}, {.header = {{"x-absent", "*"}}}};
  for (const Row& row : table) {
    INFO(row.what);
    CHECK(call.holds(row.yes));
    CHECK_FALSE(call.holds(row.no));
  }
  CHECK(call.holds(When{}));
}

TEST_CASE("fields are AND: one that fails is enough") {
  Call call;
  When when;
  when.key = {"alice"};
  when.task = {TaskClass::code};
  CHECK(call.holds(when));
  when.images = true;
  CHECK_FALSE(call.holds(when));
}

TEST_CASE("a rule on max_tokens does not hold when the request gives none") {
  Call call;
  CHECK_FALSE(call.holds({.max_tokens = TokenRange{}}));
}

TEST_CASE("without tags or headers, rules that ask for them don't hold") {
  RequestFacts facts;
  RuleFacts in;
  in.facts = &facts;
  CHECK_FALSE(rule_matches({.tag = {"*"}}, in));
  CHECK_FALSE(rule_matches({.header = {{"a", "*"}}}, in));
}

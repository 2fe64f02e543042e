#include "routing/router.hpp"

#include <catch2/catch.hpp>

using namespace flashgate;

namespace {

/// The founding file: a local flash profile, a cloud profile, threshold 16,000.
RouteTable founding_table() {
  RouteTable table;
  table.profiles.resize(2);
  table.profiles[0].name = "local-flash";
  table.profiles[0].model = "flash";
  table.profiles[1].name = "cloud-main";
  table.profiles[1].model = "big-model";
  table.long_context_threshold = 16000;
  table.fallback = {1};
  return table;
}

struct Call {
  RouteTable table = founding_table();
  RequestFacts facts{};
  RouteInput in{};

  explicit Call(double tokens = 100, std::string_view model = "auto") {
    facts.input_tokens.fill(tokens);
    in.facts = &facts;
    in.model = model;
    in.api = ApiKind::chat;
    in.path = "/v1/chat/completions";
    in.guess = TaskGuess{};
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  RouteDecision decide() {
    auto result = route(table, in);
    INFO((result.has_error() ? result.error().message : ""));
    REQUIRE(result.has_value());
    CHECK(result->reason.size() <= reason_bytes_max);
    for (const char c : result->reason) CHECK((c >= ' ' && c <= '~'));
    return *result;
  }
  ApiError refuse() {
    auto result = route(table, in);
    REQUIRE(result.has_error());
    CHECK_FALSE(result.error().message.empty());
    return result.error();
  }
  /// Names of the candidates, in order.
  std::vector<std::string> order() {
    std::vector<std::string> names;
    for (const Candidate& c : decide().candidates) names.push_back(table.profiles[c.profile].name);
    return names;
  }
};

using Names = std::vector<std::string>;

Rule rule_to(std::string name, When when, std::vector<std::size_t> to) {
  return Rule{std::move(name), std::move(when), std::move(to)};
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("auto goes to the default, with the fallback behind it") {
  Call call;
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
  const RouteDecision decision = call.decide();
  CHECK(decision.rule == "default");
  CHECK(decision.reason == "default: local-flash");
}

TEST_CASE("the threshold compares input tokens, strictly greater") {
  CHECK(Call(15999).order() == Names{"local-flash", "cloud-main"});
  CHECK(Call(16000).order() == Names{"local-flash", "cloud-main"});
  CHECK(Call(16001).order() == Names{"cloud-main", "local-flash"});
  Call with_output(16000);
  with_output.facts.max_tokens = 8000;
  CHECK(with_output.order() == Names{"local-flash", "cloud-main"});
}

TEST_CASE("over the threshold the reason says so in numbers") {
  Call call(18231);
  const RouteDecision decision = call.decide();
  CHECK(decision.rule == "long_context");
  CHECK(decision.reason ==
        "input 18,231 tokens is over long_context_threshold 16,000 (default: local-flash): "
        "cloud-main");
  CHECK(holds(decision.candidates[1].why, "last resort"));
}

TEST_CASE("naming a profile makes it first, and threshold, window and fallback still apply") {
  CHECK(Call(100, "cloud-main").order() == Names{"cloud-main", "local-flash"});
  CHECK(Call(100, "big-model").order() == Names{"cloud-main", "local-flash"});
  CHECK(Call(100, "flash").order() == Names{"local-flash", "cloud-main"});
  CHECK(Call(20000, "flash").order() == Names{"cloud-main", "local-flash"});
  CHECK(Call(20000, "cloud-main").order() == Names{"cloud-main", "local-flash"});
  Call small(9000, "local-flash");
  small.table.profiles[0].context_length = 8192;
  CHECK(small.order() == Names{"cloud-main"});
  CHECK(Call(100, "cloud-main").decide().rule == "named");
  CHECK(Call(100, "flash").decide().reason == "model 'flash': local-flash");
}

TEST_CASE("an unknown model is 404 with the names it may have meant") {
  Call call(100, "local-flahs");
  const ApiError error = call.refuse();
  CHECK(error.kind == ApiErrorKind::model_not_found);
  CHECK(error.param == "model");
  CHECK(holds(error.message, "Did you mean 'local-flash'"));
  const ApiError far = Call(100, "zzzzzzz").refuse();
  CHECK(holds(far.message, "/v1/models"));
  const std::string huge(5000, 'm');
  CHECK(Call(100, huge).refuse().message.size() < 300);
}

TEST_CASE("an unknown model goes the way of auto where the configuration says so") {
  Call call(100, "gpt-4o");
  call.table.unknown_model_to_default = true;
  call.table.rules = {rule_to("vision", {.images = true}, {1})};
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
  call.facts.images = true;
  CHECK(call.order() == Names{"cloud-main", "local-flash"});
}

TEST_CASE("the first rule that matches picks the first candidates, in its order") {
  Call call;
  call.table.profiles.push_back({.name = "third", .model = "third"});
  call.table.rules = {rule_to("never", {.stream = true}, {0}),
                      rule_to("hard", {.task = {TaskClass::formulas}}, {2, 1}),
                      rule_to("any", {}, {0})};
  call.in.explicit_task = TaskClass::formulas;
  CHECK(call.order() == Names{"third", "cloud-main", "local-flash"});
  const RouteDecision decision = call.decide();
  CHECK(decision.rule == "hard");
  CHECK(decision.task == TaskClass::formulas);
  CHECK(decision.reason == "rule hard (task formulas): third");
  call.in.explicit_task = TaskClass::chat;
  CHECK(call.decide().rule == "any");
}

TEST_CASE("without a guess the text is classified, and a header's task wins") {
  Call call;
  call.in.guess.reset();
  call.facts.tools = true;
  CHECK(call.decide().task == TaskClass::tools);
  call.in.explicit_task = TaskClass::qa;
  CHECK(call.decide().task == TaskClass::qa);
}

TEST_CASE("rules speak of auto; one that lists models speaks of named models too") {
  Call named(100, "flash");
  named.table.rules = {rule_to("all", {}, {1})};
  CHECK(named.order() == Names{"local-flash", "cloud-main"});
  named.table.rules = {rule_to("mine", {.model = {"fla*"}}, {1})};
  CHECK(named.order() == Names{"cloud-main", "local-flash"});
  Call unknown(100, "gpt-4");
  unknown.table.rules = {rule_to("gpt", {.model = {"gpt-*"}}, {1})};
  CHECK(unknown.order() == Names{"cloud-main", "local-flash"});
}

TEST_CASE("a rule on length has the last word on length, other rules leave it to the threshold") {
  Call call(20000);
  call.table.profiles.push_back({.name = "mine", .model = "mine"});
  call.table.rules = {rule_to("long", {.input_tokens = TokenRange{16001, INT64_MAX}}, {2})};
  CHECK(call.order() == Names{"mine", "local-flash", "cloud-main"});
  call.table.rules = {rule_to("all", {}, {2})};
  CHECK(call.order() == Names{"cloud-main", "mine", "local-flash"});
}

TEST_CASE("the window holds input plus requested output") {
  Call call(30000);
  call.table.long_context_threshold = 0;
  call.table.profiles[0].context_length = 32768;
  call.facts.max_tokens = 2768;
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
  call.facts.max_tokens = 2769;
  CHECK(call.order() == Names{"cloud-main"});
  const RouteDecision decision = call.decide();
  REQUIRE(decision.dropped.size() == 1);
  CHECK(decision.dropped[0].dropped == DropReason::window);
  CHECK(decision.dropped[0].why == "input 30,000 + output 2,769 tokens is over its window 32,768");
  CHECK(holds(decision.reason, "not local-flash: input 30,000"));
}

TEST_CASE("a profile's cap lowers the output that is counted, and fits what its window leaves") {
  Call call(30000);
  call.table.long_context_threshold = 0;
  call.table.profiles[0].context_length = 32768;
  call.table.profiles[0].max_tokens = 1000;
  call.facts.max_tokens = 32000;
  RouteDecision decision = call.decide();
  CHECK(decision.candidates[0].profile == 0);
  CHECK(decision.candidates[0].max_tokens_cap == 1000);
  call.table.profiles[0].max_tokens = 4096;
  call.facts.max_tokens.reset();
  decision = call.decide();
  CHECK(decision.candidates[0].profile == 0);
  CHECK(decision.candidates[0].max_tokens_cap == 2768);
  CHECK(decision.candidates[1].max_tokens_cap == 0);
}

TEST_CASE("a prompt that fits nowhere is refused with the largest window in the message") {
  Call call(40000);
  call.table.profiles[0].context_length = 8192;
  call.table.profiles[1].context_length = 32768;
  const ApiError error = call.refuse();
  CHECK(error.kind == ApiErrorKind::context_length_exceeded);
  CHECK(error.param == "messages");
  CHECK(holds(error.message, "32,768"));
  CHECK(holds(error.message, "40,000"));
  const Explanation explanation = explain_route(call.table, call.in);
  CHECK_FALSE(explanation.decision);
  CHECK(explanation.refusal.dropped.size() >= 2);
}

TEST_CASE("each profile counts with its own tokenizer and its own correction") {
  Call call;
  call.table.profiles[0].tokenizer = TokenizerFamily::qwen;
  call.table.profiles[1].tokenizer = TokenizerFamily::llama3;
  call.facts.input_tokens = {0, 0, 1000.2, 2000, 0};
  RouteDecision decision = call.decide();
  CHECK(decision.candidates[0].input_tokens == 1001);
  CHECK(decision.candidates[1].input_tokens == 2000);
  CHECK(decision.input_tokens == 1001);
  call.in.correction = [](std::size_t profile) { return profile == 0 ? 20.0 : 1.0; };
  decision = call.decide();
  CHECK(decision.candidates[0].profile == 1);  // 20,004 is over the threshold now
  // A family nobody estimated counts as the dearest known, a senseless correction as none.
  call.table.profiles[0].tokenizer = TokenizerFamily::deepseek;
  call.in.correction = [](std::size_t) { return -1.0; };
  CHECK(call.decide().candidates[0].input_tokens == 2000);
}

TEST_CASE("embeddings stay on their model, replicas of it are welcome") {
  Call call(100, "embed-a");
  call.in.api = ApiKind::embeddings;
  call.in.path = "/v1/embeddings";
  call.table.profiles.push_back({.name = "embed-a", .model = "bge"});
  call.table.profiles.push_back({.name = "embed-b", .model = "bge"});
  call.table.fallback = {1, 3};
  CHECK(call.order() == Names{"embed-a", "embed-b"});
  const RouteDecision decision = call.decide();
  for (const Candidate& c : decision.dropped) CHECK(c.dropped == DropReason::foreign_model);
  // A batch is not one context, and the threshold is none of its business.
  call.facts.input_tokens.fill(1e6);
  call.table.profiles[2].context_length = 512;
  CHECK(call.order() == Names{"embed-a", "embed-b"});
}

TEST_CASE("a named model that lacks the endpoint is not replaced by another model") {
  Call call(100, "local-flash");
  call.in.api = ApiKind::embeddings;
  call.in.path = "/v1/embeddings";
  call.table.profiles[0].endpoints = {"chat"};
  const ApiError error = call.refuse();
  CHECK(error.kind == ApiErrorKind::unknown_path);
  CHECK(holds(error.message, "'cloud-main'"));
}

TEST_CASE("a stored response stays on its model, a plain one moves") {
  Call call;
  call.in.api = ApiKind::responses;
  call.in.path = "/v1/responses";
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
  call.facts.has_foreign_state = true;
  CHECK(call.order() == Names{"local-flash"});
  call.facts.input_tokens.fill(20000);
  CHECK(call.order() == Names{"local-flash"});
}

TEST_CASE("a profile without the endpoint or the capability is passed over, and says why") {
  Call call;
  call.table.profiles[0].capabilities = {"tools"};
  call.facts.images = true;
  CHECK(call.order() == Names{"cloud-main"});
  CHECK(call.decide().dropped[0].dropped == DropReason::capability);
  call.facts.images = false;
  call.facts.tools = true;
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
  call.facts.response_format = ResponseFormat::json_schema;
  CHECK(call.order() == Names{"cloud-main"});
  call.table.profiles[1].capabilities = {"tools"};
  const ApiError error = call.refuse();
  CHECK(error.kind == ApiErrorKind::invalid_request);
  CHECK(holds(error.message, "json_schema"));
}

TEST_CASE("a key may use only what it is granted") {
  Call call;
  call.in.allowed_profiles = {"cloud-main"};
  CHECK(call.order() == Names{"cloud-main"});
  Call named(100, "flash");
  named.in.allowed_profiles = {"cloud-main"};
  CHECK(named.refuse().kind == ApiErrorKind::model_not_allowed);
  Call typo(100, "local-flas");
  typo.in.allowed_profiles = {"cloud-main"};
  CHECK_FALSE(holds(typo.refuse().message, "local-flash"));  // nor told what else there is
  Call neither;
  neither.table.profiles.push_back({.name = "third", .model = "third"});
  neither.in.allowed_profiles = {"third"};
  CHECK(neither.order() == Names{"third"});
  neither.in.allowed_profiles = {"nothing"};
  CHECK(neither.refuse().kind == ApiErrorKind::model_not_allowed);
}

TEST_CASE("no-fallback leaves one candidate; a named one is not even moved by the threshold") {
  Call automatic;
  automatic.in.no_fallback = true;
  CHECK(automatic.order() == Names{"local-flash"});
  CHECK(automatic.decide().dropped.back().dropped == DropReason::no_fallback);
  Call long_one(20000);
  long_one.in.no_fallback = true;
  CHECK(long_one.order() == Names{"cloud-main"});
  Call named(20000, "flash");
  named.in.no_fallback = true;
  CHECK(named.order() == Names{"local-flash"});
  named.table.profiles[0].context_length = 8192;
  CHECK(named.refuse().kind == ApiErrorKind::context_length_exceeded);
}

TEST_CASE("a pin means that profile and no other, whatever the model says") {
  Call call(20000, "no-such-model");
  call.in.pinned_profile = "local-flash";
  CHECK(call.order() == Names{"local-flash"});
  CHECK(call.decide().rule == "pinned");
  call.in.pinned_profile = "nobody";
  CHECK(call.refuse().kind == ApiErrorKind::model_not_found);
}

TEST_CASE("cycles in the fallback list try each profile once") {
  Call call;
  call.table.fallback = {1, 0, 1, 1, 0, 99};
  CHECK(call.order() == Names{"local-flash", "cloud-main"});
}

TEST_CASE("over the threshold without a fallback that fits, the order stays") {
  Call none(20000);
  none.table.fallback.clear();
  CHECK(none.order() == Names{"local-flash"});
  Call small(20000);
  small.table.profiles[1].context_length = 8192;
  CHECK(small.order() == Names{"local-flash"});
}

TEST_CASE("over the threshold the fallbacks keep their order") {
  Call call(20000);
  call.table.profiles.push_back({.name = "second-cloud", .model = "x"});
  call.table.fallback = {2, 1};
  CHECK(call.order() == Names{"second-cloud", "cloud-main", "local-flash"});
  call.table.profiles[2].context_length = 4096;
  CHECK(call.order() == Names{"cloud-main", "local-flash"});
}

TEST_CASE("names that are not ASCII or are endless still make one short header line") {
  Call call(18231);
  call.table.profiles[1].name = "云端\r\nx-evil: 1";
  CHECK_FALSE(holds(call.decide().reason, "\n"));
  call.table.profiles[1].name = std::string(500, 'n');
  CHECK(call.decide().reason.size() == reason_bytes_max);
}

TEST_CASE("an empty table is an error, not a crash") {
  Call call;
  call.table = RouteTable{};
  CHECK(call.refuse().kind == ApiErrorKind::no_backend_available);
  call.table = founding_table();
  call.table.default_profile = 7;
  CHECK(call.refuse().kind == ApiErrorKind::no_backend_available);
}

TEST_CASE("thousands are set off by commas") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(-100) == "-100");
}

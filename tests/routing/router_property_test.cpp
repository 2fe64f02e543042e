// Random tables and requests, seeded: what must hold whatever the configuration says.
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "routing/router.hpp"

using namespace flashgate;

namespace {

class Generator {
 public:
  explicit Generator(unsigned seed) : dice_(seed) {}

  int below(int n) { return std::uniform_int_distribution<>(0, n - 1)(dice_); }
  bool maybe() { return below(2) == 0; }
  std::vector<std::size_t> indices(std::size_t profiles) {
    std::vector<std::size_t> out;
    for (int i = below(4); i > 0; --i) {
      out.push_back(static_cast<std::size_t>(below(static_cast<int>(profiles) + 1)));
    }
    return out;
  }

  RouteTable table() {
    RouteTable out;
    const int count = 1 + below(5);
    for (int i = 0; i < count; ++i) {
      RouteProfile profile;
      profile.name = "p" + std::to_string(i);
      profile.model = "m" + std::to_string(below(3));
      if (maybe()) profile.aliases = {"a" + std::to_string(below(3))};
      profile.tokenizer = static_cast<TokenizerFamily>(below(5));
      if (maybe()) profile.context_length = 1 + below(40000);
      if (maybe()) profile.max_tokens = 1 + below(8000);
      if (below(4) == 0) profile.endpoints = {maybe() ? "chat" : "embeddings"};
      if (below(4) == 0) profile.capabilities = {maybe() ? "tools" : "vision"};
      out.profiles.push_back(profile);
    }
    out.default_profile = static_cast<std::size_t>(below(count));
    if (maybe()) out.long_context_threshold = 1 + below(30000);
    out.fallback = indices(out.profiles.size());
    for (int i = below(4); i > 0; --i) {
      Rule rule;
      rule.name = "r" + std::to_string(i);
      if (maybe()) rule.when.task = {static_cast<TaskClass>(below(task_class_count))};
      if (maybe()) rule.when.input_tokens = TokenRange{below(10000), 10000 + below(30000)};
      if (below(3) == 0) rule.when.model = {maybe() ? "m*" : "a1"};
      if (below(3) == 0) rule.when.stream = maybe();
      rule.to = indices(out.profiles.size());
      out.rules.push_back(rule);
    }
    out.unknown_model_to_default = maybe();
    return out;
  }

  RequestFacts facts() {
    RequestFacts out;
    for (double& tokens : out.input_tokens) tokens = below(3) == 0 ? 0 : below(40000);
    if (maybe()) out.max_tokens = below(12000) - 100;
    out.stream = maybe();
    out.tools = maybe();
    out.images = below(4) == 0;
    out.has_foreign_state = below(4) == 0;
    out.response_format = static_cast<ResponseFormat>(below(4));
    return out;
  }

  std::string model() {
    static const std::vector<std::string> names{"auto", "p0", "p3", "m0", "m2", "a1", "nobody"};
    return names[static_cast<std::size_t>(below(static_cast<int>(names.size())))];
  }

 private:
  std::mt19937 dice_;
};

void check_kept(const RouteTable& table, const RouteInput& in, const RouteDecision& decision) {
  REQUIRE_FALSE(decision.candidates.empty());
  std::set<std::size_t> seen;
  const std::string& first_model = table.profiles.at(decision.candidates[0].profile).model;
  for (const Candidate& candidate : decision.candidates) {
    const RouteProfile& profile = table.profiles.at(candidate.profile);
    CHECK(seen.insert(candidate.profile).second);
    CHECK(is_allowed(profile, in.allowed_profiles));
    CHECK(offers_endpoint(profile, in.api, in.path));
    CHECK(candidate.dropped == DropReason::none);
    CHECK_FALSE(candidate.why.empty());
    if (!may_change_model(in.api)) {
      CHECK(profile.model == first_model);
    } else if (profile.context_length > 0) {
      std::int64_t output = std::max<std::int64_t>(0, in.facts->max_tokens.value_or(0));
      if (profile.max_tokens > 0) output = std::min(output, profile.max_tokens);
      CHECK(candidate.input_tokens + output <= profile.context_length);
    }
    CHECK(candidate.max_tokens_cap <= profile.max_tokens);
  }
  for (const Candidate& candidate : decision.dropped) {
    CHECK(candidate.dropped != DropReason::none);
    CHECK_FALSE(candidate.why.empty());
    CHECK(seen.insert(candidate.profile).second);
  }
  CHECK(decision.reason.size() <= reason_bytes_max);
  CHECK_FALSE(decision.rule.empty());
}

void check_one(unsigned seed) {
  Generator generator(seed);
  const RouteTable table = generator.table();
  const RequestFacts facts = generator.facts();
  const std::string model = generator.model();
  RouteInput in;
  in.facts = &facts;
  in.model = model;
  in.api = static_cast<ApiKind>(generator.below(7));
  in.path = in.api == ApiKind::embeddings ? "/v1/embeddings" : "/v1/chat/completions";
  in.guess = TaskGuess{static_cast<TaskClass>(generator.below(task_class_count)), 1, "test"};
  in.no_fallback = generator.below(5) == 0;
  if (generator.below(4) == 0) in.allowed_profiles = {"p0", "p2"};
  if (generator.below(8) == 0) in.pinned_profile = "p1";

  const Explanation one = explain_route(table, in);
  const Explanation two = explain_route(table, in);
  REQUIRE(one.decision.has_value() == two.decision.has_value());
  CHECK(one.refusal.error.message == two.refusal.error.message);
  if (!one.decision) {
    const int status = api_error_row(one.refusal.error.kind).status;
    CHECK(((status >= 400 && status < 500) || status == 503));
    CHECK_FALSE(one.refusal.error.message.empty());
    return;
  }
  check_kept(table, in, *one.decision);
  CHECK(one.decision->reason == two.decision->reason);
  CHECK(one.decision->candidates.size() == two.decision->candidates.size());
  for (std::size_t i = 0; i < one.decision->candidates.size(); ++i) {
    CHECK(one.decision->candidates[i].profile == two.decision->candidates[i].profile);
  }
  if (in.no_fallback || !in.pinned_profile.empty()) CHECK(one.decision->candidates.size() == 1);
}

}  // namespace

TEST_CASE("whatever table and request: kept candidates fit, are distinct, and stay on a model") {
  for (unsigned seed = 1; seed <= 20'000; ++seed) {
    INFO("seed " << seed);
    check_one(seed);
  }
}

#include "routing/router.hpp"

#include <algorithm>
#include <cmath>

#include "routing/route_refusal.hpp"

namespace flashgate {
namespace {

constexpr double input_tokens_max = 1e15;

/// One decision in the making.
struct Plan {
  const RouteTable& table;
  const RouteInput& in;
  std::string_view model{};
  TaskClass task = TaskClass::chat;
  std::string_view task_why{};
  std::string rule{};
  std::string because{};
  std::vector<std::size_t> order{};  // the first choices, then the rest
  bool is_named = false;
  bool is_pinned = false;
  bool rule_on_length = false;  // a rule that tests input_tokens has spoken on length already
  std::vector<Candidate> kept{};
  std::vector<Candidate> dropped{};

  const RouteProfile& profile(std::size_t index) const { return table.profiles[index]; }
  const RequestFacts& facts() const { return *in.facts; }
};

std::int64_t count_input(const Plan& plan, std::size_t profile) {
  const auto& estimates = plan.facts().input_tokens;
  const auto family = static_cast<std::size_t>(plan.profile(profile).tokenizer);
  double tokens = family < estimates.size() ? estimates[family] : 0;
  // The family was not asked for: the dearest of those that were is the safe side.
  if (!(tokens > 0)) tokens = *std::max_element(estimates.begin(), estimates.end());
  if (plan.in.correction) {
    const double factor = plan.in.correction(profile);
    if (std::isfinite(factor) && factor > 0) tokens *= factor;
  }
  if (!(tokens > 0)) return 0;
  return static_cast<std::int64_t>(std::ceil(std::min(tokens, input_tokens_max)));
}

/// Each profile once, where it is listed first.
void add_profile(Plan& plan, std::size_t index) {
  if (index >= plan.table.profiles.size()) return;
  if (std::find(plan.order.begin(), plan.order.end(), index) != plan.order.end()) return;
  plan.order.push_back(index);
}

void find_task(Plan& plan) {
  if (plan.in.explicit_task) {
    plan.task = *plan.in.explicit_task;
    plan.task_why = "x-flashgate-task";
    return;
  }
  if (plan.in.guess) {
    plan.task = plan.in.guess->task;
    plan.task_why = plan.in.guess->why;
    return;
  }
  const RequestFacts& facts = plan.facts();
  TaskFeatures features;
  features.system_text = facts.system_text;
  features.last_user_text = facts.last_user_text;
  features.has_tools = facts.tools;
  features.has_images = facts.images;
  features.has_response_format = facts.response_format == ResponseFormat::json_object ||
                                 facts.response_format == ResponseFormat::json_schema;
  features.is_completion_endpoint = plan.in.api == ApiKind::completions;
  features.input_tokens = count_input(plan, plan.table.default_profile);
  features.turns = facts.turns;
  features.max_tokens = std::max<std::int64_t>(0, facts.max_tokens.value_or(0));
  const TaskGuess guess = classify_task(features);
  plan.task = guess.task;
  plan.task_why = guess.why;
}

/// `plan.order` from a rule. A rule that lists models speaks of named models too, others of `auto`.
bool choose_by_rule(Plan& plan, bool is_auto) {
  RuleFacts facts;
  facts.facts = plan.in.facts;
  facts.model = plan.model;
  facts.key_name = plan.in.key_name;
  facts.key_tags = plan.in.key_tags;
  facts.headers = plan.in.headers;
  facts.task = plan.task;
  facts.input_tokens = count_input(plan, plan.table.default_profile);
  for (const Rule& rule : plan.table.rules) {
    if (!is_auto && rule.when.model.empty()) continue;
    if (!rule_matches(rule.when, facts)) continue;
    for (const std::size_t index : rule.to) add_profile(plan, index);
    plan.rule = rule.name;
    plan.rule_on_length = rule.when.input_tokens.has_value();
    const std::string matched = describe_match(rule.when, facts);
    plan.because = "rule " + rule.name + (matched.empty() ? "" : " (" + matched + ")");
    return true;
  }
  return false;
}

void choose_default(Plan& plan) {
  add_profile(plan, plan.table.default_profile);
  plan.rule = "default";
  plan.because = plan.table.rules.empty() ? "default" : "no rule matched, default";
  const auto usable = [&](std::size_t i) {
    return i < plan.table.profiles.size() && is_allowed(plan.profile(i), plan.in.allowed_profiles);
  };
  const auto& fallback = plan.table.fallback;
  if (usable(plan.table.default_profile) || std::any_of(fallback.begin(), fallback.end(), usable)) {
    return;
  }
  // A key that may use neither gets what it may use.
  plan.because = "the profiles this key may use";
  for (std::size_t i = 0; i < plan.table.profiles.size(); ++i) {
    if (usable(i)) add_profile(plan, i);
  }
}

/// The first choices. An error only if the client named what it can't have.
std::optional<ApiError> choose_first(Plan& plan) {
  const RouteInput& in = plan.in;
  plan.is_pinned = !in.pinned_profile.empty();
  if (plan.is_pinned) {
    plan.rule = "pinned";
    plan.because = "pinned by x-flashgate-profile";
    for (std::size_t i = 0; i < plan.table.profiles.size(); ++i) {
      if (plan.profile(i).name == in.pinned_profile) add_profile(plan, i);
    }
    if (plan.order.empty()) return unknown_model(plan.table, in, in.pinned_profile);
  } else {
    const std::vector<std::size_t> called = plan.model == auto_model
                                                ? std::vector<std::size_t>{}
                                                : profiles_called(plan.table, plan.model);
    const bool is_unknown = plan.model != auto_model && called.empty();
    const bool is_auto =
        plan.model == auto_model || (is_unknown && plan.table.unknown_model_to_default);
    if (choose_by_rule(plan, is_auto)) return std::nullopt;
    if (is_auto) {
      choose_default(plan);
      return std::nullopt;
    }
    if (is_unknown) return unknown_model(plan.table, in, plan.model);
    plan.is_named = true;
    plan.rule = "named";
    plan.because = "model " + quoted_model(plan.model);
    for (const std::size_t index : called) add_profile(plan, index);
  }
  const bool has_one = std::any_of(plan.order.begin(), plan.order.end(), [&](std::size_t i) {
    return is_allowed(plan.profile(i), in.allowed_profiles);
  });
  if (has_one) return std::nullopt;
  return model_not_allowed(plan.is_pinned ? in.pinned_profile : plan.model);
}

bool stays_on_model(const Plan& plan) {
  // A stored response or an encrypted reasoning item is known to the model that made it only.
  return !may_change_model(plan.in.api) ||
         (plan.in.api == ApiKind::responses && plan.facts().has_foreign_state);
}

bool drop(Candidate& candidate, DropReason reason, std::string why) {
  candidate.dropped = reason;
  candidate.why = std::move(why);
  return false;
}

/// What does not depend on the request's size.
bool is_eligible(const Plan& plan, Candidate& candidate) {
  const RouteProfile& profile = plan.profile(candidate.profile);
  const RequestFacts& facts = plan.facts();
  if (!is_allowed(profile, plan.in.allowed_profiles)) {
    return drop(candidate, DropReason::not_allowed, "this key may not use it");
  }
  if (!offers_endpoint(profile, plan.in.api, plan.in.path)) {
    return drop(candidate, DropReason::endpoint, "does not offer this endpoint");
  }
  const auto lacks = [&profile](std::string_view capability) {
    const auto& all = profile.capabilities;
    return !all.empty() && std::find(all.begin(), all.end(), capability) == all.end();
  };
  if (facts.images && lacks("vision")) {
    return drop(candidate, DropReason::capability, "has no vision, and the request has images");
  }
  if (facts.tools && lacks("tools")) {
    return drop(candidate, DropReason::capability, "has no tools, and the request has some");
  }
  if (facts.response_format == ResponseFormat::json_schema && lacks("json_schema")) {
    return drop(candidate, DropReason::capability, "has no json_schema, and the request asks it");
  }
  return true;
}

/// Sizes. Batches of embeddings are not one context, so only generating endpoints are checked.
bool fits_window(const Plan& plan, Candidate& candidate) {
  const RouteProfile& profile = plan.profile(candidate.profile);
  candidate.max_tokens_cap = std::max<std::int64_t>(0, profile.max_tokens);
  if (profile.context_length <= 0 || !may_change_model(plan.in.api)) return true;
  const std::int64_t cap = candidate.max_tokens_cap;
  std::int64_t output = std::max<std::int64_t>(0, plan.facts().max_tokens.value_or(0));
  if (cap > 0) output = std::min(output, cap);
  const std::int64_t left = profile.context_length - candidate.input_tokens;
  if (left < output) {
    return drop(candidate, DropReason::window,
                "input " + with_commas(candidate.input_tokens) + " + output " +
                    with_commas(output) + " tokens is over its window " +
                    with_commas(profile.context_length));
  }
  // A cap that we add must not ask for more than the window leaves.
  if (cap > 0 && !plan.facts().max_tokens) {
    candidate.max_tokens_cap = std::clamp<std::int64_t>(left, 1, cap);
  }
  return true;
}

void judge_candidates(Plan& plan) {
  const bool stays = stays_on_model(plan);
  std::optional<std::string_view> anchor;
  // A client that named a model means that one, even where its own profile can't serve the call.
  if (stays && (plan.is_named || plan.is_pinned)) anchor = plan.profile(plan.order[0]).model;
  for (const std::size_t index : plan.order) {
    Candidate candidate;
    candidate.profile = index;
    candidate.input_tokens = count_input(plan, index);
    bool ok = is_eligible(plan, candidate);
    if (ok && stays) {
      const std::string_view model = plan.profile(index).model;
      if (!anchor) anchor = model;
      if (model != *anchor) {
        ok = drop(candidate, DropReason::foreign_model,
                  "serves another model, and this call must stay on one");
      }
    }
    ok = ok && fits_window(plan, candidate);
    (ok ? plan.kept : plan.dropped).push_back(std::move(candidate));
  }
}

/// Over the threshold the fallback list goes first, in its order; the others stay as a last resort.
bool apply_threshold(Plan& plan) {
  const std::int64_t threshold = plan.table.long_context_threshold;
  if (threshold <= 0 || plan.kept.empty() || stays_on_model(plan) || plan.is_pinned) return false;
  if (plan.rule_on_length || (plan.is_named && plan.in.no_fallback)) return false;
  const auto& fallback = plan.table.fallback;
  const auto rank = [&fallback](const Candidate& c) {
    return std::find(fallback.begin(), fallback.end(), c.profile) - fallback.begin();
  };
  const auto last = static_cast<std::ptrdiff_t>(fallback.size());
  const Candidate first = plan.kept.front();
  if (first.input_tokens <= threshold || rank(first) < last) return false;
  const bool has_fallback = std::any_of(plan.kept.begin(), plan.kept.end(),
                                        [&](const Candidate& c) { return rank(c) < last; });
  if (!has_fallback) return false;
  std::stable_sort(plan.kept.begin(), plan.kept.end(),
                   [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  const std::string over = "input " + with_commas(first.input_tokens) +
                           " tokens is over long_context_threshold " + with_commas(threshold);
  for (Candidate& candidate : plan.kept) {
    if (rank(candidate) == last) candidate.why = over + ", a last resort";
  }
  plan.because = over + " (" + plan.because + ": " + plan.profile(first.profile).name + ")";
  plan.rule = "long_context";
  return true;
}

void keep_first_only(Plan& plan) {
  if (!plan.in.no_fallback && !plan.is_pinned) return;
  while (plan.kept.size() > 1) {
    Candidate candidate = std::move(plan.kept.back());
    plan.kept.pop_back();
    const bool over = !candidate.why.empty();
    candidate.dropped = over ? DropReason::threshold : DropReason::no_fallback;
    if (!over) candidate.why = "the caller asked for no fallback";
    plan.dropped.push_back(std::move(candidate));
  }
}

std::string reason_line(const Plan& plan) {
  std::string line = plan.because + ": " + plan.profile(plan.kept.front().profile).name;
  const Candidate* first_choice = nullptr;
  for (const Candidate& candidate : plan.dropped) {
    if (candidate.profile == plan.order.front()) first_choice = &candidate;
  }
  if (first_choice && plan.rule != "long_context") {
    line += ", not " + plan.profile(first_choice->profile).name + ": " + first_choice->why;
  }
  return header_line(line);
}

RouteDecision to_decision(Plan& plan, bool over_threshold) {
  RouteDecision decision;
  decision.reason = reason_line(plan);
  for (Candidate& candidate : plan.kept) {
    if (!candidate.why.empty()) continue;
    candidate.why = candidate.profile == plan.order.front() ? "first choice" : "fallback";
  }
  if (over_threshold) plan.kept.front().why = "first of the fallback list that fits a long input";
  decision.rule = std::move(plan.rule);
  decision.task = plan.task;
  decision.task_why = plan.task_why;
  decision.input_tokens = plan.kept.front().input_tokens;
  decision.candidates = std::move(plan.kept);
  decision.dropped = std::move(plan.dropped);
  return decision;
}

}  // namespace

Explanation explain_route(const RouteTable& table, const RouteInput& input) {
  Explanation out;
  Plan plan{table, input};
  plan.model = input.model.empty() ? std::string_view(input.facts->model) : input.model;
  if (table.profiles.empty() || table.default_profile >= table.profiles.size()) {
    out.refusal.error.kind = ApiErrorKind::no_backend_available;
    out.refusal.error.message = "No profile is configured.";
    return out;
  }
  find_task(plan);
  if (std::optional<ApiError> refusal = choose_first(plan)) {
    out.refusal.error = std::move(*refusal);
    return out;
  }
  if (!plan.is_pinned && !(plan.is_named && input.no_fallback)) {
    add_profile(plan, table.default_profile);
    for (const std::size_t index : table.fallback) add_profile(plan, index);
  }
  if (!plan.order.empty()) judge_candidates(plan);
  const bool over_threshold = apply_threshold(plan);
  keep_first_only(plan);
  if (plan.kept.empty()) {
    out.refusal.error = nothing_fits(table, input, plan.dropped);
    out.refusal.dropped = std::move(plan.dropped);
    return out;
  }
  out.decision = to_decision(plan, over_threshold);
  return out;
}

boost::system::result<RouteDecision, ApiError> route(const RouteTable& table,
                                                     const RouteInput& input) {
  Explanation explanation = explain_route(table, input);
  if (explanation.decision) return std::move(*explanation.decision);
  return std::move(explanation.refusal.error);
}

}  // namespace flashgate

#include <charconv>

#include "base/json_text.hpp"
#include "gateway/call.hpp"

namespace flashgate {
namespace {

constexpr std::size_t template_bytes_max = 128;

std::string_view own_header(const Call& call, std::string_view name) {
  return field_value(call.session.head().fields, name);
}

ApiError bad_header(std::string message) {
  return {ApiErrorKind::invalid_request, std::move(message)};
}

std::optional<ApiError> read_facts(Call& call) {
  const bool without_body = !call.has_body && call.session.head().method != "POST";
  if (without_body) return std::nullopt;
  constexpr std::string_view form = "multipart/form-data";
  if (call.content_type.size() >= form.size() &&
      iequals(std::string_view(call.content_type).substr(0, form.size()), form)) {
    const MultipartFacts form_facts = read_multipart(call.content_type, call.body);
    if (!form_facts.ok)
      return ApiError{ApiErrorKind::invalid_request,
                      "The multipart body is malformed: " + form_facts.why + "."};
    if (!form_facts.has_model)
      return ApiError{ApiErrorKind::invalid_request,
                      "The form has no `model` field; name a profile, a model or `auto`.", "model"};
    call.is_multipart = true;
    call.multipart_model = form_facts.model_range;
    call.facts.api = call.endpoint.api;
    call.facts.has_model = true;
    call.facts.model = form_facts.model;
    call.facts.stream = form_facts.stream;
    return std::nullopt;
  }
  FactsOptions options;
  options.families = call.runtime().families;
  auto facts = read_request_facts(call.endpoint.api, call.body, options);
  if (facts.has_error()) return facts.error();
  call.facts = std::move(facts.value());
  return std::nullopt;
}

std::optional<ApiError> read_timeout(Call& call, Duration& total) {
  const std::string_view text = own_header(call, "x-flashgate-timeout");
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0) || seconds > 86400)
    return bad_header("x-flashgate-timeout is a number of seconds, such as 30 or 2.5.");
  total =
      std::min(total, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  return std::nullopt;
}

/// The longest that any candidate would be given: one deadline covers queue, attempts, backoff.
Duration longest_total(const Call& call) {
  Duration longest{};
  for (const Candidate& candidate : call.decision.candidates) {
    const Timeouts& timeouts = call.session.runtime().config.profiles[candidate.profile].timeouts;
    longest = std::max(longest, call.facts.stream ? timeouts.total : timeouts.total_unary);
  }
  return longest;
}

std::optional<ApiError> choose_route(Call& call) {
  RouteInput input;
  input.facts = &call.facts;
  input.model = call.facts.model;
  input.api = call.endpoint.api;
  input.path = call.path.path;
  input.headers = &call.session.head().fields;
  const std::string_view no_fallback = own_header(call, "x-flashgate-no-fallback");
  input.no_fallback = no_fallback == "1" || iequals(no_fallback, "true");
  const std::string_view task = own_header(call, "x-flashgate-task");
  if (!task.empty()) {
    input.explicit_task = parse_task_class(task);
    if (!input.explicit_task)
      return bad_header(
          "x-flashgate-task is not a task class; use one of intent, extraction, conversion, qa, "
          "completion, tagging, workflow, code, formulas, reasoning, translation, long_document, "
          "tools, vision, chat.");
  }
  Runtime& runtime = call.runtime();
  input.correction = [&runtime](std::size_t profile) {
    return runtime.profiles[profile]->correction();
  };
  if (!call.facts.has_model) input.model = auto_model;  // a GET that passes through
  auto decision = route(runtime.config.routes, input);
  if (decision.has_error()) return decision.error();
  call.decision = std::move(decision.value());
  return std::nullopt;
}

void record_decision(Call& call) {
  Exchange& exchange = call.exchange();
  exchange.rule = call.decision.rule;
  exchange.reason = call.decision.reason;
  exchange.task = call.decision.task;
  exchange.has_task = call.has_body && !call.is_multipart;
  exchange.turns = call.facts.turns;
  exchange.input_tokens = call.decision.input_tokens;
  const Candidate& first = call.decision.candidates.front();
  const auto family =
      static_cast<std::size_t>(call.runtime().config.profiles[first.profile].tokenizer);
  exchange.system_tokens = static_cast<std::int64_t>(call.facts.system_tokens[family]);
}

}  // namespace

std::optional<ApiError> understand(Call& call) {
  Exchange& exchange = call.exchange();
  if (std::optional<ApiError> error = read_facts(call)) return error;
  exchange.model = call.facts.model;
  exchange.stream = call.facts.stream;
  const std::string_view template_id = own_header(call, "x-flashgate-template");
  exchange.template_id = template_id.substr(0, utf8_prefix(template_id, template_bytes_max));
  if (std::optional<ApiError> error = choose_route(call)) return error;
  record_decision(call);
  Duration total = longest_total(call);
  if (std::optional<ApiError> error = read_timeout(call, total)) return error;
  call.deadline = call.session.started() + total;
  return std::nullopt;
}

}  // namespace flashgate

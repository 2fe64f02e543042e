#include "routing/route_refusal.hpp"

#include <algorithm>
#include <array>

#include "base/close_match.hpp"
#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::size_t model_bytes_quoted = 80;

const Candidate* first_dropped(const std::vector<Candidate>& dropped, DropReason reason) {
  for (const Candidate& candidate : dropped) {
    if (candidate.dropped == reason) return &candidate;
  }
  return nullptr;
}

std::string_view prompt_param(ApiKind api) {
  if (api == ApiKind::completions) return "prompt";
  return api == ApiKind::responses ? "input" : "messages";
}

ApiError too_long(const RouteTable& table, const RouteInput& input,
                  const std::vector<Candidate>& dropped) {
  const Candidate* widest = nullptr;
  for (const Candidate& candidate : dropped) {
    if (candidate.dropped != DropReason::window) continue;
    if (!widest || table.profiles[candidate.profile].context_length >
                       table.profiles[widest->profile].context_length) {
      widest = &candidate;
    }
  }
  ApiError error;
  error.kind = ApiErrorKind::context_length_exceeded;
  error.param = prompt_param(input.api);
  const RouteProfile& profile = table.profiles[widest->profile];
  error.message = "This model's maximum context length is " + with_commas(profile.context_length) +
                  " tokens, and this request is longer: " + profile.name + ": " + widest->why +
                  ". Shorten the " + error.param + " or ask for fewer output tokens.";
  return error;
}

}  // namespace

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string header_line(std::string_view text) {
  std::string out(text.substr(0, reason_bytes_max));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > reason_bytes_max) out.replace(reason_bytes_max - 3, 3, "...");
  return out;
}

std::string quoted_model(std::string_view model) {
  std::string out = "'";
  out += model.substr(0, utf8_prefix(model, model_bytes_quoted));
  return out += model.size() > model_bytes_quoted ? "...'" : "'";
}

ApiError unknown_model(const RouteTable& table, const RouteInput& input, std::string_view model) {
  ApiError error;
  error.kind = ApiErrorKind::model_not_found;
  error.param = "model";
  error.message = "The model " + quoted_model(model) + " does not exist here.";
  const std::vector<std::string> close =
      close_matches(model, visible_models(table, input.allowed_profiles));
  for (std::size_t i = 0; i < close.size(); ++i) {
    error.message += i == 0 ? " Did you mean '" : (i + 1 < close.size() ? ", '" : " or '");
    error.message += close[i] + "'";
  }
  error.message += close.empty() ? " GET /v1/models lists the names; 'auto' always works."
                                 : "? GET /v1/models lists the names.";
  return error;
}

ApiError model_not_allowed(std::string_view model) {
  ApiError error;
  error.kind = ApiErrorKind::model_not_allowed;
  error.param = "model";
  error.message = "This key may not use the model " + quoted_model(model) +
                  ". GET /v1/models lists those it may use.";
  return error;
}

ApiError nothing_fits(const RouteTable& table, const RouteInput& input,
                      const std::vector<Candidate>& dropped) {
  if (first_dropped(dropped, DropReason::window)) return too_long(table, input, dropped);
  ApiError error;
  if (const Candidate* candidate = first_dropped(dropped, DropReason::capability)) {
    error.kind = ApiErrorKind::invalid_request;
    error.message =
        "No profile can serve this request: " + table.profiles[candidate->profile].name + " " +
        candidate->why + ". Remove that part, or name a model that has it.";
    return error;
  }
  if (const Candidate* candidate = first_dropped(dropped, DropReason::endpoint)) {
    error.kind = ApiErrorKind::unknown_path;
    error.message = table.profiles[candidate->profile].name + " does not offer this endpoint.";
    for (const RouteProfile& profile : table.profiles) {
      if (!is_allowed(profile, input.allowed_profiles)) continue;
      if (!offers_endpoint(profile, input.api, input.path)) continue;
      error.message += " Name the model '" + profile.name + "', which does.";
      break;
    }
    return error;
  }
  if (first_dropped(dropped, DropReason::not_allowed)) {
    error.kind = ApiErrorKind::model_not_allowed;
    error.message = "This key may use none of the models that this request could go to.";
    return error;
  }
  error.kind = ApiErrorKind::no_backend_available;
  error.message = "No profile can serve this request.";
  return error;
}

std::string_view name(DropReason reason) {
  constexpr std::array<std::string_view, 8> names{"none",          "window",     "threshold",
                                                  "endpoint",      "capability", "not_allowed",
                                                  "foreign_model", "no_fallback"};
  const auto index = static_cast<std::size_t>(reason);
  return index < names.size() ? names[index] : "none";
}

}  // namespace flashgate

#pragma once
// Where a request may go: ordered candidates, what was dropped and why, and one line of reason.
// `explain` and the data plane call the same function, so that explain can't lie. Same input, same
// answer: no clock, no dice, no state. Any thread.
#include <boost/system/result.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/api_error.hpp"
#include "routing/route_table.hpp"

namespace flashgate {

struct RouteInput {
  const RequestFacts* facts = nullptr;  // REQUIRES: not null
  std::string_view model{};             // as the client wrote it; empty: facts->model
  ApiKind api = ApiKind::other;
  std::string_view path{};
  std::string_view key_name{};
  const std::vector<std::string>* key_tags = nullptr;
  std::optional<TaskClass> explicit_task{};  // x-flashgate-task
  std::optional<TaskGuess> guess{};          // absent: the text is classified here
  const std::vector<HeaderField>* headers = nullptr;
  bool no_fallback = false;           // x-flashgate-no-fallback: the first candidate or an error
  std::string_view pinned_profile{};  // x-flashgate-profile of a key with may_pin: that one only
  std::function<double(std::size_t)> correction{};  // per profile, on the estimate; empty: 1
  std::vector<std::string> allowed_profiles{};      // empty: all
};

enum class DropReason {
  none,
  window,
  threshold,
  endpoint,
  capability,
  not_allowed,
  foreign_model,
  no_fallback
};
std::string_view name(DropReason reason);

struct Candidate {
  std::size_t profile = 0;
  std::int64_t input_tokens = 0;  // by this profile's tokenizer and correction
  DropReason dropped = DropReason::none;
  std::string why{};  // plain English
  std::int64_t max_tokens_cap =
      0;  // to send: the profile's cap, or what its window leaves; 0: none
};

inline constexpr std::size_t reason_bytes_max = 200;

struct RouteDecision {
  std::string rule{};    // a rule's name, or default, named, pinned, long_context
  std::string reason{};  // one line of printable ASCII, at most reason_bytes_max
  TaskClass task = TaskClass::chat;
  std::string_view task_why{};
  std::int64_t input_tokens = 0;        // as the first candidate counts
  std::vector<Candidate> candidates{};  // kept, in the order to try; never empty
  std::vector<Candidate> dropped{};
};

struct RouteRefusal {
  ApiError error{};
  std::vector<Candidate> dropped{};  // for explain
};

/// Errors: model_not_found with close matches, model_not_allowed, context_length_exceeded,
/// unknown_path (no profile offers the endpoint), invalid_request (no profile has the capability).
boost::system::result<RouteDecision, ApiError> route(const RouteTable& table,
                                                     const RouteInput& input);
/// The same, with the dropped candidates of a refusal. Exactly one of the two is meaningful.
struct Explanation {
  std::optional<RouteDecision> decision{};
  RouteRefusal refusal{};
};
Explanation explain_route(const RouteTable& table, const RouteInput& input);

/// 18231 -> "18,231".
std::string with_commas(std::int64_t n);

}  // namespace flashgate

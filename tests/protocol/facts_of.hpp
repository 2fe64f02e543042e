#pragma once
// Request facts of a JSON text, from a heap block of its own with the padding that is required.
#include <string>
#include <string_view>

#include "protocol/padded_body.hpp"
#include "protocol/request_facts.hpp"

namespace flashgate {

inline boost::system::result<RequestFacts, ApiError> facts_result(
    std::string_view json, ApiKind api = ApiKind::chat, const FactsOptions& options = {}) {
  const BodyBuffer body(json);
  return read_request_facts(api, body.view(), options);
}

/// REQUIRES: accepted; throws what it was refused for otherwise.
inline RequestFacts facts_of(std::string_view json, ApiKind api = ApiKind::chat,
                             const FactsOptions& options = {}) {
  return facts_result(json, api, options).value();
}

/// `param: message` of the refusal; empty: accepted.
inline std::string refusal_of(std::string_view json, ApiKind api = ApiKind::chat) {
  const auto result = facts_result(json, api);
  return result ? std::string() : result.error().param + ": " + result.error().message;
}

}  // namespace flashgate

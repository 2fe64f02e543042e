#pragma once
// What the gateway needs to know of a whole (not streamed) reply, and the one shape in which a
// backend's error leaves us. Any bytes, bounded, linear, no exceptions. Pure, any thread.
#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/api_kind.hpp"
#include "protocol/token_usage.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

struct ReplyFacts {
  bool is_json = false;  // a JSON object or array, every token valid
  bool has_error = false;
  std::string error_message{};  // at most 2 KiB, as the backend wrote it: mask before showing
  std::string error_code{};
  std::string error_type{};
  int error_status = 0;  // the HTTP status that the error stands for; 0: unknown
  bool has_choices = false;
  bool empty = false;  // an answer that answers nothing: no text, no tool call, no data
  bool tool_calls = false;
  std::string finish_reason{};
  TokenUsage usage{};
  std::string response_id{};
  std::size_t output_text_bytes = 0;
  double output_tokens_estimate = 0;
};

ReplyFacts read_reply_facts(ApiKind api, std::string_view body, TokenizerFamily family);

/// {"error":{"message","type","param","code"}} from whatever a backend said: OpenAI's shape,
/// {"detail"}, {"object":"error"}, {"error":"text"}, validation lists, HTML, plain text, nothing.
/// Keys, bearer tokens and internal addresses are masked; the message is at most 2 KiB.
std::string normalize_error_body(int status, std::string_view body);
/// Replaces keys, bearer tokens, addresses with a port and internal hosts and URLs.
std::string mask_secrets(std::string_view message);

}  // namespace flashgate

#pragma once
// The top-level keys of a request that we act on; each may stand once. Internal to request_facts.
#include <array>
#include <string_view>

namespace flashgate {

enum class RequestKey {
  model,
  stream,
  stream_options,
  max_tokens,
  max_completion_tokens,
  max_output_tokens,
  messages,
  input,
  prompt,
  system,
  instructions,
  tools,
  functions,
  response_format,
  text,
  n,
  user,
  metadata,
  prompt_cache_key,
  previous_response_id,
  store,
  unknown,
};

/// In the order of the enumeration.
inline constexpr std::array<std::string_view, 21> request_key_names = {"model",
                                                                       "stream",
                                                                       "stream_options",
                                                                       "max_tokens",
                                                                       "max_completion_tokens",
                                                                       "max_output_tokens",
                                                                       "messages",
                                                                       "input",
                                                                       "prompt",
                                                                       "system",
                                                                       "instructions",
                                                                       "tools",
                                                                       "functions",
                                                                       "response_format",
                                                                       "text",
                                                                       "n",
                                                                       "user",
                                                                       "metadata",
                                                                       "prompt_cache_key",
                                                                       "previous_response_id",
                                                                       "store"};

}  // namespace flashgate

#pragma once
// What the gateway needs to know of a JSON request, read in one pass without building a document.
// Every token is validated (RFC 8259), so a body that passes is valid JSON for any backend, yet
// numbers and escapes are never converted: 2^64, 1e400 and "\ud83d" pass byte for byte.
// Linear time, bounded stack, no exceptions. Pure, any thread.
#include <array>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "protocol/api_error.hpp"
#include "protocol/api_kind.hpp"

namespace flashgate {

/// Offsets into the body; an empty range means that the thing is not there.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin == end; }
  std::size_t size() const { return end - begin; }
};

enum class ResponseFormat { none, text, json_object, json_schema };

struct RequestFacts {
  ApiKind api = ApiKind::other;
  bool has_model = false;
  std::string model{};
  ByteRange model_range{};  // the raw JSON value, quotes included
  bool stream = false;
  bool include_usage = false;        // as the client asked
  ByteRange stream_options_range{};  // the raw value, braces included, or null
  bool stream_options_is_object = false;
  bool stream_options_is_null = false;
  bool stream_options_empty = false;  // an object without members
  ByteRange include_usage_range{};    // the raw value inside stream_options
  /// The larger of the given limits; negative as given. Absent: neither was given.
  std::optional<std::int64_t> max_tokens{};
  std::optional<std::int64_t> max_tokens_given{};
  std::optional<std::int64_t> max_completion_tokens_given{};
  ByteRange max_tokens_range{};
  ByteRange max_completion_tokens_range{};  // also max_output_tokens
  std::size_t object_begin = 0;             // just after the first '{', for insertions
  bool object_empty = false;
  int choices = 1;
  int turns = 0;  // user messages
  bool tools = false;
  bool images = false;
  ResponseFormat response_format = ResponseFormat::none;
  /// Per TokenizerFamily that was asked for: text, tools, schema, 4 per message, images.
  std::array<double, 5> input_tokens{};
  std::array<double, 5> system_tokens{};
  std::string system_text{};  // decoded; head and tail, at most text_bytes_max
  std::string last_user_text{};
  std::string user{};
  std::string prompt_cache_key{};
  /// Stable over processes and machines: system and first user message. 0: none.
  std::uint64_t conversation_hash = 0;
  bool has_foreign_state = false;  // tool call ids, reasoning items, previous_response_id …
  bool store = false;

  static constexpr std::size_t text_bytes_max = 16 * 1024;
  static constexpr std::size_t name_bytes_max = 256;    // user, prompt_cache_key
  static constexpr std::size_t model_bytes_max = 1024;  // longer is refused
};

struct FactsOptions {
  unsigned families = 1U << 0;  // bit mask of TokenizerFamily
  std::size_t depth_max = 512;
};

/// Refusals are 400 with a fixed message that quotes nothing of the input.
boost::system::result<RequestFacts, ApiError> read_request_facts(ApiKind api, std::string_view body,
                                                                 const FactsOptions& options);

[[noreturn]] inline void throw_exception_from_error(const ApiError& error,
                                                    const boost::source_location&) {
  throw std::logic_error(error.message);
}

}  // namespace flashgate

#include "protocol/request_facts.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "protocol/json_cursor.hpp"
#include "protocol/prompt_walk.hpp"
#include "protocol/request_keys.hpp"

namespace flashgate {
namespace {

constexpr std::string_view bad_json =
    "the request body is not valid JSON; send one JSON object in UTF-8 (RFC 8259)";

constexpr std::string_view too_deep = "the request body is nested too deeply";

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

class FactsReader {
 public:
  FactsReader(ApiKind api, std::string_view body, const FactsOptions& options)
      : json_(body, options.depth_max), prompt_(json_, body, options.families, facts_) {
    facts_.api = api;
  }

  boost::system::result<RequestFacts, ApiError> read() {
    if (json_.type() != JsonType::object) {
      json_.skip();
      const bool valid = !json_.failed() && json_.at_end();
      if (json_.too_deep()) return refusal(too_deep);
      return refusal(valid ? "the request body must be a JSON object" : bad_json);
    }
    json_.begin_object();
    facts_.object_begin = json_.offset_here();
    JsonString key;
    std::size_t members = 0;
    while (json_.next_member(key)) {
      ++members;
      if (!read_member(identify(key))) break;
    }
    facts_.object_empty = members == 0;
    if (!refused_.empty()) return refusal(refused_, param_);
    if (json_.too_deep()) return refusal(too_deep);
    if (!json_.at_end()) return refusal(bad_json);
    if (!facts_.has_model) return refusal("model is missing; name a model or \"auto\"", "model");
    settle();
    return std::move(facts_);
  }

 private:
  static ApiError refusal(std::string_view message, std::string_view param = {}) {
    ApiError error;
    error.kind = ApiErrorKind::invalid_request;
    error.message = message;
    error.param = param;
    return error;
  }

  bool refuse(std::string_view message, std::string_view param) {
    refused_ = message;
    param_ = param;
    return false;
  }

  RequestKey identify(JsonString key) {
    std::string decoded;
    std::string_view name = key.raw;
    if (key.escaped) {
      append_decoded(decoded, key, RequestFacts::name_bytes_max);
      name = decoded;
    }
    const auto* const found = std::find(request_key_names.begin(), request_key_names.end(), name);
    if (found != request_key_names.end())
      return static_cast<RequestKey>(found - request_key_names.begin());
    // Some backends match keys without regard to case, and would take this one for the model.
    if (equals_ignoring_case(name, "model"))
      refuse("a key differs from model only in case", "model");
    return RequestKey::unknown;
  }

  bool read_member(RequestKey key) {
    if (!refused_.empty()) return false;
    if (key == RequestKey::unknown) {
      json_.skip();
      return true;
    }
    const unsigned bit = 1U << static_cast<unsigned>(key);
    // Readers disagree on which of two equal keys counts; we would route by the one and the
    // backend act on the other.
    if ((seen_ & bit) != 0) {
      return refuse("the request body has a key twice",
                    request_key_names[static_cast<std::size_t>(key)]);
    }
    seen_ |= bit;
    return read_value(key);
  }

  bool read_value(RequestKey key) {
    switch (key) {
      case RequestKey::model:
        return read_model();
      case RequestKey::stream:
        return read_stream();
      case RequestKey::stream_options:
        return read_stream_options();
      case RequestKey::max_tokens:
        return read_limit("max_tokens", facts_.max_tokens_given, facts_.max_tokens_range);
      case RequestKey::max_completion_tokens:
      case RequestKey::max_output_tokens:
        return read_completion_limit(key);
      case RequestKey::messages:
      case RequestKey::input:
      case RequestKey::prompt:
        prompt_.walk_conversation();
        return true;
      case RequestKey::system:
      case RequestKey::instructions:
        prompt_.walk_system();
        return true;
      case RequestKey::tools:
      case RequestKey::functions:
        return read_tools();
      case RequestKey::response_format:
        return read_format();
      case RequestKey::text:
        return read_text_options();
      default:
        return read_small(key);
    }
  }

  bool read_small(RequestKey key) {
    switch (key) {
      case RequestKey::n:
        if (json_.type() == JsonType::number) {
          facts_.choices = static_cast<int>(
              std::clamp<std::int64_t>(json_integer(json_.number()), 1, choices_max));
          return true;
        }
        break;
      case RequestKey::user:
        read_name(facts_.user);
        return true;
      case RequestKey::prompt_cache_key:
        read_name(facts_.prompt_cache_key);
        return true;
      case RequestKey::metadata:
        read_metadata();
        return true;
      case RequestKey::previous_response_id:
        facts_.has_foreign_state |= json_.type() != JsonType::null;
        break;
      case RequestKey::store:
        if (json_.type() == JsonType::boolean) {
          facts_.store = json_.boolean();
          return true;
        }
        break;
      default:
        break;
    }
    json_.skip();
    return true;
  }

  ByteRange range_of(std::size_t begin) { return {begin, json_.offset_here()}; }

  bool read_model() {
    if (json_.type() != JsonType::string) return refuse("model must be a string", "model");
    const std::size_t begin = json_.offset();
    const JsonString value = json_.string();
    if (json_.failed()) return false;
    facts_.model_range = range_of(begin);
    if (!append_decoded(facts_.model, value, RequestFacts::model_bytes_max)) {
      return refuse("model is too long", "model");
    }
    if (facts_.model.empty()) return refuse("model is empty; name a model or \"auto\"", "model");
    facts_.has_model = true;
    return true;
  }

  bool read_stream() {
    if (json_.type() == JsonType::boolean) {
      facts_.stream = json_.boolean();
      return true;
    }
    if (json_.type() != JsonType::null) {
      return refuse("stream must be true, false or null", "stream");
    }
    json_.skip();
    return true;
  }

  bool read_stream_options() {
    const std::size_t begin = json_.offset();
    if (json_.type() != JsonType::object) {
      facts_.stream_options_is_null = json_.skip() == "null";
      facts_.stream_options_range = range_of(begin);
      return true;
    }
    facts_.stream_options_is_object = true;
    facts_.stream_options_empty = true;
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) {
      facts_.stream_options_empty = false;
      if (!json_equals(key, "include_usage")) {
        json_.skip();
        continue;
      }
      if (!facts_.include_usage_range.empty()) {
        return refuse("stream_options has include_usage twice", "stream_options");
      }
      const std::size_t value = json_.offset();
      facts_.include_usage = json_.skip() == "true";
      facts_.include_usage_range = range_of(value);
    }
    facts_.stream_options_range = range_of(begin);
    return true;
  }

  bool read_limit(std::string_view param, std::optional<std::int64_t>& given, ByteRange& range) {
    const std::size_t begin = json_.offset();
    if (json_.type() == JsonType::number) {
      const std::string_view number = json_.number();
      if (!json_.failed()) given = json_integer(number);
    } else if (json_.type() == JsonType::null) {
      json_.skip();
    } else {
      // A backend that takes "9999" for a number would evade the profile's cap.
      return json_.failed() || refuse("the token limit must be an integer or null", param);
    }
    range = range_of(begin);
    return true;
  }

  bool read_completion_limit(RequestKey key) {
    if (!facts_.max_completion_tokens_range.empty()) {
      return refuse("give max_completion_tokens or max_output_tokens, not both",
                    request_key_names[static_cast<std::size_t>(key)]);
    }
    return read_limit(request_key_names[static_cast<std::size_t>(key)],
                      facts_.max_completion_tokens_given, facts_.max_completion_tokens_range);
  }

  bool read_tools() {
    const bool list = json_.type() == JsonType::array;
    const std::size_t begin = json_.offset();
    prompt_.walk_raw();
    facts_.tools |= list && json_.offset_here() - begin > 4;
    return true;
  }

  /// {"type": …}; its schema becomes part of the prompt.
  bool read_format() {
    if (json_.type() != JsonType::object) {
      json_.skip();
      return true;
    }
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) {
      if (json_equals(key, "type") && json_.type() == JsonType::string) {
        const JsonString type = json_.string();
        if (type.raw == "text") facts_.response_format = ResponseFormat::text;
        if (type.raw == "json_object") facts_.response_format = ResponseFormat::json_object;
        if (type.raw == "json_schema") facts_.response_format = ResponseFormat::json_schema;
      } else if (json_equals(key, "json_schema") || json_equals(key, "schema")) {
        prompt_.walk_raw();
      } else {
        json_.skip();
      }
    }
    return true;
  }

  /// The Responses API keeps the format in text.format.
  bool read_text_options() {
    if (json_.type() != JsonType::object) {
      json_.skip();
      return true;
    }
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) {
      if (json_equals(key, "format")) {
        read_format();
      } else {
        json_.skip();
      }
    }
    return true;
  }

  void read_name(std::string& out) {
    if (json_.type() != JsonType::string) {
      json_.skip();
      return;
    }
    const JsonString value = json_.string();
    out.clear();
    append_decoded(out, value, RequestFacts::name_bytes_max);
  }

  /// The Messages API keeps the user in metadata.user_id.
  void read_metadata() {
    if (json_.type() != JsonType::object || facts_.api != ApiKind::messages) {
      json_.skip();
      return;
    }
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) {
      if (json_equals(key, "user_id")) {
        read_name(facts_.user);
      } else {
        json_.skip();
      }
    }
  }

  void settle() {
    prompt_.finish();
    facts_.max_tokens = facts_.max_tokens_given;
    if (facts_.max_completion_tokens_given) {
      facts_.max_tokens = std::max(facts_.max_tokens.value_or(*facts_.max_completion_tokens_given),
                                   *facts_.max_completion_tokens_given);
    }
  }

  static constexpr std::int64_t choices_max = 1024;

  RequestFacts facts_{};
  JsonCursor json_;
  PromptWalk prompt_;
  unsigned seen_ = 0;
  std::string_view refused_{};
  std::string_view param_{};
};

}  // namespace

boost::system::result<RequestFacts, ApiError> read_request_facts(ApiKind api, std::string_view body,
                                                                 const FactsOptions& options) {
  if (!simdjson::validate_utf8(body.data(), body.size())) {
    ApiError error;
    error.kind = ApiErrorKind::invalid_request;
    error.message = "the request body is not valid UTF-8";
    return error;
  }
  return FactsReader(api, body, options).read();
}

}  // namespace flashgate

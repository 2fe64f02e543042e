#include "protocol/backend_report.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace flashgate {
namespace {

constexpr int nesting_max = 4;
constexpr std::int64_t tokens_max = 1'000'000'000'000;

// False: not a count; the value was taken all the same.
bool read_count(JsonCursor& json, std::int64_t& out) {
  if (json.type() != JsonType::number) {
    json.skip();
    return false;
  }
  const std::string_view number = json.number();
  if (json.failed()) return false;
  const std::int64_t value = json_integer(number);
  if (value < 0) return false;
  out = std::min(value, tokens_max);
  return true;
}

void read_detail(JsonCursor& json, std::string_view name, std::int64_t& out) {
  if (json.type() != JsonType::object) {
    json.skip();
    return;
  }
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (key.raw == name) {
      read_count(json, out);
    } else {
      json.skip();
    }
  }
}

void append_capped(std::string& out, JsonString text, std::size_t bytes_max) {
  if (out.size() < bytes_max) append_decoded(out, text, bytes_max - out.size());
}

// A string or a number as text.
void read_name(JsonCursor& json, std::string& out) {
  if (json.type() == JsonType::string) {
    const JsonString text = json.string();
    out.clear();
    append_capped(out, text, BackendError::name_bytes_max);
  } else if (json.type() == JsonType::number) {
    out = json.number().substr(0, BackendError::name_bytes_max);
  } else {
    json.skip();
  }
}

void read_validation_item(JsonCursor& json, std::string& message, int nesting) {
  std::string place;
  std::string text;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (key.raw == "loc" && json.type() == JsonType::array) {
      json.begin_array();
      while (json.next_element()) {
        std::string step;
        read_name(json, step);
        if (place.size() + step.size() > BackendError::name_bytes_max) continue;
        if (!place.empty() && !step.empty()) place += '.';
        place += step;
      }
    } else if (key.raw == "msg" || key.raw == "message" || key.raw == "detail" ||
               key.raw == "error") {
      read_error_message(json, text, nesting + 1);
    } else {
      json.skip();
    }
  }
  if (!place.empty() && !text.empty()) place += ": ";
  message += place;
  message += text;
}

}  // namespace

void read_usage(JsonCursor& json, TokenUsage& usage) {
  if (json.type() != JsonType::object) {
    json.skip();
    return;
  }
  std::int64_t beside_cache = -1;  // the Messages API counts cached tokens beside input_tokens
  std::int64_t cache_read = 0;
  std::int64_t cache_written = 0;
  bool any = false;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    const std::string_view name = key.raw;
    if (name == "prompt_tokens") {
      any |= read_count(json, usage.input);
    } else if (name == "input_tokens") {
      any |= read_count(json, beside_cache);
    } else if (name == "completion_tokens" || name == "output_tokens") {
      any |= read_count(json, usage.output);
    } else if (name == "prompt_tokens_details" || name == "input_tokens_details") {
      read_detail(json, "cached_tokens", usage.cached);
    } else if (name == "completion_tokens_details" || name == "output_tokens_details") {
      read_detail(json, "reasoning_tokens", usage.reasoning);
    } else if (name == "prompt_cache_hit_tokens") {
      read_count(json, usage.cached);
    } else if (name == "cache_read_input_tokens") {
      read_count(json, cache_read);
    } else if (name == "cache_creation_input_tokens") {
      read_count(json, cache_written);
    } else {
      json.skip();
    }
  }
  if (cache_read > 0) usage.cached = cache_read;
  if (beside_cache > 0 || (beside_cache == 0 && cache_read + cache_written > 0)) {
    usage.input = beside_cache + cache_read + cache_written;
  }
  usage.present |= any;
}

void read_error_message(JsonCursor& json, std::string& message, int nesting) {
  constexpr std::size_t bytes_max = BackendError::message_bytes_max;
  switch (json.type()) {
    case JsonType::string:
      append_capped(message, json.string(), bytes_max);
      return;
    case JsonType::array:
      if (nesting > nesting_max) break;
      json.begin_array();
      while (json.next_element()) {
        if (message.size() >= bytes_max) {
          json.skip();
          continue;
        }
        if (!message.empty()) message += "; ";
        read_error_message(json, message, nesting + 1);
      }
      break;
    case JsonType::object:
      if (nesting > nesting_max) {
        json.skip();
      } else {
        read_validation_item(json, message, nesting);
      }
      break;
    default:
      json.skip();
      return;
  }
  if (json.type() == JsonType::array && nesting > nesting_max) json.skip();
  if (message.size() > bytes_max) message.resize(bytes_max);
}

bool read_error_member(JsonCursor& json, std::string_view key, BackendError& error) {
  if (key == "message" || key == "detail" || key == "details" || key == "msg" ||
      key == "error_message") {
    if (error.message.empty()) {
      read_error_message(json, error.message);
    } else {
      json.skip();
    }
    return true;
  }
  if (key == "code") {
    read_name(json, error.code);
    return true;
  }
  if (key == "type") {
    read_name(json, error.type);
    return true;
  }
  if (key == "param") {
    read_name(json, error.param);
    return true;
  }
  if (key == "status" || key == "status_code") {
    std::string status;
    read_name(json, status);
    if (error.status == 0) error.status = error_status(status, {});
    if (error.type.empty() && error.status == 0) error.type = std::move(status);
    return true;
  }
  return false;
}

bool read_error(JsonCursor& json, BackendError& error) {
  bool any = false;
  switch (json.type()) {
    case JsonType::object: {
      json.begin_object();
      JsonString key;
      while (json.next_member(key)) {
        any = true;
        if (!read_error_member(json, key.raw, error)) json.skip();
      }
      break;
    }
    case JsonType::string: {
      const JsonString text = json.string();
      any = !text.raw.empty();
      if (error.message.empty()) {
        append_capped(error.message, text, BackendError::message_bytes_max);
      }
      break;
    }
    case JsonType::array: {
      const std::string_view raw = json.skip();
      any = raw.size() > 2;
      JsonCursor inner(raw);
      if (any && error.message.empty()) read_error_message(inner, error.message);
      break;
    }
    case JsonType::boolean:
      any = json.boolean();
      break;
    case JsonType::number:
      error.code = json.number().substr(0, BackendError::name_bytes_max);
      any = error.code != "0";
      if (!any) error.code.clear();
      break;
    default:
      json.skip();
  }
  if (any && error.status == 0) error.status = error_status(error.code, error.type);
  return any && !json.failed();
}

int error_status(std::string_view code, std::string_view type) {
  int number = 0;
  const auto [rest, failure] = std::from_chars(code.data(), code.data() + code.size(), number);
  if (failure == std::errc{} && rest == code.data() + code.size() && number >= 400 &&
      number < 600) {
    return number;
  }
  static constexpr std::pair<std::string_view, int> known[] = {
      {"rate_limit_exceeded", 429},
      {"insufficient_quota", 429},
      {"rate_limit_error", 429},
      {"RESOURCE_EXHAUSTED", 429},
      {"tokens", 429},
      {"requests", 429},
      {"context_length_exceeded", 400},
      {"invalid_request_error", 400},
      {"BadRequestError", 400},
      {"invalid_prompt", 400},
      {"invalid_api_key", 401},
      {"authentication_error", 401},
      {"permission_error", 403},
      {"model_not_found", 404},
      {"not_found_error", 404},
      {"NotFoundError", 404},
      {"request_too_large", 413},
      {"overloaded_error", 529},
      {"overloaded", 503},
      {"service_unavailable", 503},
      {"UNAVAILABLE", 503},
      {"timeout_error", 504},
      {"server_error", 500},
      {"api_error", 500},
      {"internal_error", 500},
      {"internal_server_error", 500},
      {"InternalServerError", 500},
      {"server_is_overloaded", 503},
  };
  for (const std::string_view name : {code, type}) {
    for (const auto& [text, status] : known) {
      if (name == text) return status;
    }
  }
  return 0;
}

}  // namespace flashgate

#include "protocol/stream_reader.hpp"

#include <algorithm>
#include <bit>

#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::size_t choices_max = 128;  // tracked one by one
constexpr std::size_t name_bytes_max = 256;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::string_view string_or_skip(JsonCursor& json) {
  if (json.type() == JsonType::string) return json.string().raw;
  json.skip();
  return {};
}

}  // namespace

SseKind StreamReader::read(std::string_view data, std::string_view name) {
  chunk_ = Chunk{};
  if (trimmed(data.substr(0, 16)) == "[DONE]" && trimmed(data).size() == 6) {
    facts_.done_seen = true;
    settle();
    return SseKind::done;
  }
  chunk_.is_json = walk(data);
  if (!chunk_.is_json) chunk_.null_usage = {};
  const SseKind kind = kind_of(name);
  if (kind == SseKind::error && error_.message.empty() && !chunk_.is_json) {
    facts_.error_message = data.substr(0, utf8_prefix(data, BackendError::message_bytes_max));
  }
  if (kind == SseKind::content) {
    facts_.content_seen = true;
    ++facts_.content_events;
  }
  facts_.tool_calls |= output_.tool_calls();
  facts_.output_text_bytes = output_.bytes();
  facts_.output_tokens_estimate = output_.tokens();
  return kind;
}

void StreamReader::settle() {
  output_.settle();
  facts_.output_tokens_estimate = output_.tokens();
}

// False: not one valid JSON object.
bool StreamReader::walk(std::string_view data) {
  JsonCursor json(data);
  if (json.type() != JsonType::object) return false;
  error_ = BackendError{};
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) walk_member(json, data, key);
  return json.at_end();
}

void StreamReader::walk_member(JsonCursor& json, std::string_view data, JsonString key) {
  const std::string_view name = key.raw;
  if (name == "id") {
    const std::string_view id = string_or_skip(json);
    if (facts_.response_id.empty()) facts_.response_id = id.substr(0, name_bytes_max);
  } else if (name == "object") {
    chunk_.object = string_or_skip(json);
  } else if (name == "choices") {
    walk_choices(json);
  } else if (name == "usage") {
    walk_usage(json, data);
  } else if (name == "error") {
    chunk_.error = read_error(json, error_);
  } else if (name == "type") {
    chunk_.type = string_or_skip(json);
  } else if (name == "delta") {
    chunk_.delta = json.skip();
  } else if (name == "message" && json.type() != JsonType::object) {
    read_error_member(json, name, error_);
  } else if (name == "response" || name == "message" || name == "content_block") {
    chunk_.nested = json.skip();
  } else if (name == "code" || name == "detail") {
    read_error_member(json, name, error_);
  } else {
    json.skip();
  }
}

void StreamReader::walk_usage(JsonCursor& json, std::string_view data) {
  if (json.type() != JsonType::null) {
    chunk_.usage = true;
    read_usage(json, facts_.usage);
    return;
  }
  const bool first = json.separator_offset() == json.key_offset();
  const std::size_t begin = json.separator_offset();
  json.skip();
  std::size_t end = json.offset_here();
  if (first && data.substr(json.offset(), 1) == ",") end = json.offset() + 1;
  chunk_.null_usage = {begin, end};
}

void StreamReader::walk_choices(JsonCursor& json) {
  chunk_.choices_key = true;
  if (json.type() != JsonType::array) {
    json.skip();
    return;
  }
  json.begin_array();
  for (std::size_t position = 0; json.next_element(); ++position) {
    if (json.type() == JsonType::object) {
      walk_choice(json, position);
    } else {
      json.skip();
    }
  }
}

void StreamReader::walk_choice(JsonCursor& json, std::size_t position) {
  chunk_.choices = true;
  std::size_t index = position;
  bool finish = false;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    const std::string_view name = key.raw;
    if (name == "index" && json.type() == JsonType::number) {
      const std::string_view number = json.number();
      if (json.failed()) return;
      index = static_cast<std::size_t>(std::max<std::int64_t>(json_integer(number), 0));
    } else if (name == "delta" || name == "text" || name == "message") {
      chunk_.content |= output_.add_value(json);
    } else if (name == "finish_reason") {
      finish = walk_finish(json);
    } else {
      json.skip();
    }
  }
  index = std::min(index, choices_max - 1);
  seen_[index / 64] |= std::uint64_t{1} << (index % 64);
  if (finish) end_choice(index);
  chunk_.finish |= finish;
}

bool StreamReader::walk_finish(JsonCursor& json) {
  const std::string_view reason = string_or_skip(json);
  if (reason.empty()) return false;
  facts_.finish_reason = reason.substr(0, name_bytes_max);
  return true;
}

void StreamReader::end_choice(std::size_t index) {
  ended_[index / 64] |= std::uint64_t{1} << (index % 64);
  const int ended = std::popcount(ended_[0]) + std::popcount(ended_[1]);
  facts_.finished = ended_ == seen_ && ended >= std::min(choices_, static_cast<int>(choices_max));
}

SseKind StreamReader::kind_of(std::string_view name) {
  if (is_error(name)) return take_error();
  if (!chunk_.is_json) return SseKind::other;
  if (chunk_.type.starts_with("response.")) return response_kind();
  if (!chunk_.type.empty() && !chunk_.choices_key) return message_kind();
  return chat_kind();
}

bool StreamReader::is_error(std::string_view name) const {
  if (name == "error") return true;
  if (!chunk_.is_json) return false;
  return chunk_.error || chunk_.object == "error" || chunk_.type == "error" ||
         chunk_.type == "response.failed";
}

SseKind StreamReader::take_error() {
  if (chunk_.type == "response.failed") walk_nested(true);
  if (error_.status == 0) error_.status = error_status(error_.code, error_.type);
  facts_.error_seen = true;
  facts_.error_message = error_.message;
  facts_.error_code = error_.code;
  facts_.error_type = error_.type;
  facts_.error_status = error_.status;
  return SseKind::error;
}

SseKind StreamReader::chat_kind() const {
  if (chunk_.content) return SseKind::content;
  if (chunk_.finish) return SseKind::finish;
  if (chunk_.choices) return SseKind::preamble;
  if (chunk_.usage) return SseKind::usage;
  const bool chunk = chunk_.object == "chat.completion.chunk" || chunk_.object == "text_completion";
  return chunk_.choices_key || chunk ? SseKind::preamble : SseKind::other;
}

// The object inside an event that carries the state of the whole answer.
void StreamReader::walk_nested(bool with_usage) {
  JsonCursor json(chunk_.nested);
  if (json.type() != JsonType::object) return;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (key.raw == "id") {
      const std::string_view id = string_or_skip(json);
      if (facts_.response_id.empty()) facts_.response_id = id.substr(0, name_bytes_max);
    } else if (key.raw == "usage" && with_usage) {
      read_usage(json, facts_.usage);
    } else if (key.raw == "error") {
      read_error(json, error_);
    } else if (key.raw == "status") {
      const std::string_view status = string_or_skip(json);
      if (facts_.finish_reason.empty()) facts_.finish_reason = status.substr(0, name_bytes_max);
    } else if (key.raw == "incomplete_details" && json.type() == JsonType::object) {
      json.begin_object();
      while (json.next_member(key)) {
        if (key.raw == "reason") {
          walk_finish(json);
        } else {
          json.skip();
        }
      }
    } else {
      json.skip();
    }
  }
}

bool StreamReader::add_delta(bool as_text) {
  if (!as_text) return chunk_.delta.size() > 2;
  JsonCursor json(chunk_.delta);
  return !chunk_.delta.empty() && output_.add_value(json);
}

SseKind StreamReader::response_kind() {
  const std::string_view type = chunk_.type;
  if (type.ends_with(".delta")) {
    facts_.tool_calls |= type.find("_call") != std::string_view::npos;
    const bool audio = type.find("audio.") != std::string_view::npos;
    return add_delta(!audio) ? SseKind::content : SseKind::preamble;
  }
  if (type == "response.completed" || type == "response.incomplete" ||
      type == "response.cancelled" || type == "response.done") {
    facts_.finish_reason.clear();
    walk_nested(true);
    facts_.done_seen = true;
    facts_.finished = true;
    settle();
    return SseKind::done;
  }
  if (type == "response.created") {
    walk_nested(false);
    facts_.finish_reason.clear();
    return SseKind::preamble;
  }
  // A whole item without deltas before it is content too.
  if (type == "response.output_item.done" && !facts_.content_seen) return SseKind::content;
  return SseKind::preamble;
}

SseKind StreamReader::message_kind() {
  const std::string_view type = chunk_.type;
  if (type == "ping") return SseKind::comment;
  if (type == "content_block_delta") return add_delta(true) ? SseKind::content : SseKind::preamble;
  if (type == "message_start") {
    walk_nested(true);
    return SseKind::preamble;
  }
  if (type == "content_block_start") {
    JsonCursor json(chunk_.nested);
    const bool content = !chunk_.nested.empty() && output_.add_value(json);
    return content ? SseKind::content : SseKind::preamble;
  }
  if (type == "content_block_stop") return SseKind::preamble;
  if (type == "message_delta") {
    JsonCursor json(chunk_.delta);
    if (json.type() != JsonType::object) return SseKind::preamble;
    json.begin_object();
    JsonString key;
    while (json.next_member(key)) {
      if (key.raw == "stop_reason") {
        facts_.finished |= walk_finish(json);
      } else {
        json.skip();
      }
    }
    return SseKind::finish;
  }
  if (type == "message_stop") {
    facts_.done_seen = true;
    settle();
    return SseKind::done;
  }
  return chat_kind();
}

}  // namespace flashgate

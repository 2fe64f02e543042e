#include "protocol/output_text.hpp"

#include <algorithm>

namespace flashgate {

void OutputText::add_plain(std::string_view text) {
  bytes_ += text.size();
  if (estimated_bytes_ >= exact_bytes_max) return;
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), piece_bytes - pending_.size());
    pending_.append(text.substr(0, size));
    text.remove_prefix(size);
    if (pending_.size() == piece_bytes) settle();
  }
}

void OutputText::add(JsonString text) {
  if (!text.escaped) {
    add_plain(text.raw);
    return;
  }
  decoded_.clear();
  append_decoded(decoded_, text);
  add_plain(decoded_);
  if (decoded_.capacity() > exact_bytes_max) decoded_ = {};
}

void OutputText::settle() {
  if (pending_.empty()) return;
  estimated_ += estimate_tokens(pending_, family_);
  estimated_bytes_ += pending_.size();
  pending_.clear();
}

double OutputText::tokens() const {
  constexpr double rate_guess = 0.3;
  const double rate =
      estimated_bytes_ > 0 ? estimated_ / static_cast<double>(estimated_bytes_) : rate_guess;
  return estimated_ + rate * static_cast<double>(bytes_ - std::min(bytes_, estimated_bytes_));
}

bool OutputText::add_value(JsonCursor& json, int nesting) {
  const JsonType type = json.type();
  if (type == JsonType::string) {
    const JsonString text = json.string();
    add(text);
    return !text.raw.empty();
  }
  bool content = false;
  if (nesting > nesting_max) {
    json.skip();
  } else if (type == JsonType::array) {
    json.begin_array();
    while (json.next_element()) content |= add_value(json, nesting + 1);
  } else if (type == JsonType::object) {
    json.begin_object();
    JsonString key;
    while (json.next_member(key)) content |= add_member(json, key, nesting);
  } else {
    json.skip();
  }
  return content;
}

bool OutputText::add_member(JsonCursor& json, JsonString key, int nesting) {
  const std::string_view name = key.raw;
  if (name == "content" || name == "text" || name == "reasoning_content" || name == "reasoning" ||
      name == "refusal" || name == "thinking" || name == "partial_json" || name == "summary") {
    return add_value(json, nesting + 1);
  }
  if (name == "tool_calls" || name == "function_call" || name == "function" ||
      name == "arguments" || name == "input") {
    return add_call(json, nesting);
  }
  if (name == "type" && json.type() == JsonType::string) {
    const std::string_view type = json.string().raw;
    const bool call = type == "tool_use" || type == "server_tool_use" || type.ends_with("_call");
    tool_calls_ |= call;
    return call;
  }
  if (name == "audio" || name == "reasoning_details" || name == "images") {
    return json.skip().size() > 4;  // more than null, [] or {}
  }
  json.skip();
  return false;
}

// Calls, and inside them arguments, which some backends send as an object and not as a string.
bool OutputText::add_call(JsonCursor& json, int nesting) {
  const JsonType type = json.type();
  if (type == JsonType::null) {
    json.skip();
    return false;
  }
  if (type == JsonType::array && nesting <= nesting_max) {
    bool any = false;
    json.begin_array();
    while (json.next_element()) {
      any = true;
      add_value(json, nesting + 1);
    }
    tool_calls_ |= any;
    return any;
  }
  tool_calls_ = true;
  if (type == JsonType::object && nesting <= nesting_max) {
    json.begin_object();
    JsonString key;
    bool known = false;
    bool any = false;
    while (json.next_member(key)) {
      any = true;
      if (key.raw == "arguments" && json.type() == JsonType::string) {
        add(json.string());
        known = true;
      } else {
        const std::string_view value = json.skip();
        if (!known) add({value, false});
      }
    }
    return any;
  }
  if (type == JsonType::string) {
    add(json.string());
  } else {
    json.skip();
  }
  return true;
}

}  // namespace flashgate

#include "protocol/reply_facts.hpp"

#include "protocol/backend_report.hpp"
#include "protocol/json_cursor.hpp"
#include "protocol/output_text.hpp"

namespace flashgate {
namespace {

constexpr std::size_t name_bytes_max = 256;

class ReplyReader {
 public:
  ReplyReader(ApiKind api, std::string_view body, TokenizerFamily family)
      : api_(api), body_(body), json_(body), output_(family) {}

  ReplyFacts read() {
    const JsonType type = json_.type();
    if (type == JsonType::object) {
      walk_object();
    } else if (type == JsonType::array) {
      walk_array();
    } else {
      json_.skip();
    }
    facts_.is_json = (type == JsonType::object || type == JsonType::array) && json_.at_end();
    settle();
    return std::move(facts_);
  }

 private:
  void walk_object() {
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) walk_member(key.raw);
  }

  // Some backends wrap their error object in a list.
  void walk_array() {
    json_.begin_array();
    for (bool first = true; json_.next_element(); first = false) {
      content_ = true;
      if (first && json_.type() == JsonType::object) {
        walk_object();
      } else {
        json_.skip();
      }
    }
  }

  void take_string(std::string& out) {
    if (json_.type() != JsonType::string) {
      json_.skip();
      return;
    }
    const JsonString text = json_.string();
    out.clear();
    append_decoded(out, text, name_bytes_max);
  }

  void walk_member(std::string_view key) {
    if (key == "error") {
      facts_.has_error |= read_error(json_, error_);
    } else if (key == "choices") {
      walk_choices();
    } else if (key == "usage") {
      read_usage(json_, facts_.usage);
    } else if (key == "id") {
      take_string(facts_.response_id);
    } else if (key == "object") {
      take_string(object_);
    } else if (key == "output" || key == "content" || key == "text") {
      content_ |= output_.add_value(json_);
    } else if (key == "data" || key == "results" || key == "embeddings") {
      content_ |= json_.skip().size() > 2;
    } else if (key == "stop_reason" || key == "status") {
      // Of the Messages and the Responses API; an error's status is a number.
      if (json_.type() == JsonType::string) {
        take_string(status_);
      } else {
        read_error_member(json_, key, error_);
      }
    } else if (key == "incomplete_details" && json_.type() == JsonType::object) {
      walk_incomplete();
    } else if (key == "message" || key == "detail" || key == "code" || key == "type") {
      has_detail_ |= key == "detail";
      read_error_member(json_, key, error_);
    } else {
      json_.skip();
    }
  }

  void walk_incomplete() {
    json_.begin_object();
    JsonString key;
    while (json_.next_member(key)) {
      if (key.raw == "reason") {
        take_string(facts_.finish_reason);
      } else {
        json_.skip();
      }
    }
  }

  void walk_choices() {
    if (json_.type() != JsonType::array) {
      json_.skip();
      return;
    }
    json_.begin_array();
    while (json_.next_element()) {
      facts_.has_choices = true;
      if (json_.type() != JsonType::object) {
        json_.skip();
        continue;
      }
      json_.begin_object();
      JsonString key;
      while (json_.next_member(key)) {
        if (key.raw == "message" || key.raw == "text" || key.raw == "delta") {
          content_ |= output_.add_value(json_);
        } else if (key.raw == "finish_reason") {
          take_string(facts_.finish_reason);
        } else {
          json_.skip();
        }
      }
    }
  }

  void settle() {
    output_.settle();
    facts_.output_text_bytes = output_.bytes();
    facts_.output_tokens_estimate = output_.tokens();
    facts_.tool_calls = output_.tool_calls();
    if (facts_.finish_reason.empty()) facts_.finish_reason = status_;
    if (!facts_.is_json) facts_.has_error = false;
    const bool error_shape = object_ == "error" || error_.type == "error" ||
                             (has_detail_ && !facts_.has_choices && !content_ && object_.empty());
    if (facts_.is_json && error_shape) facts_.has_error = true;
    if (facts_.has_error) {
      if (error_.status == 0) error_.status = error_status(error_.code, error_.type);
      facts_.error_message = error_.message;
      facts_.error_code = error_.code;
      facts_.error_type = error_.type;
      facts_.error_status = error_.status;
      return;
    }
    facts_.empty = is_empty();
  }

  bool is_empty() const {
    const bool blank = body_.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (blank) return true;
    if (!facts_.is_json || content_ || facts_.tool_calls) return false;
    switch (api_) {
      case ApiKind::chat:
      case ApiKind::completions:
      case ApiKind::embeddings:
      case ApiKind::responses:
      case ApiKind::messages:
        return true;
      default:
        return false;
    }
  }

  ApiKind api_;
  std::string_view body_;
  JsonCursor json_;
  OutputText output_;
  ReplyFacts facts_{};
  BackendError error_{};
  std::string object_{};
  std::string status_{};
  bool content_ = false;
  bool has_detail_ = false;
};

}  // namespace

ReplyFacts read_reply_facts(ApiKind api, std::string_view body, TokenizerFamily family) {
  return ReplyReader(api, body, family).read();
}

}  // namespace flashgate

#pragma once
// What the simulator reads in a request body: never throws on odd types, bounded on deep nesting.
// Pure, any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/schema_value.hpp"

namespace flashgate {

enum class SimApi {
  chat,
  completions,
  embeddings,
  responses,
  messages,
  count_tokens,
  rerank,
  moderations,
  transcriptions,
};

struct ToolOffer {
  std::string name{};
  Json schema{};
};

enum class ToolWish { automatic, none, required };
enum class AnswerShape { text, json_object, json_schema };

struct Prompt {
  std::string model{};
  bool stream = false;
  bool include_usage = false;
  int choices = 1;
  std::optional<std::int64_t> max_tokens{};
  std::int64_t input_tokens = 0;
  std::string last_user{};
  std::vector<ToolOffer> tools{};
  ToolWish tool_wish = ToolWish::automatic;
  std::string tool_named{};  // the one the client insists on
  AnswerShape shape = AnswerShape::text;
  Json schema{};
  std::optional<std::string> tool_result{};     // the last message is the output of a tool
  std::optional<std::string> exact_answer{};    // top-level "sim_answer"
  std::optional<std::int64_t> answer_tokens{};  // top-level "sim_tokens"
  std::optional<std::string> fault{};           // top-level "sim_fault"
};

struct ReadBody {
  Json json{};        // an object
  std::string why{};  // not empty: refused
};

/// The body as JSON, nesting bounded first (the library's own recursion is not).
ReadBody read_json(std::string_view body);
/// REQUIRES: `body` is an object.
Prompt read_prompt(SimApi api, const Json& body);

/// Members of the wrong type count as absent.
std::string string_member(const Json& object, const char* key);
std::optional<std::int64_t> integer_member(const Json& object, const char* key);
/// A nested object, or an empty one.
const Json& object_member(const Json& object, const char* key);
/// Text of a `content`: a string, or the text parts of an array.
std::string content_text(const Json& content);

}  // namespace flashgate

#include "simulator/prompt.hpp"

#include <algorithm>

#include "simulator/pretend_text.hpp"

namespace flashgate {
namespace {

constexpr int depth_max = 512;
constexpr int choices_max = 16;
constexpr std::int64_t message_tokens = 4;  // role and separators
constexpr std::int64_t media_tokens = 256;  // an image or a sound, whatever its size
constexpr std::int64_t answer_tokens_max = 1'000'000;

bool too_deep(std::string_view body) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > depth_max) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

/// All strings below `value`; bare integers in arrays are token ids.
std::int64_t tokens_in(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.starts_with("data:") && text.size() > 64) return media_tokens;
    return static_cast<std::int64_t>(count_tokens(text));
  }
  std::int64_t sum = 0;
  if (value.is_array()) {
    for (const Json& item : value) sum += item.is_number() ? 1 : tokens_in(item);
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      if (key != "type" && key != "role" && key != "id" && key != "call_id") {
        sum += tokens_in(item);
      }
    }
  }
  return sum;
}

void read_tools(const Json& body, Prompt& out) {
  const auto tools = body.find("tools");
  if (tools != body.end() && tools->is_array()) {
    for (const Json& tool : *tools) {
      if (!tool.is_object()) continue;
      // Chat nests under "function"; Responses and Messages don't.
      const Json& nested = object_member(tool, "function");
      const Json& function = nested.empty() ? tool : nested;
      const Json& parameters = object_member(function, "parameters");
      ToolOffer offer{string_member(function, "name"),
                      parameters.empty() ? object_member(function, "input_schema") : parameters};
      if (!offer.name.empty()) out.tools.push_back(std::move(offer));
    }
  }
  const auto choice = body.find("tool_choice");
  if (choice == body.end()) return;
  if (choice->is_string()) {
    if (*choice == "none") out.tool_wish = ToolWish::none;
    if (*choice == "required" || *choice == "any") out.tool_wish = ToolWish::required;
  } else if (choice->is_object()) {
    const std::string type = string_member(*choice, "type");
    const std::string nested = string_member(object_member(*choice, "function"), "name");
    out.tool_named = nested.empty() ? string_member(*choice, "name") : nested;
    if (type == "none") out.tool_wish = ToolWish::none;
    if (type == "any" || type == "required" || !out.tool_named.empty()) {
      out.tool_wish = ToolWish::required;
    }
  }
}

void read_shape(const Json& body, Prompt& out) {
  const Json& direct = object_member(body, "response_format");
  const Json& format =
      direct.empty() ? object_member(object_member(body, "text"), "format") : direct;
  const std::string type = string_member(format, "type");
  if (type == "json_object") out.shape = AnswerShape::json_object;
  if (type != "json_schema") return;
  out.shape = AnswerShape::json_schema;
  const Json& nested = object_member(format, "json_schema");
  out.schema = object_member(nested.empty() ? format : nested, "schema");
}

/// The output of a tool in a content array of the Messages API.
std::optional<std::string> tool_result_part(const Json& content) {
  if (!content.is_array()) return std::nullopt;
  for (const Json& part : content) {
    if (part.is_object() && string_member(part, "type") == "tool_result") {
      const auto inner = part.find("content");
      return inner == part.end() ? std::string{} : content_text(*inner);
    }
  }
  return std::nullopt;
}

void read_turns(const Json& turns, Prompt& out) {
  if (turns.is_string()) {
    out.last_user = turns.get<std::string>();
    return;
  }
  if (!turns.is_array()) return;
  for (const Json& turn : turns) {
    if (turn.is_string()) out.last_user = turn.get<std::string>();
    if (!turn.is_object()) continue;
    out.input_tokens += message_tokens;
    out.tool_result.reset();
    const std::string role = string_member(turn, "role");
    const auto content = turn.find("content");
    if (role == "tool" || string_member(turn, "type") == "function_call_output") {
      const auto output = turn.find(role == "tool" ? "content" : "output");
      out.tool_result = output == turn.end() ? std::string{} : content_text(*output);
    } else if (role == "user" && content != turn.end()) {
      out.tool_result = tool_result_part(*content);
      if (!out.tool_result) out.last_user = content_text(*content);
    }
  }
}

}  // namespace

std::string string_member(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

std::optional<std::int64_t> integer_member(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  if (at->is_number_unsigned()) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(at->get<std::uint64_t>(), 1ull << 40));
  }
  return at->is_number_integer() ? std::optional(at->get<std::int64_t>()) : std::nullopt;
}

const Json& object_member(const Json& object, const char* key) {
  static const Json nothing = Json::object();
  const auto at = object.find(key);
  return at != object.end() && at->is_object() ? *at : nothing;
}

std::string content_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array()) return out;
  for (const Json& part : content) {
    if (part.is_string()) out += part.get<std::string>();
    if (part.is_object()) out += string_member(part, "text");
  }
  return out;
}

ReadBody read_json(std::string_view body) {
  if (too_deep(body)) return {Json{}, "the body is nested too deeply"};
  Json out = Json::parse(body.begin(), body.end(), nullptr, false);
  if (out.is_discarded()) return {Json{}, "the body is not valid JSON"};
  if (!out.is_object()) return {Json{}, "the body is not a JSON object"};
  return {std::move(out), {}};
}

Prompt read_prompt(SimApi api, const Json& body) {
  Prompt out;
  out.model = string_member(body, "model");
  const auto stream = body.find("stream");
  out.stream = stream != body.end() && stream->is_boolean() && stream->get<bool>();
  const Json& options = object_member(body, "stream_options");
  const auto usage = options.find("include_usage");
  out.include_usage = usage != options.end() && *usage == true;
  const std::int64_t choices = integer_member(body, "n").value_or(1);
  out.choices = static_cast<int>(std::clamp<std::int64_t>(choices, 1, choices_max));
  for (const char* const key : {"max_output_tokens", "max_tokens", "max_completion_tokens"}) {
    const auto most = integer_member(body, key);
    if (most) out.max_tokens = std::clamp<std::int64_t>(*most, 0, answer_tokens_max);
  }
  for (const char* const key :
       {"messages", "input", "prompt", "system", "instructions", "tools", "query", "documents"}) {
    const auto part = body.find(key);
    if (part != body.end()) out.input_tokens += tokens_in(*part);
  }
  const char* const turns_key = api == SimApi::completions ? "prompt"
                                : api == SimApi::responses || api == SimApi::embeddings
                                    ? "input"
                                    : "messages";
  const auto turns = body.find(turns_key);
  if (turns != body.end()) read_turns(*turns, out);
  read_tools(body, out);
  read_shape(body, out);
  const auto exact = body.find("sim_answer");
  if (exact != body.end() && exact->is_string()) out.exact_answer = exact->get<std::string>();
  if (const auto tokens = integer_member(body, "sim_tokens")) {
    out.answer_tokens = std::clamp<std::int64_t>(*tokens, 0, answer_tokens_max);
  }
  const auto fault = body.find("sim_fault");
  if (fault != body.end() && fault->is_string()) out.fault = fault->get<std::string>();
  return out;
}

}  // namespace flashgate

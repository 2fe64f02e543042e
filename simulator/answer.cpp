// What the simulated model says: text, a tool call or JSON, and how fast.
#include <algorithm>
#include <cctype>

#include "simulator/pretend_text.hpp"
#include "simulator/reply.hpp"

namespace flashgate {
namespace {

constexpr std::size_t tool_word_bytes_min = 4;
constexpr std::size_t tool_result_bytes_max = 200;

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// A word of the tool's name is in the text, or the text asks for tools outright.
bool asks_for(const std::string& text, const ToolOffer& tool) {
  if (text.find("use the tool") != std::string::npos) return true;
  if (text.find("工具") != std::string::npos) return true;
  const std::string words = lowered(tool.name);
  std::size_t begin = 0;
  while (begin < words.size()) {
    const std::size_t end = std::min(words.find_first_of("_-.", begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    if (word.size() >= tool_word_bytes_min && text.find(word) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

const ToolOffer* tool_to_call(const Prompt& prompt) {
  if (prompt.tools.empty() || prompt.tool_wish == ToolWish::none) return nullptr;
  if (!prompt.tool_named.empty()) {
    for (const ToolOffer& tool : prompt.tools) {
      if (tool.name == prompt.tool_named) return &tool;
    }
  }
  if (prompt.tool_wish == ToolWish::required) return &prompt.tools.front();
  if (prompt.tool_result) return nullptr;
  const std::string text = lowered(prompt.last_user);
  for (const ToolOffer& tool : prompt.tools) {
    if (asks_for(text, tool)) return &tool;
  }
  return nullptr;
}

std::string answer_text(const Prompt& prompt, const SimulatorOptions& options, std::uint64_t seed) {
  if (prompt.exact_answer) return *prompt.exact_answer;
  if (prompt.shape == AnswerShape::json_schema) {
    return dump(value_for_schema(prompt.schema, hash_text(prompt.last_user, seed)));
  }
  if (prompt.shape == AnswerShape::json_object) {
    Json value = Json::object();
    value["answer"] = pretend_answer(prompt.last_user, seed, 8);
    value["score"] = hash_text(prompt.last_user, seed) % 100;
    return dump(value);
  }
  std::string out;
  if (prompt.tool_result) {
    const std::string_view result = *prompt.tool_result;
    out = "The tool says: " + std::string(result.substr(0, tool_result_bytes_max)) + " ";
  }
  const std::int64_t wanted = prompt.answer_tokens.value_or(std::max(options.answer_tokens, 0));
  return out + pretend_answer(prompt.last_user, seed, static_cast<std::size_t>(wanted));
}

}  // namespace

std::string Answer::text() const {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

Duration Pace::first(std::int64_t input_tokens) {
  const double thousands = static_cast<double>(input_tokens) / 1000;
  const double median = static_cast<double>(timing_.ttft.count()) +
                        static_cast<double>(timing_.ttft_per_1k_input_tokens.count()) * thousands;
  return Duration(static_cast<Duration::rep>(median * dice_.around_one(timing_.ttft_spread)));
}

Duration Pace::next(std::size_t tokens) {
  double sum = 0;
  for (std::size_t i = 0; i < tokens; ++i) {
    sum += static_cast<double>(timing_.inter_token.count()) *
           dice_.around_one(timing_.inter_token_spread);
  }
  return Duration(static_cast<Duration::rep>(sum));
}

std::string ReplyContext::id(std::string_view prefix) const {
  static constexpr char digits[] = "0123456789abcdef";
  std::uint64_t bits = hash_text(options.name, options.seed + ordinal * 0x10001);
  std::string out(prefix);
  for (int i = 0; i < 16; ++i, bits >>= 4) out += digits[bits & 15];
  return out;
}

Answer make_answer(const Prompt& prompt, const ReplyContext& context, int choice) {
  Answer out;
  if (context.empty) return out;
  const std::uint64_t seed = context.options.seed + static_cast<std::uint64_t>(choice) * 7919;
  if (const ToolOffer* const tool = tool_to_call(prompt)) {
    out.tool = tool->name;
    out.finish = Finish::tool;
    out.tokens = split_tokens(dump(value_for_schema(tool->schema, hash_text(tool->name, seed))));
    if (tool->schema.empty()) out.tokens = split_tokens("{}");
  } else {
    out.tokens = split_tokens(answer_text(prompt, context.options, seed));
  }
  if (prompt.max_tokens && out.tokens.size() > static_cast<std::size_t>(*prompt.max_tokens)) {
    out.tokens.resize(static_cast<std::size_t>(*prompt.max_tokens));
    out.finish = Finish::length;
  }
  return out;
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace flashgate

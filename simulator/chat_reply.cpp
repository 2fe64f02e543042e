// Chat and text completions in the words of the OpenAI API, whole and as a stream.
#include <algorithm>

#include "base/json_text.hpp"
#include "simulator/reply.hpp"

namespace flashgate {
namespace {

std::string_view finish_word(Finish finish) {
  if (finish == Finish::tool) return "tool_calls";
  return finish == Finish::length ? "length" : "stop";
}

Json usage_of(std::int64_t input, std::int64_t output) {
  Json out = Json::object();
  out["prompt_tokens"] = input;
  out["completion_tokens"] = output;
  out["total_tokens"] = input + output;
  return out;
}

std::string event(const Json& value) {
  return "data: " + dump(value) + "\n\n";
}

/// The fields that every object of one answer shares.
struct Frame {
  bool chat = true;
  bool usage_null = false;
  std::string id{};
  std::string model{};
  std::int64_t created = 0;

  Json object(bool chunk) const {
    Json out = Json::object();
    out["id"] = id;
    out["object"] = !chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
    out["created"] = created;
    out["model"] = model;
    out["choices"] = Json::array();
    return out;
  }
  std::string chunk(int index, const Json& content, const Json& finish) const {
    Json out = object(true);
    Json choice = Json::object();
    choice["index"] = index;
    choice[chat ? "delta" : "text"] = content;
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish;
    out["choices"].push_back(std::move(choice));
    if (usage_null) out["usage"] = nullptr;
    return event(out);
  }
};

Json tool_call(const Answer& answer, const std::string& id, const std::string& arguments) {
  Json out = Json::object();
  out["id"] = id;
  out["type"] = "function";
  out["function"] = {{"name", answer.tool}, {"arguments", arguments}};
  return out;
}

Json tool_delta(Json call) {
  call["index"] = 0;
  return Json::object({{"tool_calls", Json::array({std::move(call)})}});
}

Json text_delta(const Frame& frame, const Answer& answer, std::string text) {
  if (!frame.chat) return text;
  if (answer.tool.empty()) return Json::object({{"content", std::move(text)}});
  return tool_delta(Json::object({{"function", {{"arguments", std::move(text)}}}}));
}

std::string joined(const std::vector<std::string>& tokens, std::size_t from, std::size_t count) {
  std::string out;
  for (std::size_t i = from; i < std::min(from + count, tokens.size()); ++i) out += tokens[i];
  return out;
}

void add_preamble(Reply& reply, const Frame& frame, const std::vector<Answer>& answers,
                  const std::string& call_id, Duration first) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const int index = static_cast<int>(i);
    Json role = Json::object({{"role", "assistant"}, {"content", ""}});
    if (!answers[i].tool.empty()) role["content"] = nullptr;
    reply.pieces.push_back(
        {frame.chunk(index, role, nullptr), i == 0 ? first : Duration{}, PieceKind::preamble});
    if (answers[i].tool.empty()) continue;
    const Json call = tool_delta(tool_call(answers[i], call_id, ""));
    reply.pieces.push_back({frame.chunk(index, call, nullptr), {}, PieceKind::content});
  }
}

/// A content chunk with a hole where its text goes: long answers have many of them.
struct ChunkMould {
  std::string before{};
  std::string after{};

  ChunkMould(const Frame& frame, const Answer& answer, int index) {
    static constexpr std::string_view hole = "\"#hole#\"";
    const Json delta = text_delta(frame, answer, "#hole#");
    const std::string whole = frame.chunk(index, delta, nullptr);
    // The last one: a model may have any name, but the choices come after it.
    const std::size_t at = whole.rfind(hole);
    before = whole.substr(0, at);
    after = whole.substr(at + hole.size());
  }
  std::string fill(std::string_view text) const {
    std::string out = before;
    append_json_string(out, text);
    return out + after;
  }
};

void add_stream(Reply& reply, const Frame& frame, const std::vector<Answer>& answers,
                const Prompt& prompt, const ReplyContext& context) {
  Pace pace(context.options.timing, hash_text("pace", context.options.seed + context.ordinal));
  Duration wait = pace.first(prompt.input_tokens);
  if (frame.chat) {
    add_preamble(reply, frame, answers, context.id("call_"), wait);
    wait = Duration{};
  }
  const auto step = static_cast<std::size_t>(std::max(1, context.options.timing.tokens_per_event));
  std::size_t longest = 0;
  std::vector<ChunkMould> moulds;
  for (const Answer& answer : answers) {
    longest = std::max(longest, answer.tokens.size());
    moulds.emplace_back(frame, answer, static_cast<int>(moulds.size()));
  }
  for (std::size_t at = 0; at < longest; at += step) {
    if (at > 0) wait = pace.next(step);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (at >= answers[i].tokens.size()) continue;
      std::string bytes = moulds[i].fill(joined(answers[i].tokens, at, step));
      reply.pieces.push_back({std::move(bytes), wait, PieceKind::content});
      wait = Duration{};
    }
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Json rest = frame.chat ? Json::object() : Json("");
    const Json word = finish_word(answers[i].finish);
    reply.pieces.push_back({frame.chunk(static_cast<int>(i), rest, word), wait, PieceKind::finish});
    wait = Duration{};
  }
  if (prompt.include_usage) {
    Json usage = frame.object(true);
    usage["usage"] = usage_of(reply.input_tokens, reply.output_tokens);
    reply.pieces.push_back({event(usage), {}, PieceKind::usage});
  }
  reply.pieces.push_back({"data: [DONE]\n\n", {}, PieceKind::done});
}

Json choice_of(const Frame& frame, const Answer& answer, int index, const std::string& call_id) {
  Json choice = Json::object();
  choice["index"] = index;
  if (frame.chat) {
    Json message = Json::object({{"role", "assistant"}, {"content", answer.text()}});
    if (!answer.tool.empty()) {
      message["content"] = nullptr;
      message["tool_calls"] = Json::array({tool_call(answer, call_id, answer.text())});
    }
    choice["message"] = std::move(message);
  } else {
    choice["text"] = answer.text();
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_word(answer.finish);
  return choice;
}

Duration whole_wait(const ReplyContext& context, std::int64_t input, std::size_t tokens) {
  Pace pace(context.options.timing, hash_text("pace", context.options.seed + context.ordinal));
  const Duration first = pace.first(input);
  return tokens > 1 ? first + pace.next(tokens - 1) : first;
}

Reply openai_reply(const Prompt& prompt, const ReplyContext& context, bool chat) {
  Reply reply;
  reply.api = chat ? SimApi::chat : SimApi::completions;
  const std::string& model = prompt.model.empty() ? context.options.model : prompt.model;
  const Frame frame{chat, context.usage_null, context.id(chat ? "chatcmpl-" : "cmpl-"), model,
                    context.unix_seconds};
  std::vector<Answer> answers;
  std::size_t longest = 0;
  reply.input_tokens = prompt.input_tokens;
  for (int i = 0; i < prompt.choices; ++i) {
    answers.push_back(make_answer(prompt, context, i));
    if (!chat) answers.back().tool.clear();
    longest = std::max(longest, answers.back().tokens.size());
    reply.output_tokens += static_cast<std::int64_t>(answers.back().tokens.size());
  }
  if (prompt.stream) {
    reply.stream = true;
    reply.content_type = "text/event-stream; charset=utf-8";
    add_stream(reply, frame, answers, prompt, context);
    return reply;
  }
  Json body = frame.object(false);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    body["choices"].push_back(
        choice_of(frame, answers[i], static_cast<int>(i), context.id("call_")));
  }
  body["usage"] = usage_of(reply.input_tokens, reply.output_tokens);
  reply.pieces.push_back({dump(body), whole_wait(context, prompt.input_tokens, longest)});
  return reply;
}

}  // namespace

Reply chat_reply(const Prompt& prompt, const ReplyContext& context) {
  return openai_reply(prompt, context, true);
}

Reply completions_reply(const Prompt& prompt, const ReplyContext& context) {
  return openai_reply(prompt, context, false);
}

}  // namespace flashgate

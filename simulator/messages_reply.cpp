// The Messages API of Anthropic, whole and as a stream.
#include <algorithm>

#include "simulator/reply.hpp"

namespace flashgate {
namespace {

std::string_view stop_word(Finish finish) {
  if (finish == Finish::tool) return "tool_use";
  return finish == Finish::length ? "max_tokens" : "end_turn";
}

std::string event(const Json& value) {
  return "event: " + string_member(value, "type") + "\ndata: " + dump(value) + "\n\n";
}

Json usage_of(std::int64_t input, std::int64_t output) {
  return Json::object({{"input_tokens", input}, {"output_tokens", output}});
}

Json message_of(const std::string& id, const std::string& model, const Json& content,
                const Json& stop, const Json& usage) {
  Json out = Json::object({{"id", id}, {"type", "message"}, {"role", "assistant"}});
  out["model"] = model;
  out["content"] = content;
  out["stop_reason"] = stop;
  out["stop_sequence"] = nullptr;
  out["usage"] = usage;
  return out;
}

Json block_of(const Answer& answer, const std::string& call_id, bool whole) {
  if (answer.tool.empty()) {
    return Json::object({{"type", "text"}, {"text", whole ? answer.text() : ""}});
  }
  Json out = Json::object({{"type", "tool_use"}, {"id", call_id}, {"name", answer.tool}});
  const Json input = Json::parse(answer.text(), nullptr, false);
  out["input"] = whole && input.is_object() ? input : Json::object();
  return out;
}

Json delta_event(const Answer& answer, std::string text) {
  Json delta = Json::object();
  delta["type"] = answer.tool.empty() ? "text_delta" : "input_json_delta";
  delta[answer.tool.empty() ? "text" : "partial_json"] = std::move(text);
  return Json::object({{"type", "content_block_delta"}, {"index", 0}, {"delta", delta}});
}

void add_block(Reply& reply, const Answer& answer, const ReplyContext& context, Pace& pace) {
  const Json start =
      Json::object({{"type", "content_block_start"},
                    {"index", 0},
                    {"content_block", block_of(answer, context.id("toolu_"), false)}});
  reply.pieces.push_back({event(start), {}, PieceKind::preamble});
  const Json ping = Json::object({{"type", "ping"}});
  reply.pieces.push_back({event(ping), {}, PieceKind::preamble});
  const auto step = static_cast<std::size_t>(std::max(1, context.options.timing.tokens_per_event));
  for (std::size_t at = 0; at < answer.tokens.size(); at += step) {
    std::string text;
    for (std::size_t i = at; i < std::min(at + step, answer.tokens.size()); ++i) {
      text += answer.tokens[i];
    }
    reply.pieces.push_back({event(delta_event(answer, std::move(text))),
                            at == 0 ? Duration{} : pace.next(step), PieceKind::content});
  }
  const Json stop = Json::object({{"type", "content_block_stop"}, {"index", 0}});
  reply.pieces.push_back({event(stop), {}, PieceKind::preamble});
}

}  // namespace

Reply messages_reply(const Prompt& prompt, const ReplyContext& context) {
  Reply reply;
  reply.api = SimApi::messages;
  const Answer answer = make_answer(prompt, context, 0);
  const std::string& model = prompt.model.empty() ? context.options.model : prompt.model;
  const std::string id = context.id("msg_");
  reply.input_tokens = prompt.input_tokens;
  reply.output_tokens = static_cast<std::int64_t>(answer.tokens.size());
  Pace pace(context.options.timing, hash_text("pace", context.options.seed + context.ordinal));
  const Duration first = pace.first(prompt.input_tokens);
  if (!prompt.stream) {
    Json content = Json::array();
    if (!context.empty) content.push_back(block_of(answer, context.id("toolu_"), true));
    const Json body = message_of(id, model, content, stop_word(answer.finish),
                                 usage_of(reply.input_tokens, reply.output_tokens));
    const std::size_t rest = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
    reply.pieces.push_back({dump(body), first + pace.next(rest), PieceKind::body});
    return reply;
  }
  reply.stream = true;
  reply.content_type = "text/event-stream; charset=utf-8";
  Json start = Json::object({{"type", "message_start"}});
  start["message"] = message_of(id, model, Json::array(), nullptr, usage_of(reply.input_tokens, 1));
  reply.pieces.push_back({event(start), first, PieceKind::preamble});
  if (!context.empty) add_block(reply, answer, context, pace);
  Json delta = Json::object({{"type", "message_delta"}});
  delta["delta"] = {{"stop_reason", stop_word(answer.finish)}, {"stop_sequence", nullptr}};
  delta["usage"] = {{"output_tokens", reply.output_tokens}};
  reply.pieces.push_back({event(delta), {}, PieceKind::finish});
  reply.pieces.push_back({event(Json::object({{"type", "message_stop"}})), {}, PieceKind::done});
  return reply;
}

}  // namespace flashgate

// The Responses API, whole and as a stream of named events.
#include <algorithm>

#include "simulator/reply.hpp"

namespace flashgate {
namespace {

/// The parts of one response object, filled in as the stream goes on.
struct Response {
  const Prompt& prompt;
  const ReplyContext& context;
  const Answer& answer;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;

  Json part(bool whole) const {
    Json out = Json::object({{"type", "output_text"}, {"text", whole ? answer.text() : ""}});
    out["annotations"] = Json::array();
    return out;
  }
  Json item(bool whole) const {
    const char* const status = whole ? "completed" : "in_progress";
    if (!answer.tool.empty()) {
      Json out = Json::object({{"type", "function_call"}, {"id", context.id("fc_")}});
      out["call_id"] = context.id("call_");
      out["name"] = answer.tool;
      out["arguments"] = whole ? answer.text() : "";
      out["status"] = status;
      return out;
    }
    Json out = Json::object({{"type", "message"}, {"id", context.id("msg_")}});
    out["status"] = status;
    out["role"] = "assistant";
    out["content"] = whole ? Json::array({part(true)}) : Json::array();
    return out;
  }
  Json object(bool whole) const {
    const bool cut = answer.finish == Finish::length;
    Json out = Json::object({{"id", context.id("resp_")}, {"object", "response"}});
    out["created_at"] = context.unix_seconds;
    out["status"] = !whole ? "in_progress" : cut ? "incomplete" : "completed";
    out["error"] = nullptr;
    out["incomplete_details"] =
        whole && cut ? Json::object({{"reason", "max_output_tokens"}}) : Json(nullptr);
    out["instructions"] = nullptr;
    out["metadata"] = Json::object();
    out["model"] = prompt.model.empty() ? context.options.model : prompt.model;
    out["output"] = Json::array();
    if (whole && !context.empty) out["output"].push_back(item(true));
    out["parallel_tool_calls"] = true;
    out["tool_choice"] = "auto";
    out["tools"] = Json::array();
    out["usage"] = nullptr;
    if (!whole) return out;
    Json usage = Json::object({{"input_tokens", input_tokens}});
    usage["input_tokens_details"] = {{"cached_tokens", 0}};
    usage["output_tokens"] = output_tokens;
    usage["output_tokens_details"] = {{"reasoning_tokens", 0}};
    usage["total_tokens"] = input_tokens + output_tokens;
    out["usage"] = std::move(usage);
    return out;
  }
};

class EventWriter {
 public:
  explicit EventWriter(Reply& reply) : reply_(reply) {}

  void add(std::string_view type, const Json& members, PieceKind kind, Duration wait = {}) {
    Json event = Json::object({{"type", type}, {"sequence_number", sequence_++}});
    event.update(members);
    std::string bytes = "event: " + std::string(type) + "\ndata: " + dump(event) + "\n\n";
    reply_.pieces.push_back({std::move(bytes), wait, kind});
  }

 private:
  Reply& reply_;
  int sequence_ = 0;
};

void add_output(EventWriter& events, const Response& response, Pace& pace) {
  const Answer& answer = response.answer;
  const bool text = answer.tool.empty();
  const Json item = response.item(false);
  events.add("response.output_item.added", Json::object({{"output_index", 0}, {"item", item}}),
             PieceKind::preamble);
  Json place = Json::object({{"item_id", item["id"]}, {"output_index", 0}});
  if (text) {
    place["content_index"] = 0;
    Json part = place;
    part["part"] = response.part(false);
    events.add("response.content_part.added", part, PieceKind::preamble);
  }
  const std::string stem = text ? "response.output_text" : "response.function_call_arguments";
  const int per_event = response.context.options.timing.tokens_per_event;
  const auto step = static_cast<std::size_t>(std::max(1, per_event));
  for (std::size_t at = 0; at < answer.tokens.size(); at += step) {
    std::string delta;
    for (std::size_t i = at; i < std::min(at + step, answer.tokens.size()); ++i) {
      delta += answer.tokens[i];
    }
    Json members = place;
    members["delta"] = std::move(delta);
    events.add(stem + ".delta", members, PieceKind::content,
               at == 0 ? Duration{} : pace.next(step));
  }
  Json done = place;
  done[text ? "text" : "arguments"] = answer.text();
  events.add(stem + ".done", done, PieceKind::preamble);
  if (text) {
    Json part = place;
    part["part"] = response.part(true);
    events.add("response.content_part.done", part, PieceKind::preamble);
  }
  events.add("response.output_item.done",
             Json::object({{"output_index", 0}, {"item", response.item(true)}}),
             PieceKind::preamble);
}

}  // namespace

Reply responses_reply(const Prompt& prompt, const ReplyContext& context) {
  Reply reply;
  reply.api = SimApi::responses;
  const Answer answer = make_answer(prompt, context, 0);
  reply.input_tokens = prompt.input_tokens;
  reply.output_tokens = static_cast<std::int64_t>(answer.tokens.size());
  const Response response{prompt, context, answer, reply.input_tokens, reply.output_tokens};
  Pace pace(context.options.timing, hash_text("pace", context.options.seed + context.ordinal));
  const Duration first = pace.first(prompt.input_tokens);
  if (!prompt.stream) {
    const std::size_t rest = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
    reply.pieces.push_back({dump(response.object(true)), first + pace.next(rest), PieceKind::body});
    return reply;
  }
  reply.stream = true;
  reply.content_type = "text/event-stream; charset=utf-8";
  EventWriter events(reply);
  const Json begun = Json::object({{"response", response.object(false)}});
  events.add("response.created", begun, PieceKind::preamble, first);
  events.add("response.in_progress", begun, PieceKind::preamble);
  if (!context.empty) add_output(events, response, pace);
  const bool cut = answer.finish == Finish::length;
  events.add(cut ? "response.incomplete" : "response.completed",
             Json::object({{"response", response.object(true)}}), PieceKind::finish);
  return reply;
}

}  // namespace flashgate

#include "simulator/respond.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "simulator/simulator.hpp"

namespace flashgate {
namespace {

struct Endpoint {
  std::string_view path;
  SimApi api;
};

constexpr std::array endpoints{
    Endpoint{"/chat/completions", SimApi::chat},
    Endpoint{"/completions", SimApi::completions},
    Endpoint{"/embeddings", SimApi::embeddings},
    Endpoint{"/responses", SimApi::responses},
    Endpoint{"/messages", SimApi::messages},
    Endpoint{"/messages/count_tokens", SimApi::count_tokens},
    Endpoint{"/rerank", SimApi::rerank},
    Endpoint{"/moderations", SimApi::moderations},
    Endpoint{"/audio/transcriptions", SimApi::transcriptions},
    Endpoint{"/audio/translations", SimApi::transcriptions},
};

/// The path without query and without /v1.
std::string_view api_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return path.starts_with("/v1/") ? path.substr(3) : path;
}

const Endpoint* find_endpoint(std::string_view path) {
  const auto at = std::find_if(endpoints.begin(), endpoints.end(),
                               [path](const Endpoint& row) { return row.path == path; });
  return at == endpoints.end() ? nullptr : &*at;
}

bool key_fits(const Incoming& request, const std::string& key) {
  if (key.empty()) return true;
  std::string_view bearer = field_value(request.head.fields, "authorization");
  if (bearer.size() > 7 && iequals(bearer.substr(0, 7), "Bearer ")) {
    if (bearer.substr(7) == key) return true;
  }
  return field_value(request.head.fields, "x-api-key") == key ||
         field_value(request.head.fields, "api-key") == key;
}

Reply text_reply(std::string_view type, std::string body) {
  Reply reply;
  reply.content_type = type;
  reply.pieces.push_back({std::move(body), {}, PieceKind::body});
  return reply;
}

Json model_object(const SimulatorOptions& options) {
  Json model = Json::object({{"id", options.model}, {"object", "model"}, {"created", 1700000000}});
  model["owned_by"] = options.name;
  if (options.context_length > 0) model["max_model_len"] = options.context_length;
  return model;
}

/// `POST /sim/faults`: the body is the new list of rules, as text.
Reply change_faults(const Incoming& request, Engine& engine) {
  auto rules = parse_fault_rules(request.body);
  if (rules.has_error()) {
    return error_reply(400, rules.error().message, "invalid_request_error", "bad_fault");
  }
  const std::size_t count = rules->size();
  engine.set_faults(std::move(*rules));
  return json_reply(SimApi::chat, Json::object({{"rules", count}}), {});
}

Json recorded_json(const Engine& engine) {
  Json list = Json::array();
  for (const RecordedRequest& request : engine.recorded()) {
    list.push_back(Json::object({{"head", request.head}, {"body", request.body}}));
  }
  return list;
}

/// Paths that are not the API proper: never counted, never broken by a rule.
std::optional<Reply> side_reply(const Incoming& request, std::string_view path,
                                const SimulatorOptions& options, Engine& engine, bool warm) {
  if (request.head.method == "POST" && path == "/sim/faults") return change_faults(request, engine);
  if (request.head.method != "GET" && request.head.method != "HEAD") return std::nullopt;
  if (path == "/health" || path == "/ping") {
    return warm ? json_reply(SimApi::chat, Json::object({{"status", "ok"}}), {})
                : error_reply(503, "Loading model", "unavailable_error", "loading");
  }
  if (path == "/metrics") return text_reply("text/plain; version=0.0.4", engine.metrics());
  if (path == "/sim/stats") return text_reply("application/json", stats_json(engine.stats()));
  if (path == "/sim/requests") return json_reply(SimApi::chat, recorded_json(engine), {});
  if (path != "/models" && path != "/models/" + options.model) return std::nullopt;
  if (!warm) return error_reply(503, "Loading model", "unavailable_error", "loading");
  if (!key_fits(request, options.api_key)) {
    return error_reply(401, "Incorrect API key provided.", "invalid_request_error",
                       "invalid_api_key");
  }
  if (path != "/models") return json_reply(SimApi::chat, model_object(options), {});
  const Json list =
      Json::object({{"object", "list"}, {"data", Json::array({model_object(options)})}});
  return json_reply(SimApi::chat, list, {});
}

/// What an engine refuses before it looks for a slot.
std::optional<Reply> refusal(const Prompt& prompt, const SimulatorOptions& options) {
  if (options.strict_model && prompt.model != options.model) {
    return error_reply(404, "The model `" + prompt.model + "` does not exist.",
                       "invalid_request_error", "model_not_found");
  }
  const std::int64_t wanted = prompt.input_tokens + prompt.max_tokens.value_or(0);
  if (options.context_length > 0 && wanted > options.context_length) {
    return error_reply(400,
                       "This model's maximum context length is " +
                           std::to_string(options.context_length) +
                           " tokens. However, you requested " + std::to_string(wanted) + " tokens.",
                       "invalid_request_error", "context_length_exceeded");
  }
  return std::nullopt;
}

Reply api_reply(SimApi api, const Prompt& prompt, const Json& body, const ReplyContext& context) {
  switch (api) {
    case SimApi::completions:
      return completions_reply(prompt, context);
    case SimApi::embeddings:
      return embeddings_reply(prompt, body, context);
    case SimApi::responses:
      return responses_reply(prompt, context);
    case SimApi::messages:
      return messages_reply(prompt, context);
    case SimApi::count_tokens:
      return json_reply(api, Json::object({{"input_tokens", prompt.input_tokens}}), {});
    case SimApi::rerank:
      return rerank_reply(prompt, body, context);
    case SimApi::moderations:
      return moderations_reply(prompt, body, context);
    case SimApi::transcriptions:
      return transcriptions_reply(context);
    case SimApi::chat:
      break;
  }
  return chat_reply(prompt, context);
}

/// The request's own fault, from header or body, instead of the simulator's rules.
Result<std::vector<FaultRule>> find_faults(const Incoming& request, const Prompt& prompt,
                                           const SimulatorOptions& options,
                                           const FaultFacts& facts) {
  std::string_view own = field_value(request.head.fields, "x-sim-fault");
  if (own.empty() && prompt.fault) own = *prompt.fault;
  if (own.empty()) {
    auto chosen = choose_faults(options.faults, facts, options.seed);
    std::erase_if(chosen, is_for_accept);
    return chosen;
  }
  const auto rules = parse_fault_rules(own);
  if (rules.has_error()) return rules.error();
  return choose_faults(*rules, facts, options.seed);
}

bool has(const std::vector<FaultRule>& faults, FaultKind kind) {
  return std::any_of(faults.begin(), faults.end(),
                     [kind](const FaultRule& rule) { return rule.kind == kind; });
}

bool usage_null_wanted(const std::vector<FaultRule>& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const FaultRule& rule) {
    return rule.kind == FaultKind::sse && rule.style == "usage_null";
  });
}

void answer_api(const Incoming& request, SimApi api, const SimulatorOptions& options,
                Engine& engine, Outgoing& out) {
  ReadBody read;
  if (api != SimApi::transcriptions) {
    read = read_json(request.body);
    if (!read.why.empty()) {
      out.reply = error_reply(400, read.why, "invalid_request_error", "invalid_json");
      return;
    }
  }
  const Prompt prompt = api == SimApi::transcriptions ? Prompt{} : read_prompt(api, read.json);
  FaultFacts facts{out.ordinal, 1, request.head.target, prompt.model, options.name, prompt.stream};
  facts.attempt = engine.count_attempt(request.body);
  auto faults = find_faults(request, prompt, options, facts);
  if (faults.has_error()) {
    out.reply = error_reply(400, faults.error().message, "invalid_request_error", "bad_fault");
    return;
  }
  out.faults = std::move(*faults);
  if (auto refused = refusal(prompt, options)) {
    out.reply = std::move(*refused);
    return;
  }
  const ReplyContext context{options, out.ordinal, request.unix_seconds,
                             has(out.faults, FaultKind::empty), usage_null_wanted(out.faults)};
  out.reply = api_reply(api, prompt, read.json, context);
}

}  // namespace

void respond(const Incoming& request, Engine& engine, Outgoing& out) {
  const Engine::Options options = engine.options();
  const std::string_view path = api_path(request.head.target);
  const bool warm = engine.warm(request.now);
  if (auto side = side_reply(request, path, *options, engine, warm)) {
    out.reply = std::move(*side);
    return;
  }
  out.ordinal = engine.begin_request();
  out.counted = true;
  const ReplyContext context{*options, out.ordinal, request.unix_seconds};
  out.request_id = context.id("req_");
  const Endpoint* const endpoint = find_endpoint(path);
  if (!warm) {
    out.reply = error_reply(503, "Loading model", "unavailable_error", "loading");
  } else if (!key_fits(request, options->api_key)) {
    out.reply =
        error_reply(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key");
  } else if (endpoint == nullptr) {
    out.reply = error_reply(404, "Not found", "invalid_request_error", "unknown_path");
  } else if (request.head.method != "POST") {
    out.reply = error_reply(405, "Method not allowed", "invalid_request_error", "wrong_method");
    out.reply.headers.emplace_back("allow", "POST");
  } else {
    answer_api(request, endpoint->api, *options, engine, out);
  }
}

}  // namespace flashgate

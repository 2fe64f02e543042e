#include "cli/explain.hpp"

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/files.hpp"
#include "config/load.hpp"
#include "gateway/endpoints.hpp"
#include "protocol/padded_body.hpp"
#include "routing/router.hpp"

namespace flashgate {
namespace {

using Json = nlohmann::ordered_json;

int usage(const std::string& message) {
  std::cerr << "flashgate explain: " << message << '\n';
  return 2;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<HeaderField> parse_header(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  return HeaderField{trimmed(text.substr(0, colon)), trimmed(text.substr(colon + 1))};
}

std::string_view value_of(const std::vector<HeaderField>& fields, const std::string& name) {
  for (const HeaderField& field : fields) {
    std::string lower(field.name);
    for (char& c : lower) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + ('a' - 'A')) : c;
    if (lower == name) return field.value;
  }
  return {};
}

/// What is shown, whichever way.
struct Story {
  const RouteTable& table;
  const RequestFacts& facts;
  std::string path{};
  std::optional<RouteDecision> decision{};
  std::optional<ApiError> refusal{};
  std::vector<Candidate> dropped{};
};

Json candidate_json(const RouteTable& table, const Candidate& candidate) {
  const RouteProfile& profile = table.profiles[candidate.profile];
  const bool kept = candidate.dropped == DropReason::none;
  Json out{{"profile", profile.name},
           {"model", profile.model},
           {"kept", kept},
           {"dropped", kept ? Json(nullptr) : Json(name(candidate.dropped))},
           {"why", candidate.why},
           {"input_tokens", candidate.input_tokens},
           {"context_length",
            profile.context_length == 0 ? Json(nullptr) : Json(profile.context_length)}};
  if (candidate.max_tokens_cap > 0) out["max_tokens_cap"] = candidate.max_tokens_cap;
  return out;
}

void print_json(const Story& story) {
  Json out{{"ok", story.decision.has_value()},
           {"path", story.path},
           {"model", story.facts.model},
           {"stream", story.facts.stream},
           {"turns", story.facts.turns}};
  Json candidates = Json::array();
  if (story.decision) {
    out["task"] = name(story.decision->task);
    out["task_why"] = story.decision->task_why;
    out["input_tokens"] = story.decision->input_tokens;
    out["rule"] = story.decision->rule;
    out["reason"] = story.decision->reason;
    for (const Candidate& kept : story.decision->candidates) {
      candidates.push_back(candidate_json(story.table, kept));
    }
  }
  for (const Candidate& dropped : story.dropped) {
    candidates.push_back(candidate_json(story.table, dropped));
  }
  out["candidates"] = candidates;
  if (story.refusal) {
    const ApiErrorRow& row = api_error_row(story.refusal->kind);
    out["error"] = {{"status", row.status},
                    {"code", row.code.empty() ? Json(nullptr) : Json(row.code)},
                    {"message", story.refusal->message}};
  }
  std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_candidate(const RouteTable& table, const Candidate& candidate, std::string_view mark) {
  const RouteProfile& profile = table.profiles[candidate.profile];
  std::cout << "  " << mark << ' ' << profile.name << " (" << profile.model << "), "
            << with_commas(candidate.input_tokens) << " input tokens";
  if (profile.context_length > 0) {
    std::cout << ", window " << with_commas(profile.context_length);
  }
  if (candidate.max_tokens_cap > 0) {
    std::cout << ", output capped at " << with_commas(candidate.max_tokens_cap);
  }
  if (candidate.dropped != DropReason::none) std::cout << "; dropped: " << name(candidate.dropped);
  if (!candidate.why.empty()) std::cout << "; " << candidate.why;
  std::cout << '\n';
}

void print_text(const Story& story) {
  std::cout << "request: " << story.path << ", model " << story.facts.model
            << (story.facts.stream ? ", streamed" : "") << '\n';
  if (story.decision) {
    std::cout << "task:    " << name(story.decision->task);
    if (!story.decision->task_why.empty()) std::cout << " (" << story.decision->task_why << ')';
    std::cout << "\nrule:    " << story.decision->rule << "\nreason:  " << story.decision->reason
              << "\ncandidates, in the order they are tried:\n";
    int number = 0;
    for (const Candidate& kept : story.decision->candidates) {
      print_candidate(story.table, kept, std::to_string(++number) + '.');
    }
  }
  if (story.refusal) {
    const ApiErrorRow& row = api_error_row(story.refusal->kind);
    std::cout << "refused: " << row.status << ' ' << row.code << ": " << story.refusal->message
              << '\n';
  }
  if (!story.dropped.empty()) std::cout << "dropped:\n";
  for (const Candidate& dropped : story.dropped) print_candidate(story.table, dropped, "-");
}

void tell(const Story& story, bool json) {
  if (json) {
    print_json(story);
  } else {
    print_text(story);
  }
}

std::optional<std::string> read_request(const std::string& source) {
  if (source == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  const auto text = read_file(source);
  if (text) return *text;
  std::cerr << "flashgate explain: " << text.error().message << '\n';
  return std::nullopt;
}

std::optional<Config> load(const std::string& flag) {
  const std::string file = find_config_file(flag, process_environment(), file_exists);
  if (file.empty()) {
    std::cerr << "flashgate explain: no configuration file found; name one with --config\n";
    return std::nullopt;
  }
  const auto text = read_file(file);
  if (!text) {
    std::cerr << "flashgate explain: " << text.error().message << '\n';
    return std::nullopt;
  }
  Loaded loaded = load_config(*text, file, process_environment(), read_file);
  if (!loaded.config) std::cerr << render(loaded.diagnostics, *text, false);
  return std::move(loaded.config);
}

}  // namespace

int run_explain(const ExplainCommand& command) {
  std::vector<HeaderField> fields;
  for (const std::string& text : command.headers) {
    const auto field = parse_header(text);
    if (!field) return usage("a header is written 'name: value'");
    fields.push_back(*field);
  }
  const NormalPath path = normalize_target(command.path);
  const Endpoint endpoint = find_endpoint(path.path);
  if (!path.ok || endpoint.kind != EndpointKind::proxy) {
    return usage("'" + command.path + "' is not a path that goes to a backend");
  }
  RouteInput input;
  input.api = endpoint.api;
  input.path = path.path;
  input.headers = &fields;
  if (const auto task = value_of(fields, "x-flashgate-task"); !task.empty()) {
    input.explicit_task = parse_task_class(task);
    if (!input.explicit_task) return usage("x-flashgate-task is not a task class");
  }
  const auto no_fallback = value_of(fields, "x-flashgate-no-fallback");
  input.no_fallback = no_fallback == "1" || no_fallback == "true";

  const auto config = load(command.config);
  if (!config) return 1;
  const auto request = read_request(command.request);
  if (!request) return 2;
  const BodyBuffer body{*request};
  FactsOptions options;
  options.families = token_families(config->routes);
  const auto facts = read_request_facts(endpoint.api, body.view(), options);
  if (!facts) {
    tell({config->routes, RequestFacts{}, path.path, {}, facts.error(), {}}, command.json);
    return 1;
  }
  input.facts = &*facts;
  input.model = facts->model;
  Explanation found = explain_route(config->routes, input);
  Story story{config->routes, *facts, path.path, std::move(found.decision), {}, {}};
  if (story.decision) {
    story.dropped = story.decision->dropped;
  } else {
    story.refusal = found.refusal.error;
    story.dropped = found.refusal.dropped;
  }
  tell(story, command.json);
  return story.decision ? 0 : 1;
}

}  // namespace flashgate

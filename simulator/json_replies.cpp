// The answers that are one JSON document: embeddings, rerank, moderations, transcriptions, errors.
#include <algorithm>
#include <cmath>

#include "simulator/pretend_text.hpp"
#include "simulator/reply.hpp"

namespace flashgate {
namespace {

constexpr std::size_t vector_size_default = 256;
constexpr std::int64_t vector_size_max = 4096;
constexpr std::size_t inputs_max = 4096;

/// Each token adds a direction of its own, so texts that share words are close to each other.
std::vector<double> unit_vector(const std::string& text, std::size_t size, std::uint64_t seed) {
  std::vector<double> out(size, 0.0);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t bytes = first_token_bytes(rest);
    std::string_view token = rest.substr(0, bytes);
    while (token.starts_with(' ')) token.remove_prefix(1);
    Dice dice(hash_text(token, seed));
    for (int i = 0; i < 8; ++i) out[dice.below(size)] += dice.unit() - 0.5;
    rest.remove_prefix(bytes);
  }
  double length = 0;
  for (const double x : out) length += x * x;
  if (length == 0) {
    out[0] = 1;
    return out;
  }
  for (double& x : out) x /= std::sqrt(length);
  return out;
}

/// Little-endian floats in base64, as "encoding_format":"base64" asks for.
std::string base64_floats(const std::vector<double>& values) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const double value : values) {
    const auto narrow = static_cast<float>(value);
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::vector<std::string> texts_of(const Json& body, const char* key) {
  const auto at = body.find(key);
  if (at == body.end()) return {};
  if (!at->is_array()) return {at->is_string() ? at->get<std::string>() : dump(*at)};
  std::vector<std::string> out;
  const bool one_list_of_ids = !at->empty() && at->front().is_number();
  if (one_list_of_ids) return {dump(*at)};
  for (const Json& item : *at) {
    if (out.size() == inputs_max) break;
    const std::string text = item.is_object() ? string_member(item, "text") : std::string{};
    out.push_back(item.is_string() ? item.get<std::string>() : !text.empty() ? text : dump(item));
  }
  return out;
}

Duration first_wait(const ReplyContext& context, std::int64_t input_tokens) {
  Pace pace(context.options.timing, hash_text("pace", context.options.seed + context.ordinal));
  return pace.first(input_tokens);
}

const std::string& model_of(const Prompt& prompt, const ReplyContext& context) {
  return prompt.model.empty() ? context.options.model : prompt.model;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Reply json_reply(SimApi api, const Json& body, Duration wait) {
  Reply reply;
  reply.api = api;
  reply.pieces.push_back({dump(body), wait, PieceKind::body});
  return reply;
}

Reply error_reply(int status, std::string_view message, std::string_view type,
                  std::string_view code) {
  Json error = Json::object({{"message", message}, {"type", type}, {"param", nullptr}});
  error["code"] = code;
  Reply reply = json_reply(SimApi::chat, Json::object({{"error", std::move(error)}}), {});
  reply.status = status;
  return reply;
}

Reply embeddings_reply(const Prompt& prompt, const Json& body, const ReplyContext& context) {
  const auto wanted = integer_member(body, "dimensions");
  const auto size =
      wanted ? static_cast<std::size_t>(std::clamp<std::int64_t>(*wanted, 1, vector_size_max))
             : vector_size_default;
  const bool base64 = string_member(body, "encoding_format") == "base64";
  Json data = Json::array();
  if (!context.empty) {
    for (const std::string& text : texts_of(body, "input")) {
      const auto vector = unit_vector(text, size, context.options.seed);
      Json item = Json::object({{"object", "embedding"}, {"index", data.size()}});
      item["embedding"] = base64 ? Json(base64_floats(vector)) : Json(vector);
      data.push_back(std::move(item));
    }
  }
  Json out = Json::object({{"object", "list"}, {"data", std::move(data)}});
  out["model"] = model_of(prompt, context);
  out["usage"] = {{"prompt_tokens", prompt.input_tokens}, {"total_tokens", prompt.input_tokens}};
  Reply reply = json_reply(SimApi::embeddings, out, first_wait(context, prompt.input_tokens));
  reply.input_tokens = prompt.input_tokens;
  return reply;
}

Reply rerank_reply(const Prompt& prompt, const Json& body, const ReplyContext& context) {
  const auto query =
      unit_vector(string_member(body, "query"), vector_size_default, context.options.seed);
  std::vector<Json> results;
  for (const std::string& text : texts_of(body, "documents")) {
    const auto vector = unit_vector(text, vector_size_default, context.options.seed);
    Json result = Json::object({{"index", results.size()}});
    result["relevance_score"] = (1 + dot(query, vector)) / 2;
    result["document"] = {{"text", text}};
    results.push_back(std::move(result));
  }
  std::stable_sort(results.begin(), results.end(), [](const Json& a, const Json& b) {
    return a["relevance_score"].get<double>() > b["relevance_score"].get<double>();
  });
  const std::int64_t top = integer_member(body, "top_n").value_or(inputs_max);
  if (top >= 0 && static_cast<std::size_t>(top) < results.size()) {
    results.resize(static_cast<std::size_t>(top));
  }
  Json out = Json::object({{"id", context.id("rerank-")}, {"model", model_of(prompt, context)}});
  out["results"] = results;
  out["usage"] = {{"total_tokens", prompt.input_tokens}};
  Reply reply = json_reply(SimApi::rerank, out, first_wait(context, prompt.input_tokens));
  reply.input_tokens = prompt.input_tokens;
  return reply;
}

Reply moderations_reply(const Prompt& prompt, const Json& body, const ReplyContext& context) {
  Json results = Json::array();
  for (const std::string& text : texts_of(body, "input")) {
    const bool flagged = text.find("sim_flag") != std::string::npos;
    Json result = Json::object({{"flagged", flagged}});
    result["categories"] = {{"harassment", flagged}, {"violence", false}};
    result["category_scores"] = {{"harassment", flagged ? 0.99 : 0.01}, {"violence", 0.01}};
    results.push_back(std::move(result));
  }
  Json out = Json::object({{"id", context.id("modr-")}, {"model", model_of(prompt, context)}});
  out["results"] = std::move(results);
  return json_reply(SimApi::moderations, out, first_wait(context, prompt.input_tokens));
}

Reply transcriptions_reply(const ReplyContext& context) {
  Json out = Json::object();
  out["text"] = context.empty ? "" : "This is the text of a simulated recording.";
  return json_reply(SimApi::transcriptions, out, first_wait(context, 0));
}

}  // namespace flashgate

// Faults that change what a reply says: error answers, missing parts, odd event streams.
#include <algorithm>

#include "simulator/gzip_writer.hpp"
#include "simulator/wire_script.hpp"

namespace flashgate {
namespace {

std::string message_or(const FaultRule& rule, std::string_view otherwise) {
  return rule.text.empty() ? std::string(otherwise) : rule.text;
}

Json openai_error(const FaultRule& rule, int status) {
  Json error = Json::object();
  error["message"] = message_or(rule, "The simulated backend failed.");
  error["type"] = status == 429   ? "rate_limit_error"
                  : status >= 500 ? "server_error"
                                  : "invalid_request_error";
  error["param"] = nullptr;
  error["code"] = rule.code.empty() ? Json(nullptr) : Json(rule.code);
  return Json::object({{"error", std::move(error)}});
}

Json anthropic_error(const FaultRule& rule, int status) {
  Json error = Json::object();
  error["type"] = !rule.code.empty() ? rule.code
                  : status == 429    ? "rate_limit_error"
                  : status == 529    ? "overloaded_error"
                                     : "api_error";
  error["message"] = message_or(rule, "The simulated backend failed.");
  return Json::object({{"type", "error"}, {"error", std::move(error)}});
}

void set_error_body(Reply& reply, const FaultRule& rule, std::string& body) {
  const std::string message = message_or(rule, "The simulated backend failed.");
  reply.content_type = "application/json";
  if (rule.style == "detail") {
    body = dump(Json::object({{"detail", message}}));
  } else if (rule.style == "object") {
    Json error = Json::object({{"object", "error"}, {"message", message}});
    error["type"] = rule.code.empty() ? "BadRequestError" : rule.code;
    error["code"] = rule.status;
    body = dump(error);
  } else if (rule.style == "string") {
    body = dump(Json::object({{"error", message}}));
  } else if (rule.style == "anthropic") {
    body = dump(anthropic_error(rule, rule.status));
  } else if (rule.style == "html") {
    reply.content_type = "text/html";
    body = "<html><head><title>" + std::to_string(rule.status) + "</title></head><body><h1>" +
           message + "</h1></body></html>\n";
  } else if (rule.style == "text") {
    reply.content_type = "text/plain; charset=utf-8";
    body = message;
  } else if (rule.style != "empty") {
    body = dump(openai_error(rule, rule.status));
  }
}

void set_status(Reply& reply, const FaultRule& rule) {
  std::string body;
  reply.status = rule.status;
  reply.stream = false;
  reply.output_tokens = 0;
  set_error_body(reply, rule, body);
  reply.headers.insert(reply.headers.end(), rule.headers.begin(), rule.headers.end());
  if (rule.kind == FaultKind::redirect) reply.headers.emplace_back("location", rule.text);
  // An engine that refuses does so before it computes.
  reply.pieces = {{std::move(body), Duration{}, PieceKind::body}};
}

/// Index of the first piece after `count` pieces.
std::vector<Piece>::iterator after(Reply& reply, std::uint64_t count) {
  const auto at = std::min<std::uint64_t>(count, reply.pieces.size());
  return reply.pieces.begin() + static_cast<std::ptrdiff_t>(at);
}

std::string error_piece(const Reply& reply, const FaultRule& rule) {
  const int status = rule.status == 0 ? 500 : rule.status;
  if (reply.api == SimApi::messages) {
    return "event: error\ndata: " + dump(anthropic_error(rule, status)) + "\n\n";
  }
  Json error = openai_error(rule, status);
  if (reply.api == SimApi::responses) {
    Json flat = Json::object({{"type", "error"}});
    flat.update(error["error"]);
    return "event: error\ndata: " + dump(flat) + "\n\n";
  }
  if (rule.status != 0) error["error"]["code"] = rule.status;
  return (rule.style == "named" ? "event: error\ndata: " : "data: ") + dump(error) + "\n\n";
}

void set_error_event(Reply& reply, const FaultRule& rule) {
  if (!reply.stream) {
    Json error = openai_error(rule, rule.status == 0 ? 500 : rule.status);
    if (rule.status != 0) error["error"]["code"] = rule.status;
    for (Piece& piece : reply.pieces) piece.bytes = dump(error);
    return;
  }
  const auto at = after(reply, rule.place.after_events.value_or(0));
  const Duration wait = at == reply.pieces.end() ? Duration{} : at->wait;
  Piece last = reply.pieces.back();
  last.wait = Duration{};
  reply.pieces.erase(at, reply.pieces.end());
  reply.pieces.push_back({error_piece(reply, rule), wait, PieceKind::content});
  if (rule.keep && last.kind == PieceKind::done) reply.pieces.push_back(std::move(last));
}

void drop(Reply& reply, PieceKind kind) {
  if (!reply.stream) return;
  std::erase_if(reply.pieces, [kind](const Piece& piece) { return piece.kind == kind; });
}

std::string with_line_ends(const std::string& text, std::string_view style, std::size_t& line) {
  std::string out;
  for (const char c : text) {
    if (c != '\n') {
      out += c;
      continue;
    }
    const std::size_t turn = style == "mixed" ? line++ % 3 : style == "cr" ? 1 : 0;
    out += turn == 0 ? "\r\n" : turn == 1 ? "\r" : "\n";
  }
  return out;
}

/// The JSON of the event over two data lines, split after a comma (a legal place for white space).
std::string split_data(const std::string& text) {
  const std::size_t comma = text.find(",\"");
  if (comma == std::string::npos) return text;
  return text.substr(0, comma + 1) + "\ndata: " + text.substr(comma + 1);
}

void set_sse_style(Reply& reply, const std::string& style) {
  if (!reply.stream || reply.pieces.empty()) return;
  std::size_t line = 0;
  for (Piece& piece : reply.pieces) {
    if (style == "crlf" || style == "cr" || style == "mixed") {
      piece.bytes = with_line_ends(piece.bytes, style, line);
    } else if (style == "no_space") {
      const std::size_t at = piece.bytes.find("data: ");
      if (at != std::string::npos) piece.bytes.erase(at + 5, 1);
    } else if (style == "comments") {
      piece.bytes.insert(0, ": keep-alive\n\n");
    } else if (style == "split") {
      piece.bytes = split_data(piece.bytes);
    }
  }
  if (style == "bom") reply.pieces.front().bytes.insert(0, "\xef\xbb\xbf");
  if (style == "preamble") {
    const Json preamble = Json::object(
        {{"id", ""},
         {"object", "chat.completion.chunk"},
         {"choices", Json::array()},
         {"prompt_filter_results", Json::array({Json::object({{"prompt_index", 0}})})}});
    reply.pieces.insert(reply.pieces.begin(),
                        {"data: " + dump(preamble) + "\n\n", {}, PieceKind::preamble});
  }
}

void add_huge_event(Reply& reply, const FaultRule& rule) {
  if (!reply.stream || rule.style == "endless") return;
  const Json delta = Json::object({{"content", std::string(rule.bytes, 'x')}});
  const Json choice = Json::object({{"index", 0}, {"delta", delta}, {"finish_reason", nullptr}});
  const Json chunk = Json::object({{"id", "huge"},
                                   {"object", "chat.completion.chunk"},
                                   {"created", 0},
                                   {"model", "huge"},
                                   {"choices", Json::array({choice})}});
  reply.pieces.insert(after(reply, rule.place.after_events.value_or(1)),
                      {"data: " + dump(chunk) + "\n\n", {}, PieceKind::content});
}

void compress(Reply& reply) {
  GzipWriter gzip;
  for (std::size_t i = 0; i < reply.pieces.size(); ++i) {
    reply.pieces[i].bytes = gzip.write(reply.pieces[i].bytes, i + 1 == reply.pieces.size());
  }
  reply.headers.emplace_back("content-encoding", "gzip");
}

}  // namespace

void apply_to_reply(Reply& reply, const std::vector<FaultRule>& faults) {
  bool gzip = false;
  for (const FaultRule& rule : faults) {
    switch (rule.kind) {
      case FaultKind::status:
      case FaultKind::redirect:
        set_status(reply, rule);
        break;
      case FaultKind::error_event:
        set_error_event(reply, rule);
        break;
      case FaultKind::no_done:
        drop(reply, PieceKind::done);
        break;
      case FaultKind::no_finish:
        drop(reply, PieceKind::finish);
        break;
      case FaultKind::huge_line:
        add_huge_event(reply, rule);
        break;
      case FaultKind::sse:
        set_sse_style(reply, rule.style);
        break;
      case FaultKind::gzip:
        gzip = true;
        break;
      default:
        break;  // a matter of framing
    }
  }
  // Last, so that it covers what the others wrote.
  if (gzip) compress(reply);
}

}  // namespace flashgate

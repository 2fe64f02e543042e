#pragma once
// The answer of a simulated backend before any framing: status, headers and the pieces of its body,
// each with the wait before it. Built by pure functions, one per API; any thread.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "simulator/dice.hpp"
#include "simulator/prompt.hpp"
#include "simulator/sim_options.hpp"

namespace flashgate {

enum class PieceKind { preamble, content, finish, usage, done, body };

struct Piece {
  std::string bytes{};
  Duration wait{};
  PieceKind kind = PieceKind::body;
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers{};
  std::vector<Piece> pieces{};
  SimApi api = SimApi::chat;
  bool stream = false;  // pieces are events
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

enum class Finish { stop, length, tool };

/// What the model says, before it is put into the words of an API.
struct Answer {
  std::vector<std::string> tokens{};  // text, or the arguments of the tool call
  std::string tool{};
  Finish finish = Finish::stop;
  std::string text() const;
};

/// Waits for this answer, drawn in order.
class Pace {
 public:
  Pace(const Timing& timing, std::uint64_t seed) : timing_(timing), dice_(seed) {}
  Duration first(std::int64_t input_tokens);
  Duration next(std::size_t tokens);

 private:
  Timing timing_;
  Dice dice_;
};

/// Everything a reply depends on.
struct ReplyContext {
  const SimulatorOptions& options;
  std::uint64_t ordinal = 1;
  std::int64_t unix_seconds = 0;
  bool empty = false;       // the answer has no content
  bool usage_null = false;  // "usage":null on every chunk but the last
  std::string id(std::string_view prefix) const;
};

Answer make_answer(const Prompt& prompt, const ReplyContext& context, int choice);
std::string dump(const Json& value);

Reply chat_reply(const Prompt& prompt, const ReplyContext& context);
Reply completions_reply(const Prompt& prompt, const ReplyContext& context);
Reply responses_reply(const Prompt& prompt, const ReplyContext& context);
Reply messages_reply(const Prompt& prompt, const ReplyContext& context);
Reply embeddings_reply(const Prompt& prompt, const Json& body, const ReplyContext& context);
Reply rerank_reply(const Prompt& prompt, const Json& body, const ReplyContext& context);
Reply moderations_reply(const Prompt& prompt, const Json& body, const ReplyContext& context);
Reply transcriptions_reply(const ReplyContext& context);
Reply json_reply(SimApi api, const Json& body, Duration wait);
Reply error_reply(int status, std::string_view message, std::string_view type,
                  std::string_view code);

}  // namespace flashgate

#pragma once
// Adds up what a model wrote, from strings anywhere in a reply or in stream chunks: bytes, tokens
// (estimated in pieces, so that a stream of one-word deltas is not counted as one token each) and
// whether there were tool calls. Bounded memory and recursion. One reply, one thread.
#include <cstddef>
#include <string>
#include <string_view>

#include "protocol/json_cursor.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

class OutputText {
 public:
  static constexpr std::size_t piece_bytes = 1024;
  static constexpr std::size_t exact_bytes_max = 1024 * 1024;  // then at the average rate
  static constexpr int nesting_max = 5;

  explicit OutputText(TokenizerFamily family) : family_(family) {}

  void add(JsonString text);
  /// Takes the value at the cursor: text, or parts, deltas, messages, items and calls that hold it.
  /// True if there was any content.
  bool add_value(JsonCursor& json, int nesting = 0);
  /// Estimates what is still pending; until then that part is a guess by size.
  void settle();

  std::size_t bytes() const { return bytes_; }
  double tokens() const;
  bool tool_calls() const { return tool_calls_; }

 private:
  bool add_member(JsonCursor& json, JsonString key, int nesting);
  bool add_call(JsonCursor& json, int nesting);
  void add_plain(std::string_view text);

  TokenizerFamily family_;
  std::string pending_{};
  std::string decoded_{};
  std::size_t bytes_ = 0;
  std::size_t estimated_bytes_ = 0;
  double estimated_ = 0;
  bool tool_calls_ = false;
};

}  // namespace flashgate

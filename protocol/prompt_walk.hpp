#pragma once
// Walks the part of a request that becomes the prompt (messages, input, prompt, system, tools) in
// any dialect, and estimates its tokens. Wrong types are tolerated: the backend judges them.
// Bounded recursion, linear time; beyond a budget of bytes the estimate is extrapolated.
// Internal to request_facts; one request, one thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json_cursor.hpp"
#include "protocol/request_facts.hpp"
#include "text/token_estimate.hpp"

namespace flashgate {

class PromptWalk {
 public:
  static constexpr double message_tokens = 4;
  static constexpr double image_tokens = 1000;
  static constexpr double audio_tokens = 500;
  static constexpr double file_tokens = 2000;
  static constexpr std::size_t exact_bytes_max = 1024 * 1024;  // estimated byte by byte
  static constexpr std::size_t sample_bytes = 16 * 1024;       // beyond that
  static constexpr std::size_t samples_max = 16;               // of one text
  static constexpr double unknown_rate = 0.5;                  // tokens per byte
  static constexpr std::size_t string_parts_max = 64;          // of system and user text kept
  static constexpr int nesting_max = 4;                        // of items in items

  PromptWalk(JsonCursor& json, std::string_view body, unsigned families, RequestFacts& facts);

  /// messages, input or prompt: a string, token numbers, items, or lists of these.
  void walk_conversation();
  /// system or instructions: a string or parts.
  void walk_system();
  /// tools, functions, schemas: their raw text is counted.
  void walk_raw();
  /// Writes texts, turns and the hash into the facts.
  void finish();

 private:
  using Tokens = std::array<double, 5>;
  struct Item {
    Tokens tokens{};
    std::vector<JsonString>* texts = nullptr;
    ByteRange content{};
    std::string_view role{};
    bool media = false;
  };

  void walk_any(Item& item, int nesting);
  void walk_item(int nesting, Item* outer);
  void walk_member(JsonString key, Item& item, int nesting);
  void walk_content(Item& item, int nesting);
  void walk_type(Item& item);
  void end_message(Item& item);
  void add_text(JsonString text, Item& item);
  void add_raw(std::string_view raw, Tokens& tokens);
  void count_text(std::string_view text, Tokens& tokens);
  double rate_of(std::size_t family) const;
  static double sampled_tokens(std::string_view text, TokenizerFamily family);
  void add_fixed(double count, Tokens& tokens);
  void hash(std::string_view bytes);

  JsonCursor& json_;
  std::string_view body_;
  RequestFacts& facts_;
  std::array<TokenizerFamily, 5> families_{};
  std::size_t family_count_ = 0;
  std::size_t exact_left_ = exact_bytes_max;
  Tokens counted_tokens_{};
  double counted_bytes_ = 0;
  std::string decoded_{};
  std::vector<JsonString> texts_{};  // of the message being read
  std::vector<JsonString> system_{};
  std::vector<JsonString> user_{};
  ByteRange first_user_{};
  std::uint64_t hash_ = 0;
};

}  // namespace flashgate

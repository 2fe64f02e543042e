#pragma once
// One routing rule and when it holds: fields are AND, the values of a list OR, an absent field
// always holds. `*` in a model, key or tag stands for any characters. Pure, any thread.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/http1_head.hpp"
#include "protocol/request_facts.hpp"
#include "text/task_class.hpp"

namespace flashgate {

struct TokenRange {
  std::int64_t min = 0;  // both ends belong to it
  std::int64_t max = INT64_MAX;
  bool holds(std::int64_t n) const { return n >= min && n <= max; }
  bool operator==(const TokenRange&) const = default;
};
/// ">16000", ">=16k", "<2000", "<=2k", "1000..4000" (both ends included), "500". k and M are 10^3,
/// 10^6.
std::optional<TokenRange> parse_token_range(std::string_view text);

struct When {
  std::vector<std::string> model{};
  std::vector<std::string> key{};
  std::vector<std::string> tag{};
  std::vector<std::string> language{};  // as name(Language) spells them
  std::vector<TaskClass> task{};
  std::vector<ResponseFormat> response_format{};
  std::optional<TokenRange> input_tokens{};
  std::optional<TokenRange> max_tokens{};  // never holds when the request gives none
  std::optional<TokenRange> turns{};
  std::optional<bool> stream{};
  std::optional<bool> tools{};
  std::optional<bool> images{};
  /// Lower-case name; exact value, or "*" for present. All must hold.
  std::vector<std::pair<std::string, std::string>> header{};
};

struct Rule {
  std::string name{};
  When when{};
  std::vector<std::size_t> to{};  // profile indices, tried in order
};

/// What rules look at. `language` is asked for only if a rule does.
struct RuleFacts {
  const RequestFacts* facts = nullptr;
  std::string_view model{};
  std::string_view key_name{};
  const std::vector<std::string>* key_tags = nullptr;
  const std::vector<HeaderField>* headers = nullptr;
  TaskClass task = TaskClass::chat;
  std::int64_t input_tokens = 0;
};

bool rule_matches(const When& when, const RuleFacts& facts);
/// `*` is any run of characters, everything else is itself. At most pattern × text steps.
bool wildcard_match(std::string_view pattern, std::string_view text);
/// What of `when` held, for people: "task formulas, images". ASCII as far as the configuration is.
std::string describe_match(const When& when, const RuleFacts& facts);

}  // namespace flashgate

// Whether one rule's condition includes another's, field by field: a field that the earlier rule
// does not look at always holds; one that it does must be at least as narrow in the later rule.
#include <algorithm>

#include "config/cross_check.hpp"

namespace flashgate {
namespace {

template <class Value>
bool list_covers(const std::vector<Value>& earlier, const std::vector<Value>& later) {
  if (earlier.empty()) return true;
  return !later.empty() && std::all_of(later.begin(), later.end(), [&](const Value& value) {
    return std::find(earlier.begin(), earlier.end(), value) != earlier.end();
  });
}

/// A pattern that matches another pattern's text, stars included, matches all that it stands for.
bool patterns_cover(const std::vector<std::string>& earlier,
                    const std::vector<std::string>& later) {
  if (earlier.empty()) return true;
  return !later.empty() && std::all_of(later.begin(), later.end(), [&](const auto& value) {
    return std::any_of(earlier.begin(), earlier.end(),
                       [&](const auto& pattern) { return wildcard_match(pattern, value); });
  });
}

bool range_covers(const std::optional<TokenRange>& earlier,
                  const std::optional<TokenRange>& later) {
  if (!earlier) return true;
  return later && later->min >= earlier->min && later->max <= earlier->max;
}

bool flag_covers(std::optional<bool> earlier, std::optional<bool> later) {
  return !earlier || earlier == later;
}

bool header_covers(const When& earlier, const When& later) {
  return std::all_of(earlier.header.begin(), earlier.header.end(), [&](const auto& wanted) {
    return std::any_of(later.header.begin(), later.header.end(), [&](const auto& field) {
      return field.first == wanted.first && (wanted.second == "*" || wanted.second == field.second);
    });
  });
}

}  // namespace

bool covers(const When& earlier, const When& later) {
  return patterns_cover(earlier.model, later.model) && patterns_cover(earlier.key, later.key) &&
         patterns_cover(earlier.tag, later.tag) && list_covers(earlier.language, later.language) &&
         list_covers(earlier.task, later.task) &&
         list_covers(earlier.response_format, later.response_format) &&
         range_covers(earlier.input_tokens, later.input_tokens) &&
         range_covers(earlier.max_tokens, later.max_tokens) &&
         range_covers(earlier.turns, later.turns) && flag_covers(earlier.stream, later.stream) &&
         flag_covers(earlier.tools, later.tools) && flag_covers(earlier.images, later.images) &&
         header_covers(earlier, later);
}

}  // namespace flashgate

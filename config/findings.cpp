#include "config/findings.hpp"

#include <algorithm>

#include "base/close_match.hpp"
#include "base/json_text.hpp"

namespace flashgate {

void Findings::add(Severity severity, Place place, std::string path, std::string message,
                   std::string suggestion) {
  if (found_.size() >= count_max && (severity == Severity::warning || overflowed_)) return;
  if (found_.size() >= count_max) {
    overflowed_ = true;
    message = "more errors follow; mend these first";
    suggestion.clear();
  }
  found_.push_back({severity, file_, place.line, place.column, std::move(message),
                    std::move(suggestion), std::move(path)});
}

std::vector<Diagnostic> Findings::take_sorted() {
  std::stable_sort(found_.begin(), found_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return std::move(found_);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto close = close_matches(word, known, 1);
  return close.empty() ? std::string{} : "did you mean " + quoted(close.front()) + "?";
}

std::string one_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown_max = 20;
  std::string out;
  const std::size_t count = std::min(names.size(), shown_max);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += quoted(names[i]);
  }
  if (names.size() > count) out += ", …";
  return out;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 80;
  const bool cut = text.size() > shown_max;
  std::string out = "'";
  for (const char c : text.substr(0, utf8_prefix(text, shown_max))) {
    out += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  }
  return out + (cut ? "…'" : "'");
}

}  // namespace flashgate

#include "base/close_match.hpp"

#include <algorithm>
#include <array>

namespace flashgate {
namespace {

constexpr std::size_t word_bytes_max = 64;
constexpr std::size_t part_bytes_min = 4;  // shorter parts are in too many names by chance

std::string lower_head(std::string_view text) {
  std::string out(text.substr(0, word_bytes_max));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// Optimal string alignment: insert, delete, replace, swap of neighbours. REQUIRES: both <= 64
/// bytes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, word_bytes_max + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& now = rows[i % 3];
    const auto& before = rows[(i + 2) % 3];
    const auto& before_that = rows[(i + 1) % 3];
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({before[j] + 1, now[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before_that[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

struct Scored {
  std::size_t score = 0;
  std::size_t index = 0;
};

constexpr std::size_t not_close = ~std::size_t{0};

std::size_t score(std::string_view word, std::string_view name) {
  const std::size_t longer = std::max(word.size(), name.size());
  const std::size_t shorter = std::min(word.size(), name.size());
  const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
  if (longer - shorter <= allowed) {
    const std::size_t distance = edit_distance(word, name);
    if (distance <= allowed && distance < longer) return distance;
  }
  if (shorter >= part_bytes_min) {
    const bool is_part = word.size() < name.size() ? name.find(word) != std::string_view::npos
                                                   : word.find(name) != std::string_view::npos;
    if (is_part) return word_bytes_max + (longer - shorter);
  }
  return not_close;
}

}  // namespace

std::vector<std::string> close_matches(std::string_view word, const std::vector<std::string>& known,
                                       std::size_t most) {
  std::vector<Scored> found;
  const std::string wanted = lower_head(word);
  if (wanted.empty()) return {};
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::size_t points = score(wanted, lower_head(known[i]));
    if (points != not_close) found.push_back({points, i});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Scored& a, const Scored& b) { return a.score < b.score; });
  std::vector<std::string> out;
  for (const Scored& entry : found) {
    if (out.size() == most) break;
    const std::string& name = known[entry.index];
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

}  // namespace flashgate

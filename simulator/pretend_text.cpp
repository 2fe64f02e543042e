#include "simulator/pretend_text.hpp"

#include <algorithm>
#include <array>

#include "simulator/dice.hpp"

namespace flashgate {
namespace {

constexpr std::size_t word_bytes_max = 6;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Every word below is one token, so a sentence has as many tokens as words and marks.
constexpr std::array<std::string_view, 12> subjects{
    "The plan",  "A router",     "Each node", "This step",     "The cache",   "One queue",
    "The model", "A small test", "The team",  "Our first try", "Every reply", "The log"};
constexpr std::array<std::string_view, 10> verbs{"keeps", "shows", "needs",  "moves", "checks",
                                                 "finds", "holds", "counts", "sends", "reads"};
constexpr std::array<std::string_view, 10> objects{
    "the first token", "a short answer", "one more sample", "the right order", "enough space",
    "a clear limit",   "the next value", "all open work",   "the long text",   "a steady rate"};
constexpr std::array<std::string_view, 6> endings{"at once",   "before noon", "in order",
                                                  "with care", "under load",  "on time"};

constexpr std::array<std::string_view, 8> han_subjects{
    "这个方案", "路由规则", "每次请求", "模型服务", "缓存策略", "测试结果", "系统设计", "上下文"};
constexpr std::array<std::string_view, 8> han_verbs{
    "可以提高", "需要检查", "能够保证", "会影响", "主要依靠", "有助于", "直接决定", "通常取决于"};
constexpr std::array<std::string_view, 8> han_objects{
    "响应速度", "输出质量", "整体稳定", "首字时间", "并发能力", "运行成本", "数据安全", "用户体验"};

std::string english_sentence(Dice& dice, bool first) {
  std::string out = first ? "" : " ";
  out += subjects[dice.below(subjects.size())];
  out += ' ';
  out += verbs[dice.below(verbs.size())];
  out += ' ';
  out += objects[dice.below(objects.size())];
  out += ' ';
  out += endings[dice.below(endings.size())];
  return out + '.';
}

std::string chinese_sentence(Dice& dice) {
  std::string out(han_subjects[dice.below(han_subjects.size())]);
  out += han_verbs[dice.below(han_verbs.size())];
  out += han_objects[dice.below(han_objects.size())];
  return out + (dice.below(3) == 0 ? "，" : "。");
}

}  // namespace

std::size_t first_token_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at == text.size()) return at;
  if (is_word(text[at])) {
    const std::size_t end = std::min(text.size(), at + word_bytes_max);
    while (at < end && is_word(text[at])) ++at;
    return at;
  }
  ++at;
  for (int i = 0; i < 3 && at < text.size() && is_continuation(text[at]); ++i) ++at;
  return at;
}

std::size_t count_tokens(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    text.remove_prefix(first_token_bytes(text));
    ++count;
  }
  return count;
}

std::vector<std::string> split_tokens(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t bytes = first_token_bytes(text);
    out.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

bool looks_chinese(std::string_view text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    // U+4E00 to U+9FFF: E4 B8 80 to E9 BF BF.
    if (lead == 0xe4 && static_cast<unsigned char>(text[i + 1]) >= 0xb8) return true;
    if (lead >= 0xe5 && lead <= 0xe9) return true;
  }
  return false;
}

std::string pretend_answer(std::string_view prompt, std::uint64_t seed, std::size_t tokens) {
  const bool chinese = looks_chinese(prompt);
  Dice dice(hash_text(prompt, seed));
  std::string out;
  std::size_t count = 0;
  while (count < tokens) {
    const std::string sentence =
        chinese ? chinese_sentence(dice) : english_sentence(dice, out.empty());
    std::string_view rest = sentence;
    while (!rest.empty() && count < tokens) {
      const std::size_t bytes = first_token_bytes(rest);
      out += rest.substr(0, bytes);
      rest.remove_prefix(bytes);
      ++count;
    }
  }
  return out;
}

}  // namespace flashgate

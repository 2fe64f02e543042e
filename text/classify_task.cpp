#include <algorithm>
#include <array>
#include <bitset>
#include <initializer_list>
#include <span>
#include <string>

#include "text/task_class.hpp"
#include "text/task_cues.hpp"

namespace flashgate {

namespace {

using Scores = std::array<double, task_class_count>;

constexpr double system_weight = 1.3;
constexpr double opening_weight = 1.25;  // a phrase near the front is more likely the instruction
constexpr std::size_t opening_bytes = 160;
constexpr std::size_t instruction_bytes = 200;
constexpr double score_min = 1.1;  // below it nothing was said about the task
constexpr std::size_t cues_max = 2048;

constexpr std::array<std::string_view, task_class_count> reasons = {
    "words of intent detection", "words of extraction",    "words of format conversion",
    "words of a question",       "words of completion",    "words of tagging",
    "words of planning",         "words or shape of code", "words or shape of mathematics",
    "words of reasoning",        "words of translation",   "words of summarising",
    "words of tool use",         "words about an image",   "words of small talk",
};

bool is_ascii_letter(unsigned char byte) {
  return (byte | 0x20U) - 'a' < 26U;
}

/// The head and the tail of a text, ASCII in lower case. Bounded by 2 x scanned_bytes_max.
std::string scanned_part(std::string_view text) {
  std::string part(text.substr(0, scanned_bytes_max));
  if (text.size() > scanned_bytes_max) {
    part += '\n';
    part += text.substr(std::max(scanned_bytes_max, text.size() - scanned_bytes_max));
  }
  for (char& c : part) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return part;
}

/// A sorted vocabulary, and where each first byte's rows begin in it.
struct CueSet {
  std::span<const detail::TaskCue> cues;
  std::array<std::size_t, 257> first{};

  explicit CueSet(std::span<const detail::TaskCue> sorted) : cues(sorted) {
    std::size_t row = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      first[byte] = row;
      while (row < cues.size() && static_cast<unsigned char>(cues[row].phrase[0]) == byte) ++row;
    }
    first[256] = row;
  }
};

bool letter_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_ascii_letter(static_cast<unsigned char>(text[at]));
}

/// Short words must also end where they stand: "tag" is not "tagebuch", "hi" is not "his".
bool stands_at(std::string_view text, std::size_t at, std::string_view phrase) {
  if (text.compare(at, phrase.size(), phrase) != 0) return false;
  const bool short_word = phrase.size() <= 4 && letter_at(phrase, phrase.size() - 1);
  return !short_word || !letter_at(text, at + phrase.size());
}

/// Adds every cue of a text once, where it first stands.
void add_cues(std::string_view text, const CueSet& set, double weight, Scores& scores) {
  std::bitset<cues_max> seen;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (letter_at(text, at) && at > 0 && letter_at(text, at - 1)) continue;
    const auto byte = static_cast<unsigned char>(text[at]);
    for (std::size_t row = set.first[byte]; row < set.first[byte + 1U]; ++row) {
      const detail::TaskCue& cue = set.cues[row];
      if (seen[row] || !stands_at(text, at, cue.phrase)) continue;
      seen[row] = true;
      scores[static_cast<std::size_t>(cue.task)] +=
          cue.weight * weight * (at < opening_bytes ? opening_weight : 1.0);
    }
  }
}

void add_cues(std::string_view text, double weight, Scores& scores) {
  static const CueSet english(detail::english_task_cues());
  static const CueSet chinese(detail::chinese_task_cues());
  add_cues(text, english, weight, scores);
  add_cues(text, chinese, weight, scores);
}

/// How many of the words stand in a text.
std::size_t count_of(std::string_view text, std::initializer_list<std::string_view> words) {
  std::size_t count = 0;
  for (const auto word : words) count += text.find(word) != std::string_view::npos;
  return count;
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

double& score_of(Scores& scores, TaskClass task) {
  return scores[static_cast<std::size_t>(task)];
}

/// Code and mathematics show in their marks and digits.
void add_mark_shapes(std::string_view text, Scores& scores) {
  std::size_t braces = 0;
  std::size_t operators = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    braces += c == '{' || c == '}' || c == ';';
    operators += c == '^' || c == '+' || c == '*' || c == '=' || c == '/' || c == '%';
    digits += c >= '0' && c <= '9';
  }
  if (text.find("```") != std::string_view::npos) score_of(scores, TaskClass::code) += 2.5;
  if (braces * 40 > text.size() && braces >= 3) score_of(scores, TaskClass::code) += 1.5;
  if (operators >= 2 && digits >= 2 && (operators + digits) * 8 > text.size()) {
    score_of(scores, TaskClass::formulas) += 1.5;
  }
}

/// What the form of the user's text says, whatever its words.
void add_shapes(std::string_view text, Scores& scores) {
  add_mark_shapes(text, scores);
  if (ends_with_any(text, {",", "，", "…", "..."})) score_of(scores, TaskClass::completion) += 1;
  const bool asks = ends_with_any(text, {"?", "？"});
  const bool question_word =
      starts_with_any(text, {"what", "who", "when", "where", "which", "why", "how", "is ", "are ",
                             "does ", "do ", "can ", "did ", "was ", "were "});
  // A short question without any other sign is a question.
  if (asks) score_of(scores, TaskClass::qa) += 0.9;
  if (question_word) score_of(scores, TaskClass::qa) += 0.6;
  if (question_word && asks && text.find(" you") != std::string_view::npos) {
    score_of(scores, TaskClass::chat) += 1.2;
  }
}

/// Two data formats in one instruction mean that one becomes the other; two languages likewise.
void add_pairs(std::string_view instruction, Scores& scores) {
  const auto formats = count_of(instruction, {"json", "yaml", "csv", "xml", "markdown", "toml",
                                              "html", "latex", "ini ", "表格"});
  if (formats >= 2) score_of(scores, TaskClass::conversion) += 2;
  const auto languages =
      count_of(instruction, {"english", "chinese", "french", "german", "spanish", "japanese",
                             "korean", "russian", "italian", "中文", "英文", "英语", "日语", "法语",
                             "德语", "韩语", "日文", "俄语"});
  if (languages >= 2) score_of(scores, TaskClass::translation) += 2;
}

TaskGuess best_of(const Scores& scores) {
  const auto best = std::max_element(scores.begin(), scores.end());
  if (*best < score_min) return {TaskClass::chat, 0.1, "nothing tells the task; default class"};
  double total = 0;
  for (const double score : scores) total += score;
  const auto index = static_cast<std::size_t>(best - scores.begin());
  return {static_cast<TaskClass>(index), *best / total, reasons[index]};
}

}  // namespace

TaskGuess classify_task(const TaskFeatures& features) {
  if (features.has_images) return {TaskClass::vision, 1.0, "the request carries images"};
  if (features.has_tools) return {TaskClass::tools, 0.95, "the request offers tools"};
  if (features.input_tokens >= long_document_tokens_min) {
    return {TaskClass::long_document, 0.9, "the input is long"};
  }
  if (features.is_completion_endpoint) {
    return {TaskClass::completion, 0.9, "the completion endpoint was called"};
  }
  const std::string system = scanned_part(features.system_text);
  const std::string user = scanned_part(features.last_user_text);
  Scores scores{};
  add_cues(system, system_weight, scores);
  add_cues(user, 1.0, scores);
  add_shapes(trimmed(user), scores);
  add_pairs(system.empty() ? std::string_view(user).substr(0, instruction_bytes)
                           : std::string_view(system).substr(0, instruction_bytes),
            scores);
  if (features.has_response_format) score_of(scores, TaskClass::extraction) += 0.8;
  return best_of(scores);
}

}  // namespace flashgate

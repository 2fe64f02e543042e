#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>

#include "text/cue_finder.hpp"
#include "text/folded_text.hpp"
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

constexpr std::array<std::string_view, task_class_count> reasons = {
    "words of intent detection", "words of extraction",    "words of format conversion",
    "words of a question",       "words of completion",    "words of tagging",
    "words of planning",         "words or shape of code", "words or shape of mathematics",
    "words of reasoning",        "words of translation",   "words of summarising",
    "words of tool use",         "words about an image",   "words of small talk",
};

/// Adds every cue of a text once, where it first stands.
void add_cues(const FoldedText& text, double weight, Scores& scores) {
  static const CueFinder vocabulary(detail::english_task_cues(), detail::chinese_task_cues());
  vocabulary.find(text, [&](const detail::TaskCue& cue, std::size_t at) {
    scores[static_cast<std::size_t>(cue.task)] +=
        cue.weight * weight * (at < opening_bytes ? opening_weight : 1.0);
  });
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

/// Code and mathematics show in their marks and digits. `bytes`: without the blanks around.
void add_mark_shapes(const FoldedText& text, std::size_t bytes, Scores& scores) {
  const auto [braces, operators, digits] = text.count_marks();
  if (text.view().find("```") != std::string_view::npos) score_of(scores, TaskClass::code) += 2.5;
  if (braces * 40 > bytes && braces >= 3) score_of(scores, TaskClass::code) += 1.5;
  if (operators >= 2 && digits >= 2 && (operators + digits) * 8 > bytes) {
    score_of(scores, TaskClass::formulas) += 1.5;
  }
}

/// Looks for the rare letter and then at what stands before it.
bool speaks_to_you(std::string_view text) {
  for (std::size_t at = text.find("you"); at != std::string_view::npos;
       at = text.find("you", at + 1)) {
    if (at > 0 && text[at - 1] == ' ') return true;
  }
  return false;
}

/// What the form of the user's text says, whatever its words.
void add_shapes(const FoldedText& folded, Scores& scores) {
  const std::string_view text = trimmed(folded.view());
  add_mark_shapes(folded, text.size(), scores);
  if (ends_with_any(text, {",", "，", "…", "..."})) score_of(scores, TaskClass::completion) += 1;
  const bool asks = ends_with_any(text, {"?", "？"});
  const bool question_word =
      starts_with_any(text, {"what", "who", "when", "where", "which", "why", "how", "is ", "are ",
                             "does ", "do ", "can ", "did ", "was ", "were "});
  // A short question without any other sign is a question.
  if (asks) score_of(scores, TaskClass::qa) += 0.9;
  if (question_word) score_of(scores, TaskClass::qa) += 0.6;
  if (question_word && asks && speaks_to_you(text)) {
    score_of(scores, TaskClass::chat) += 1.2;
  }
}

constexpr std::array<std::string_view, 10> formats = {"json", "yaml", "csv",   "xml",  "markdown",
                                                      "toml", "html", "latex", "ini ", "表格"};
constexpr std::array<std::string_view, 18> languages = {
    "english", "chinese", "french", "german", "spanish", "japanese", "korean", "russian", "italian",
    "中文",    "英文",    "英语",   "日语",   "法语",    "德语",     "韩语",   "日文",    "俄语"};

/// Which words have a byte at one of their first three places: bit i for the i-th word, languages
/// after the formats.
struct NameFilter {
  std::array<std::array<std::uint32_t, 256>, 3> words_with{};

  constexpr NameFilter() {
    for (std::size_t word = 0; word < formats.size() + languages.size(); ++word) {
      for (std::size_t place = 0; place < words_with.size(); ++place) {
        words_with[place][static_cast<unsigned char>(name_of(word)[place])] |= 1U << word;
      }
    }
  }
  static constexpr std::string_view name_of(std::size_t word) {
    return word < formats.size() ? formats[word] : languages[word - formats.size()];
  }
  std::uint32_t words_at(const char* three) const {
    return words_with[0][static_cast<unsigned char>(three[0])] &
           words_with[1][static_cast<unsigned char>(three[1])] &
           words_with[2][static_cast<unsigned char>(three[2])];
  }
};
constexpr NameFilter name_filter;
constexpr std::uint32_t format_bits = (1U << formats.size()) - 1U;

/// Two data formats in one instruction mean that one becomes the other; two languages likewise.
void add_pairs(std::string_view instruction, Scores& scores) {
  std::uint32_t seen = 0;
  for (std::size_t at = 0; at + 3 <= instruction.size(); ++at) {
    auto words = name_filter.words_at(instruction.data() + at);
    for (; words != 0; words &= words - 1) {
      const auto word = static_cast<std::size_t>(std::countr_zero(words));
      if (instruction.substr(at).starts_with(NameFilter::name_of(word))) seen |= 1U << word;
    }
  }
  if (std::popcount(seen & format_bits) >= 2) score_of(scores, TaskClass::conversion) += 2;
  if (std::popcount(seen & ~format_bits) >= 2) score_of(scores, TaskClass::translation) += 2;
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
  const FoldedText system(features.system_text);
  const FoldedText user(features.last_user_text);
  Scores scores{};
  add_cues(system, system_weight, scores);
  add_cues(user, 1.0, scores);
  add_shapes(user, scores);
  const std::string_view instruction = system.view().empty() ? user.view() : system.view();
  add_pairs(instruction.substr(0, instruction_bytes), scores);
  if (features.has_response_format) score_of(scores, TaskClass::extraction) += 0.8;
  return best_of(scores);
}

}  // namespace flashgate

#pragma once
// What kind of work a request is, for rules by task, shadow categories and rollout pins. Explicit
// signs decide first (tools, images, length, endpoint), then a scored model of words and shapes,
// Chinese and English. Promises: any bytes, no exception, and bounded time, because no more than
// `scanned_head_bytes` and `scanned_tail_bytes` of each text are looked at.
// Thread rule: pure functions, callable from anywhere.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flashgate {

enum class TaskClass {
  intent,
  extraction,
  conversion,
  qa,
  completion,
  tagging,
  workflow,
  code,
  formulas,
  reasoning,
  translation,
  long_document,
  tools,
  vision,
  chat
};
inline constexpr int task_class_count = 15;

std::string_view name(TaskClass task);
std::optional<TaskClass> parse_task_class(std::string_view text);

/// The part of a request that the classifier reads. Texts are decoded, but may hold bad bytes.
struct TaskFeatures {
  std::string_view system_text{};
  std::string_view last_user_text{};
  bool has_tools = false;
  bool has_images = false;
  bool has_response_format = false;
  bool is_completion_endpoint = false;
  std::int64_t input_tokens = 0;
  int turns = 0;
  std::int64_t max_tokens = 0;  // 0: not given
};

struct TaskGuess {
  TaskClass task = TaskClass::chat;
  double confidence = 0;   // 0 … 1
  std::string_view why{};  // a static string
};

inline constexpr std::size_t scanned_head_bytes = 2 * 1024;  // of each text
inline constexpr std::size_t scanned_tail_bytes = 1024;
inline constexpr std::int64_t long_document_tokens_min = 8000;

TaskGuess classify_task(const TaskFeatures& features);

enum class Language {
  other,
  english,
  chinese,
  japanese,
  korean,
  russian,
  arabic,
  thai,
  hindi,
  greek,
  hebrew,
  german,
  french,
  spanish,
  portuguese,
  italian
};
inline constexpr int language_count = 16;

/// The main language of a text, by script and then, for Latin script, by its commonest words.
Language detect_language(std::string_view text);
std::string_view name(Language language);
std::optional<Language> parse_language(std::string_view text);

}  // namespace flashgate

#pragma once
// The classifier's vocabulary: a phrase, the class it speaks for, and how loudly. ASCII phrases
// match at the start of a word. Read-only data.

#include <span>
#include <string_view>

#include "text/task_class.hpp"

namespace flashgate::detail {

struct TaskCue {
  std::string_view phrase;
  TaskClass task;
  float weight;
};

/// Sorted by the bytes of the phrase; English cues begin with ASCII, Chinese ones do not.
std::span<const TaskCue> english_task_cues();
std::span<const TaskCue> chinese_task_cues();

}  // namespace flashgate::detail

#include "text/task_class.hpp"

#include <iterator>

namespace flashgate {

namespace {
constexpr std::string_view task_names[] = {
    "intent",      "extraction",    "conversion", "qa",       "completion",
    "tagging",     "workflow",      "code",       "formulas", "reasoning",
    "translation", "long_document", "tools",      "vision",   "chat",
};
static_assert(std::size(task_names) == task_class_count);
}  // namespace

std::string_view name(TaskClass task) {
  const auto index = static_cast<std::size_t>(task);
  return index < std::size(task_names) ? task_names[index] : "unknown";
}

std::optional<TaskClass> parse_task_class(std::string_view text) {
  for (std::size_t i = 0; i < std::size(task_names); ++i) {
    if (task_names[i] == text) return static_cast<TaskClass>(i);
  }
  return std::nullopt;
}

}  // namespace flashgate

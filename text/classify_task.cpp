#include "text/task_class.hpp"

namespace flashgate {

TaskGuess classify_task(const TaskFeatures& features) {
  if (features.has_images) return {TaskClass::vision, 1.0, "the request carries images"};
  if (features.has_tools) return {TaskClass::tools, 0.95, "the request offers tools"};
  if (features.input_tokens >= long_document_tokens_min) {
    return {TaskClass::long_document, 0.9, "the input is long"};
  }
  if (features.is_completion_endpoint) {
    return {TaskClass::completion, 0.9, "the completion endpoint was called"};
  }
  return {TaskClass::chat, 0.1, "nothing tells the task; default class"};
}

}  // namespace flashgate

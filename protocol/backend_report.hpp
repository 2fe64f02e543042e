#pragma once
// The parts of a reply that whole answers and stream chunks share: the usage object and the error
// object, in the spellings of the backends in use. Any JSON, bounded strings. Pure, any thread.
#include <string>
#include <string_view>

#include "protocol/json_cursor.hpp"
#include "protocol/token_usage.hpp"

namespace flashgate {

struct BackendError {
  static constexpr std::size_t message_bytes_max = 2048;
  static constexpr std::size_t name_bytes_max = 256;

  std::string message{};
  std::string code{};
  std::string type{};
  std::string param{};
  int status = 0;
};

/// Takes the value at the cursor. Counts that it does not name stay as they are.
void read_usage(JsonCursor& json, TokenUsage& usage);
/// Takes the value at the cursor; false for null, false, "", 0, {} and []: no error.
bool read_error(JsonCursor& json, BackendError& error);
/// A member of an error object or of a reply that is one as a whole; false: not a known name.
bool read_error_member(JsonCursor& json, std::string_view key, BackendError& error);
/// Texts and lists of validation errors ({"loc": […], "msg": …}) as one line.
void read_error_message(JsonCursor& json, std::string& message, int nesting = 0);
/// The HTTP status that a code or type stands for; 0: unknown.
int error_status(std::string_view code, std::string_view type);

}  // namespace flashgate

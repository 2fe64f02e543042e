#pragma once
// Writing JSON strings by hand where a line must be cheap and can never be invalid.
// Bad UTF-8 becomes U+FFFD, control characters and U+2028/9 are escaped. Pure, any thread.
#include <string>
#include <string_view>

namespace flashgate {

/// Appends `text` as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);
/// Length of the longest prefix of `text` that is at most `bytes_max` and ends on a UTF-8 border.
std::size_t utf8_prefix(std::string_view text, std::size_t bytes_max);
bool is_valid_utf8(std::string_view text);

}  // namespace flashgate

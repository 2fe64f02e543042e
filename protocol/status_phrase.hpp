#pragma once
// The reason phrase of a status line (RFC 9110 §15). Pure, any thread.
#include <string_view>

namespace flashgate {

/// "Status" for codes that we never send.
std::string_view status_phrase(int status);

}  // namespace flashgate

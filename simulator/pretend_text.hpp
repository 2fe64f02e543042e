#pragma once
// Text that looks like an answer, and the simulator's own token rule. Pure, any thread.
//
// The rule: a run of up to six ASCII letters, digits or `_`, any other single ASCII character, or
// one other code point is a token; white space belongs to the token after it. So usage numbers add
// up: the tokens of an answer are exactly the pieces it is streamed in.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flashgate {

/// REQUIRES: not empty. Bytes of the first token.
std::size_t first_token_bytes(std::string_view text);
std::size_t count_tokens(std::string_view text);
std::vector<std::string> split_tokens(std::string_view text);
/// True if the text holds Han characters.
bool looks_chinese(std::string_view text);
/// Exactly `tokens` tokens, Chinese if the prompt is. Depends on prompt and seed only.
std::string pretend_answer(std::string_view prompt, std::uint64_t seed, std::size_t tokens);

}  // namespace flashgate

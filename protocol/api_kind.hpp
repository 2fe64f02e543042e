#pragma once
// Which wire dialect a request path speaks: it decides where the prompt, the limits and the usage
// stand in the JSON. Plain value, any thread.

namespace flashgate {

enum class ApiKind { chat, completions, embeddings, responses, messages, count_tokens, other };

}  // namespace flashgate

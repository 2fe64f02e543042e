#pragma once
// The chat request every benchmark sends. It carries a nonce the backend must echo, twice, around
// a filler of known length, so a truncated, mixed-up or altered body cannot pass unnoticed.
// One object per connection; not shared between threads.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/wire.hpp"

namespace flashgate {

struct ChatRequestOptions {
  int port = 0;
  std::size_t body_bytes = 1536;
  bool stream = false;
  std::string authorization = "Bearer client-key";
  std::vector<std::string> headers;
};

class ChatRequest {
 public:
  static constexpr int nonce_digits = 16;

  explicit ChatRequest(const ChatRequestOptions& options) {
    const std::string begin =
        std::string(R"({"model":"bench-model",)") + (options.stream ? R"("stream":true,)" : "") +
        R"("max_tokens":256,"temperature":0.2,"messages":[)"
        R"({"role":"system","content":"You are a careful assistant. Answer in one paragraph, )"
        R"(cite the line you rely on, and say so when the text does not contain the answer."},)"
        R"({"role":"user","content":"Which clause sets the notice period?"},)"
        R"({"role":"assistant","content":"Clause 7.2: ninety days, in writing."},)"
        R"({"role":"user","content":")";
    const std::string mark = "nonce-0000000000000000-0000000:";
    const std::string end = R"(:tail-0000000000000000"}]})";
    const std::size_t fixed = begin.size() + mark.size() + end.size();
    const std::size_t filler = options.body_bytes > fixed ? options.body_bytes - fixed : 0;
    std::string body = begin + mark;
    const std::string_view prose = "The party of the first part gives notice in due form; ";
    for (std::size_t i = 0; i < filler; ++i) body.push_back(prose[i % prose.size()]);
    write_decimal(body.data() + begin.size() + mark.size() - 8, filler, 7);
    body += end;
    text_ =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(options.port) +
        "\r\nUser-Agent: bench/1\r\nAccept: */*\r\nContent-Type: application/json\r\n" +
        "Authorization: " + options.authorization + "\r\n";
    for (const std::string& header : options.headers) text_ += header + "\r\n";
    text_ += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    first_ = text_.size() + begin.size() + 6;
    text_ += body;
    second_ = text_.size() - 4 - nonce_digits;
  }

  void set_nonce(std::uint64_t nonce) {
    write_hex(text_.data() + first_, nonce, nonce_digits);
    write_hex(text_.data() + second_, nonce, nonce_digits);
  }
  std::string_view nonce() const { return std::string_view(text_).substr(first_, nonce_digits); }
  std::string_view text() const { return text_; }

 private:
  std::string text_;
  std::size_t first_ = 0;
  std::size_t second_ = 0;
};

// The nonce of a body as the backend received it; empty when the body is not whole.
inline std::string_view whole_body_nonce(std::string_view body) {
  const std::size_t first = body.find("nonce-");
  if (first == std::string_view::npos || body.size() < first + 31) return {};
  const std::string_view nonce = body.substr(first + 6, ChatRequest::nonce_digits);
  std::size_t filler = 0;
  std::from_chars(body.data() + first + 23, body.data() + first + 30, filler);
  const std::size_t tail = first + 31 + filler;
  if (body.size() < tail + 6 + nonce.size() || body.substr(tail, 6) != ":tail-") return {};
  return body.substr(tail + 6, nonce.size()) == nonce ? nonce : std::string_view{};
}

}  // namespace flashgate

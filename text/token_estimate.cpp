#include "text/token_estimate.hpp"

namespace flashgate {

namespace {
struct FamilyName {
  TokenizerFamily family;
  std::string_view name;
};
constexpr FamilyName family_names[] = {
    {TokenizerFamily::o200k, "o200k"},       {TokenizerFamily::cl100k, "cl100k"},
    {TokenizerFamily::qwen, "qwen"},         {TokenizerFamily::llama3, "llama3"},
    {TokenizerFamily::deepseek, "deepseek"},
};
}  // namespace

std::optional<TokenizerFamily> parse_tokenizer_family(std::string_view text) {
  for (const auto& row : family_names) {
    if (row.name == text) return row.family;
  }
  return std::nullopt;
}

std::string_view name(TokenizerFamily family) {
  for (const auto& row : family_names) {
    if (row.family == family) return row.name;
  }
  return "unknown";
}

double estimate_tokens(std::string_view utf8, TokenizerFamily family) {
  const bool narrow = family == TokenizerFamily::cl100k || family == TokenizerFamily::llama3;
  double tokens = 0;
  for (const char c : utf8) {
    tokens += static_cast<unsigned char>(c) < 0x80 ? 0.3 : (narrow ? 0.45 : 0.33);
  }
  return tokens;
}

}  // namespace flashgate

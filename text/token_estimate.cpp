#include "text/token_estimate.hpp"

#include "text/estimate_weights.hpp"
#include "text/text_shape.hpp"

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
  const auto column = static_cast<std::size_t>(family);
  if (column >= detail::family_count) return static_cast<double>(utf8.size());
  const ShapeCounts counts = count_shapes(utf8);
  double tokens = 0;
  for (std::size_t row = 0; row < shape_count; ++row) {
    tokens += static_cast<double>(counts[row]) * detail::estimate_weights[row][column];
  }
  return tokens;
}

}  // namespace flashgate

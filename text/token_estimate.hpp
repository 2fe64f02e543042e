#pragma once
// How many tokens a text will cost, guessed from its scripts and word shapes without the model's
// tokenizer. Promises: any bytes, no exception, one pass, linear time. Before any correction the
// guess leans high: docs/token-estimates.md has the bounds and what was measured against them.
// Thread rule: free functions are pure; EstimateCorrection is a plain value the caller guards.

#include <array>
#include <optional>
#include <string_view>

namespace flashgate {

/// The vocabularies that backends in use are built on; the value of the `tokenizer` key.
enum class TokenizerFamily { o200k, cl100k, qwen, llama3, deepseek };

std::optional<TokenizerFamily> parse_tokenizer_family(std::string_view text);
std::string_view name(TokenizerFamily family);

/// Tokens in raw UTF-8 text. Bytes that are not UTF-8 are counted at their dearest.
double estimate_tokens(std::string_view utf8, TokenizerFamily family);

/// What one backend's reported usage says about our guesses: the median of the last ratios
/// actual / estimated. A median, so that one odd request (a cached prompt, a hidden system
/// prompt) moves nothing. Bounded, and trusted only as far as there are samples.
class EstimateCorrection {
 public:
  static constexpr double factor_min = 0.25;
  static constexpr double factor_max = 4.0;
  static constexpr int window = 31;

  /// Non-finite or non-positive values are ignored.
  void observe(double estimated, double actual);
  /// Multiply an estimate by this; 1 before the first sample.
  double factor() const { return factor_; }
  /// How many samples were taken in all.
  int samples() const { return samples_; }

 private:
  std::array<float, window> ratios_{};
  double factor_ = 1.0;
  int samples_ = 0;
};

}  // namespace flashgate

#pragma once
// Tokens that one counted shape is worth, per tokenizer family. Read-only data, fitted against the
// real tokenizers by tests/text/tokenizers/fit.mjs.

#include <array>
#include <cstddef>

#include "text/text_shape.hpp"

namespace flashgate::detail {

inline constexpr std::size_t family_count = 5;

/// Row: Shape; column: TokenizerFamily, both in the order of their enums.
extern const std::array<std::array<double, family_count>, shape_count> estimate_weights;

}  // namespace flashgate::detail

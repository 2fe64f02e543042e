#include <iterator>

#include "text/text_shape.hpp"

namespace flashgate {

namespace {
constexpr std::string_view shape_names[] = {
    "word_known",
    "word_known_bare",
    "word_known_title",
    "word_known_upper",
    "word_short",
    "word_unknown",
    "pair_common",
    "pair_rare",
    "pair_upper",
    "foreign_word",
    "foreign_pair",
    "foreign_letter",
    "digit",
    "digit_triple",
    "space_before_digit",
    "space_before_wide",
    "space_run",
    "space_run_16",
    "tab_run",
    "tab_more",
    "newline_run",
    "newline_after_punct",
    "newline_more",
    "blank_change",
    "punct_run",
    "punct_prefix",
    "punct_same",
    "punct_same_rare",
    "punct_pair_common",
    "punct_pair_chain",
    "punct_pair_rare",
    "control",
    "han_pair",
    "han_pair_o200k",
    "han_pair_llama3",
    "han_pair_both",
    "han_common",
    "han_medium",
    "han_rare",
    "han_rarest",
    "hiragana",
    "katakana",
    "kana_run",
    "hangul_common",
    "hangul_medium",
    "hangul_rare",
    "hangul_rarest",
    "cyrillic_word",
    "cyrillic_letter",
    "greek_word",
    "greek_letter",
    "arabic_word",
    "arabic_letter",
    "hebrew_word",
    "hebrew_letter",
    "thai_letter",
    "devanagari_letter",
    "other_word",
    "other_letter_2",
    "other_letter_3",
    "rare_letter_3",
    "cjk_mark",
    "general_mark",
    "symbol",
    "symbol_same",
    "pictograph",
    "emoji",
    "joiner",
    "other_4",
    "bad_byte",
    "text",
};
static_assert(std::size(shape_names) == shape_count);
}  // namespace

std::string_view name(Shape shape) {
  const auto index = static_cast<std::size_t>(shape);
  return index < shape_count ? shape_names[index] : "unknown";
}

}  // namespace flashgate

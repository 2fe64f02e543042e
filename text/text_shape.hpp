#pragma once
// What a text is made of, counted in the units that tokenizers split by: known words, letter pairs,
// digit groups, punctuation runs, Han words and characters, letters of other scripts. The token
// estimate is a weighted sum of these counts. Any bytes, one pass, no allocation, pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flashgate {

/// One countable thing. The order is the order of the rows in text/estimate_weights.cpp.
enum class Shape : std::uint8_t {
  word_known,        // an ASCII word that the vocabularies hold, after a space or a line start
  word_known_bare,   // the same right after punctuation, a digit, or a change of case
  word_known_title,  // the same with a capital first letter
  word_known_upper,  // the same all in capitals
  word_short,        // one or two letters
  word_unknown,      // any other word; its letters are counted in pairs
  pair_common,       // two letters that often stand together
  pair_rare,
  pair_upper,      // two letters of a word in capitals
  foreign_word,    // a word with letters like é or ł
  foreign_pair,    // ASCII letters in it
  foreign_letter,  // the letters beyond ASCII in it
  digit,
  digit_triple,  // a group of up to three digits
  space_before_digit,
  space_before_wide,
  space_run,     // two or more spaces
  space_run_16,  // each further 16 of them
  tab_run,
  tab_more,  // each further tab of a run
  newline_run,
  newline_after_punct,
  newline_more,  // each further four line ends in a run
  blank_change,  // one kind of blank after another
  punct_run,
  punct_prefix,       // a single punctuation mark in front of a letter
  punct_same,         // the same mark again, of those that rules and fences are made of
  punct_same_rare,    // another mark the third time and on
  punct_pair_common,  // a pair that the vocabularies hold
  punct_pair_chain,   // such a pair that begins with the end of another
  punct_pair_rare,
  control,
  han_pair,         // a two-character word of qwen or deepseek
  han_pair_o200k,   // … and of o200k
  han_pair_llama3,  // … and of llama3
  han_pair_both,    // … and of both
  han_common,
  han_medium,
  han_rare,
  han_rarest,
  hiragana,
  katakana,
  kana_run,
  hangul_common,
  hangul_medium,
  hangul_rare,
  hangul_rarest,
  cyrillic_word,
  cyrillic_letter,
  greek_word,
  greek_letter,
  arabic_word,
  arabic_letter,
  hebrew_word,
  hebrew_letter,
  thai_letter,
  devanagari_letter,
  other_word,
  other_letter_2,  // two UTF-8 bytes
  other_letter_3,  // three: scripts with a place in the vocabularies
  rare_letter_3,   // three: scripts and ideographs spelt out byte by byte
  cjk_mark,        // ，。「」 and full-width forms
  general_mark,    // dashes, curly quotes, ellipsis
  symbol,          // arrows, mathematics, boxes
  symbol_same,     // the same one again
  pictograph,      // ☀ ✅ and the like, three bytes
  emoji,           // four bytes
  joiner,          // variation selectors, zero-width joiners, skin tones
  other_4,         // any other character of four bytes
  bad_byte,        // not UTF-8
  text,            // once for a text that is not empty: what its ends cost
  count_
};
inline constexpr std::size_t shape_count = static_cast<std::size_t>(Shape::count_);

using ShapeCounts = std::array<std::uint64_t, shape_count>;

ShapeCounts count_shapes(std::string_view utf8);

/// The name as written above, for the table of weights and the fitting tool.
std::string_view name(Shape shape);

}  // namespace flashgate

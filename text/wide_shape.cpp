#include "text/wide_shape.hpp"

#include <algorithm>
#include <iterator>

#include "text/shape_tables.hpp"

namespace flashgate::detail {

namespace {

/// A block of Unicode whose characters are counted alike. `word` is counted once for each run of
/// the block, if it is not `count_`.
struct Block {
  std::uint32_t first;
  std::uint32_t last;
  Shape each;
  Shape run;
};

constexpr Shape none = Shape::count_;
constexpr Block blocks[] = {
    {0x00A0, 0x00BF, Shape::general_mark, none},
    {0x00C0, 0x024F, Shape::foreign_letter, Shape::foreign_word},
    {0x0250, 0x036F, Shape::other_letter_2, Shape::other_word},
    {0x0370, 0x03FF, Shape::greek_letter, Shape::greek_word},
    {0x0400, 0x052F, Shape::cyrillic_letter, Shape::cyrillic_word},
    {0x0530, 0x058F, Shape::other_letter_2, Shape::other_word},
    {0x0590, 0x05FF, Shape::hebrew_letter, Shape::hebrew_word},
    {0x0600, 0x06FF, Shape::arabic_letter, Shape::arabic_word},
    {0x0700, 0x07FF, Shape::other_letter_2, Shape::other_word},
    {0x0800, 0x08FF, Shape::other_letter_3, Shape::other_word},
    {0x0900, 0x097F, Shape::devanagari_letter, none},
    {0x0980, 0x0DFF, Shape::other_letter_3, Shape::other_word},
    {0x0E00, 0x0E7F, Shape::thai_letter, none},
    {0x0E80, 0x109F, Shape::rare_letter_3, Shape::other_word},
    {0x10A0, 0x10FF, Shape::other_letter_3, Shape::other_word},
    {0x1100, 0x1DFF, Shape::rare_letter_3, Shape::other_word},
    {0x1E00, 0x1EFF, Shape::foreign_letter, Shape::foreign_word},
    {0x1F00, 0x1FFF, Shape::other_letter_3, Shape::other_word},
    {0x200B, 0x200F, Shape::joiner, none},
    {0x2010, 0x206F, Shape::general_mark, none},
    {0x2070, 0x25FF, Shape::symbol, none},
    {0x2600, 0x27BF, Shape::pictograph, none},
    {0x27C0, 0x2BFF, Shape::symbol, none},
    {0x3000, 0x3020, Shape::cjk_mark, none},
    {0x3041, 0x309F, Shape::hiragana, Shape::kana_run},
    {0x30A0, 0x30FF, Shape::katakana, Shape::kana_run},
    {0xFE00, 0xFE0F, Shape::joiner, none},
    {0xFE30, 0xFE4F, Shape::cjk_mark, none},
    {0xFF00, 0xFFEF, Shape::cjk_mark, none},
    {0x1F000, 0x1F3FA, Shape::emoji, none},
    {0x1F3FB, 0x1F3FF, Shape::joiner, none},
    {0x1F400, 0x1FAFF, Shape::emoji, none},
};

constexpr Block wide_rest{0, 0xFFFF, Shape::rare_letter_3, Shape::other_word};
constexpr Block widest_rest{0x10000, 0x10FFFF, Shape::other_4, none};

const Block& block_of(std::uint32_t value) {
  const auto* found = std::lower_bound(
      std::begin(blocks), std::end(blocks), value,
      [](const Block& block, std::uint32_t wanted) { return block.last < wanted; });
  if (found != std::end(blocks) && found->first <= value) return *found;
  return value < 0x10000 ? wide_rest : widest_rest;
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0U) == 0x80;
}
bool is_han(std::uint32_t value) {
  return value - han_first < han_count;
}
bool is_hangul(std::uint32_t value) {
  return value - hangul_first < hangul_count;
}

bool pair_held(CodePoint first, CodePoint second, PairHolder holder) {
  return bit_at(han_pair_table, han_pair_hash(first.value, second.value, holder));
}

class WideScanner {
 public:
  WideScanner(const unsigned char* at, const unsigned char* end, ShapeCounts& counts)
      : at_(at), end_(end), counts_(counts) {}

  const unsigned char* run() {
    while (at_ < end_ && *at_ >= 0x80) {
      const CodePoint here = decode_at(at_, end_);
      if (here.bytes == 0) {
        add(Shape::bad_byte);
        ++at_;
        last_run_ = none;
      } else if (is_han(here.value)) {
        han(here);
      } else if (is_hangul(here.value)) {
        add_class(Shape::hangul_common, two_bits_at(hangul_class_table, here.value - hangul_first));
        at_ += here.bytes;
        last_run_ = none;
      } else {
        other(here);
      }
    }
    return at_;
  }

 private:
  void add(Shape shape) { ++counts_[static_cast<std::size_t>(shape)]; }
  void add_class(Shape first, std::uint32_t cls) {
    ++counts_[static_cast<std::size_t>(first) + cls];
  }

  void han(CodePoint here) {
    at_ += here.bytes;
    last_run_ = none;
    const CodePoint next = at_ < end_ ? decode_at(at_, end_) : CodePoint{};
    const std::uint32_t cls = two_bits_at(han_class_table, here.value - han_first);
    // The rarest characters and doubled ones would only pass for a pair by accident.
    if (is_han(next.value) && next.value != here.value && cls < 3 &&
        pair_held(here, next, PairHolder::anyone)) {
      const std::uint32_t by_o200k = pair_held(here, next, PairHolder::o200k) ? 1 : 0;
      const std::uint32_t by_llama3 = pair_held(here, next, PairHolder::llama3) ? 2 : 0;
      add_class(Shape::han_pair, by_o200k + by_llama3);
      at_ += next.bytes;
      return;
    }
    add_class(Shape::han_common, cls);
  }

  void other(CodePoint here) {
    const Block& block = block_of(here.value);
    const bool same = block.each == Shape::symbol && here.value == last_symbol_;
    add(same ? Shape::symbol_same : block.each);
    if (block.run != none && block.run != last_run_) add(block.run);
    last_run_ = block.run;
    last_symbol_ = here.value;
    at_ += here.bytes;
  }

  const unsigned char* at_;
  const unsigned char* end_;
  ShapeCounts& counts_;
  Shape last_run_ = none;
  std::uint32_t last_symbol_ = 0;
};

}  // namespace

CodePoint decode_at(const unsigned char* at, const unsigned char* end) {
  const auto left = static_cast<std::size_t>(end - at);
  const std::uint32_t lead = at[0];
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && left >= 2 && is_continuation(at[1])) {
    return {(lead & 0x1FU) << 6U | (at[1] & 0x3FU), 2};
  }
  if (lead >= 0xE0 && lead < 0xF0 && left >= 3 && is_continuation(at[1]) &&
      is_continuation(at[2])) {
    const std::uint32_t value = (lead & 0x0FU) << 12U | (at[1] & 0x3FU) << 6U | (at[2] & 0x3FU);
    const bool surrogate = value >= 0xD800 && value < 0xE000;
    return value >= 0x800 && !surrogate ? CodePoint{value, 3} : CodePoint{};
  }
  if (lead >= 0xF0 && lead < 0xF5 && left >= 4 && is_continuation(at[1]) &&
      is_continuation(at[2]) && is_continuation(at[3])) {
    const std::uint32_t value =
        (lead & 0x07U) << 18U | (at[1] & 0x3FU) << 12U | (at[2] & 0x3FU) << 6U | (at[3] & 0x3FU);
    return value >= 0x10000 && value < 0x110000 ? CodePoint{value, 4} : CodePoint{};
  }
  return {};
}

std::size_t latin_letter_bytes(const unsigned char* at, const unsigned char* end) {
  if (*at < 0xC3 || *at > 0xE1) return 0;
  const CodePoint here = decode_at(at, end);
  const bool latin =
      (here.value >= 0xC0 && here.value <= 0x24F && here.value != 0xD7 && here.value != 0xF7) ||
      (here.value >= 0x1E00 && here.value <= 0x1EFF);
  return latin ? here.bytes : 0;
}

const unsigned char* scan_wide(const unsigned char* at, const unsigned char* end,
                               ShapeCounts& counts) {
  return WideScanner(at, end, counts).run();
}

}  // namespace flashgate::detail

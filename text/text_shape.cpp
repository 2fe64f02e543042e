#include "text/text_shape.hpp"

#include <bit>
#include <cstring>

#include "text/shape_tables.hpp"
#include "text/wide_shape.hpp"

namespace flashgate {

namespace {

using detail::ByteKind;

constexpr std::array<ByteKind, 256> make_byte_kinds() {
  std::array<ByteKind, 256> kinds{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    ByteKind kind = ByteKind::control;
    if (byte >= 0x80) {
      kind = ByteKind::high;
    } else if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
      kind = ByteKind::blank;
    } else if (byte >= '0' && byte <= '9') {
      kind = ByteKind::digit;
    } else if (byte >= 'a' && byte <= 'z') {
      kind = ByteKind::lower;
    } else if (byte >= 'A' && byte <= 'Z') {
      kind = ByteKind::upper;
    } else if (byte > 0x20 && byte < 0x7F) {
      kind = ByteKind::mark;
    }
    kinds[byte] = kind;
  }
  return kinds;
}
constexpr auto byte_kinds = make_byte_kinds();

constexpr unsigned mark_index(unsigned char mark) {
  if (mark < '0') return mark - '!';
  if (mark < 'A') return mark - ':' + 15U;
  if (mark < 'a') return mark - '[' + 22U;
  return mark - '{' + 28U;
}

constexpr std::uint64_t lower_case_bits = 0x2020202020202020U;
constexpr std::uint64_t all_bytes = ~std::uint64_t{0};
constexpr std::array<std::uint64_t, 9> keep_bytes = {
    0,
    all_bytes >> 56U,
    all_bytes >> 48U,
    all_bytes >> 40U,
    all_bytes >> 32U,
    all_bytes >> 24U,
    all_bytes >> 16U,
    all_bytes >> 8U,
    all_bytes,
};

constexpr std::uint64_t high_bits = 0x8080808080808080U;
constexpr std::uint64_t every(std::uint64_t byte) {
  return byte * 0x0101010101010101U;
}

std::uint64_t load_8(const unsigned char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

bool is_letter(unsigned char byte) {
  return (byte | 0x20U) - 'a' < 26U;
}

/// How many ASCII letters the eight bytes begin with; little-endian, as all our targets are.
std::size_t letters_at_front(std::uint64_t word) {
  const std::uint64_t lower = (word | lower_case_bits) & ~high_bits;
  const std::uint64_t from_a = lower + every(0x80 - 'a');
  const std::uint64_t beyond_z = lower + every(0x80 - 'z' - 1);
  const std::uint64_t others = ~(from_a & ~beyond_z & ~word) & high_bits;
  return static_cast<std::size_t>(std::countr_zero(others)) / 8;  // 64 / 8 when there are none
}
static_assert(std::endian::native == std::endian::little);

/// Marks that rules, fences and ellipses are made of: long runs of them are few tokens.
constexpr std::uint32_t make_ruling_marks() {
  std::uint32_t set = 0;
  for (const char mark : std::string_view("#*-./=_")) {
    set |= 1U << mark_index(static_cast<unsigned char>(mark));
  }
  return set;
}
constexpr std::uint32_t ruling_marks = make_ruling_marks();

using Bytes = const unsigned char*;

constexpr std::size_t long_word_letters = 9;

std::uint64_t common_pairs(Bytes first, Bytes last) {
  std::uint64_t common = 0;
  unsigned before = 26;  // no letter: a letter that stands thrice is nobody's common pair
  unsigned previous = (*first | 0x20U) - 'a';
  for (Bytes p = first + 1; p < last; ++p) {
    const unsigned letter = (*p | 0x20U) - 'a';
    const bool thrice = letter == previous && previous == before;
    if (!thrice) common += detail::letter_pair_table[previous] >> letter & 1U;
    before = previous;
    previous = letter;
  }
  return common;
}

/// Walks the bytes once; each member function eats one run of its kind and returns its end.
class ShapeScanner {
 public:
  explicit ShapeScanner(Bytes end) : end_(end) {}

  ShapeCounts run(Bytes at) {
    if (at < end_) add(Shape::text);
    while (at < end_) {
      switch (byte_kinds[*at]) {
        case ByteKind::lower:
        case ByteKind::upper:
          at = words(at);
          break;
        case ByteKind::blank:
          at = blanks(at);
          break;
        case ByteKind::digit:
          at = digits(at);
          break;
        case ByteKind::mark:
          at = marks(at);
          break;
        case ByteKind::control:
          add(Shape::control);
          ++at;
          break;
        case ByteKind::high:
          at = detail::scan_wide(at, end_, counts_);
          after_space_ = false;
          break;
      }
    }
    return counts_;
  }

 private:
  void add(Shape shape, std::uint64_t times = 1) {
    counts_[static_cast<std::size_t>(shape)] += times;
  }
  std::size_t left(Bytes at) const { return static_cast<std::size_t>(end_ - at); }
  ByteKind kind(Bytes at) const { return at < end_ ? byte_kinds[*at] : ByteKind::control; }

  Bytes words(Bytes at);
  Bytes long_word(Bytes at);
  void word_part(Bytes first, Bytes last, bool bare);
  void simple_word(Bytes first, std::size_t length, bool title, bool bare, bool is_known);
  void strange_word(Bytes first, std::size_t length, bool title, bool bare, bool is_known);
  Bytes foreign_word(Bytes first, Bytes last);
  bool known(Bytes first, std::size_t length) const;
  Bytes blanks(Bytes at);
  Bytes digits(Bytes at);
  Bytes marks(Bytes at);

  Bytes end_;
  bool after_space_ = true;
  ShapeCounts counts_{};
};

/// The common case, words of up to 15 letters without inner capitals and one space between them:
/// two loads and a hash each. What differs from word to word is computed and not branched on,
/// because nothing could foretell those branches.
Bytes ShapeScanner::words(Bytes at) {
  while (left(at) > 17) {
    const std::uint64_t low = load_8(at);
    const std::size_t low_letters = letters_at_front(low);
    std::uint64_t high = 0;
    std::size_t high_letters = 0;
    if (low_letters == 8) {
      high = load_8(at + 8);
      high_letters = letters_at_front(high);
    }
    const std::size_t length = low_letters + high_letters;
    const std::uint64_t low_capitals = ~low & lower_case_bits & keep_bytes[low_letters];
    const std::uint64_t high_capitals = ~high & lower_case_bits & keep_bytes[high_letters];
    const bool inner_capitals = ((low_capitals & ~std::uint64_t{0xFF}) | high_capitals) != 0;
    if (length == 16 || inner_capitals || at[length] >= 0xC3) return long_word(at);
    const auto hash = detail::word_hash((low | lower_case_bits) & keep_bytes[low_letters],
                                        (high | lower_case_bits) & keep_bytes[high_letters]);
    simple_word(at, length, low_capitals != 0, !after_space_, detail::known_word(hash));
    at += length;
    after_space_ = at[0] == ' ' && is_letter(at[1]);
    if (!after_space_) return at;
    ++at;
  }
  return long_word(at);
}

Bytes ShapeScanner::long_word(Bytes at) {
  const bool bare = !after_space_;
  after_space_ = false;
  // A part is capitals, then lower case; the next capital starts another part.
  const Bytes start = at;
  Bytes part = at;
  bool seen_lower = false;
  for (; at < end_; ++at) {
    const ByteKind here = byte_kinds[*at];
    if (here == ByteKind::lower) {
      seen_lower = true;
    } else if (here != ByteKind::upper) {
      break;
    } else if (seen_lower) {
      word_part(part, at, bare || part != start);
      part = at;
      seen_lower = false;
    }
  }
  if (at < end_ && *at >= 0xC3 && part == start) {
    if (const Bytes last = foreign_word(start, at); last != at) return last;
  }
  word_part(part, at, bare || part != start);
  return at;
}

void ShapeScanner::word_part(Bytes first, Bytes last, bool bare) {
  const auto length = static_cast<std::size_t>(last - first);
  const bool title = byte_kinds[first[0]] == ByteKind::upper;
  const bool upper = title && length > 1 && byte_kinds[first[1]] == ByteKind::upper;
  if (!upper || length <= 2) return simple_word(first, length, title, bare, known(first, length));
  add(known(first, length) ? Shape::word_known_upper : Shape::word_unknown);
  add(Shape::pair_upper, length - 1);
}

inline void ShapeScanner::simple_word(Bytes first, std::size_t length, bool title, bool bare,
                                      bool is_known) {
  const bool is_short = length <= 2;
  if (!is_short && (!is_known || length >= long_word_letters)) {
    return strange_word(first, length, title, bare, is_known);
  }
  const Shape known_as = title  ? Shape::word_known_title
                         : bare ? Shape::word_known_bare
                                : Shape::word_known;
  add(is_short ? Shape::word_short : known_as);
}

void ShapeScanner::strange_word(Bytes first, std::size_t length, bool title, bool bare,
                                bool is_known) {
  const std::uint64_t common = common_pairs(first, first + length);
  // A long row of unlikely pairs passed for known by accident, and would cost the most.
  if (is_known && common * 2 >= length) {
    return add(title ? Shape::word_known_title : bare ? Shape::word_known_bare : Shape::word_known);
  }
  add(Shape::word_unknown);
  add(Shape::pair_common, common);
  add(Shape::pair_rare, length - 1 - common);
}

bool ShapeScanner::known(Bytes first, std::size_t length) const {
  if (length > detail::word_letters_max) return false;
  std::array<std::uint64_t, 2> halves{};
  std::memcpy(halves.data(), first, length);
  const std::size_t low = length < 8 ? length : 8;
  return detail::known_word(
      detail::word_hash((halves[0] | lower_case_bits) & keep_bytes[low],
                        (halves[1] | lower_case_bits) & keep_bytes[length - low]));
}

/// `first` to `last` are ASCII letters; returns `last` if no other Latin letter follows.
Bytes ShapeScanner::foreign_word(Bytes first, Bytes last) {
  auto ascii = static_cast<std::uint64_t>(last - first);
  std::uint64_t beyond = 0;
  Bytes at = last;
  while (at < end_) {
    const ByteKind here = byte_kinds[*at];
    if (here == ByteKind::lower || here == ByteKind::upper) {
      ++ascii;
      ++at;
    } else if (const std::size_t bytes = detail::latin_letter_bytes(at, end_); bytes > 0) {
      ++beyond;
      at += bytes;
    } else {
      break;
    }
  }
  if (beyond == 0) return last;
  add(Shape::foreign_word);
  add(Shape::foreign_pair, ascii);
  add(Shape::foreign_letter, beyond);
  return at;
}

Bytes ShapeScanner::blanks(Bytes at) {
  const Bytes first = at;
  Bytes rest = at;  // what follows the last line end
  std::uint64_t line_ends = 0;
  for (; at < end_ && byte_kinds[*at] == ByteKind::blank; ++at) {
    if (at > first && at[-1] != *at && at[-1] != '\r') add(Shape::blank_change);
    if (*at == '\n' || *at == '\r') {
      rest = at + 1;
      ++line_ends;
    }
  }
  after_space_ = true;
  if (line_ends > 0) {
    add(Shape::newline_run);
    add(Shape::newline_more, line_ends / 4);
  }
  const auto trailing = static_cast<std::uint64_t>(at - rest);
  if (trailing == 0) return at;
  if (at[-1] == '\t') {
    add(Shape::tab_run);
    add(Shape::tab_more, trailing - 1);
    return at;
  }
  if (trailing > 1) {
    add(Shape::space_run);
    add(Shape::space_run_16, (trailing - 1) / 16);
  }
  const ByteKind next = kind(at);
  if (next == ByteKind::digit) add(Shape::space_before_digit);
  if (next == ByteKind::high) add(Shape::space_before_wide);
  return at;
}

Bytes ShapeScanner::digits(Bytes at) {
  const Bytes first = at;
  while (kind(at) == ByteKind::digit) ++at;
  const auto length = static_cast<std::uint64_t>(at - first);
  add(Shape::digit, length);
  add(Shape::digit_triple, (length + 2) / 3);
  after_space_ = false;
  return at;
}

Bytes ShapeScanner::marks(Bytes at) {
  const Bytes first = at;
  add(Shape::punct_run);
  unsigned previous = mark_index(*at++);
  bool chained = false;
  unsigned same = 0;  // how often the mark before stood right before itself
  for (; kind(at) == ByteKind::mark; ++at) {
    const unsigned mark = mark_index(*at);
    same = mark == previous ? same + 1 : 0;
    if (same > 0 && (ruling_marks >> mark & 1U) != 0) {
      add(Shape::punct_same);
    } else if (same > 1) {
      add(Shape::punct_same_rare);
    } else {
      const bool common = (detail::punct_pair_table[previous] >> mark & 1U) != 0;
      add(!common   ? Shape::punct_pair_rare
          : chained ? Shape::punct_pair_chain
                    : Shape::punct_pair_common);
      chained = common;
    }
    previous = mark;
  }
  after_space_ = false;
  const ByteKind next = kind(at);
  const bool letter = next == ByteKind::lower || next == ByteKind::upper;
  if (letter && at - first == 1) add(Shape::punct_prefix);
  if (at < end_ && (*at == '\n' || *at == '\r')) add(Shape::newline_after_punct);
  return at;
}

}  // namespace

ShapeCounts count_shapes(std::string_view utf8) {
  const auto* first = reinterpret_cast<Bytes>(utf8.data());
  return ShapeScanner(first + utf8.size()).run(first);
}

}  // namespace flashgate

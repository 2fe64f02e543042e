#include "protocol/json_cursor.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace flashgate {
namespace {

constexpr std::uint64_t ones = 0x0101010101010101U;
constexpr std::uint64_t highs = 0x8080808080808080U;

std::uint64_t load(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The high bit of each byte that is zero; exact up to the first one, which is all we use.
std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - ones) & ~word & highs;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_special(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "word scans count from the low byte");

#if defined(__SSE2__)
namespace {

__m128i load_wide(const char* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

__m128i equal(__m128i bytes, char c) {
  return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
}

// `at` moves to the first byte that `hits` marks; false: to the last few bytes, none was marked.
template <class Hits>
bool find_wide(const char*& at, const char* end, Hits hits) {
  for (; end - at >= 16; at += 16) {
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hits(load_wide(at))));
    if (mask != 0) {
      at += std::countr_zero(mask);
      return true;
    }
  }
  return false;
}

bool find_special_wide(const char*& at, const char* end) {
  return find_wide(at, end, [](__m128i bytes) {
    const __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    return _mm_or_si128(controls, _mm_or_si128(equal(bytes, '"'), equal(bytes, '\\')));
  });
}

bool find_line_end_wide(const char*& at, const char* end) {
  return find_wide(
      at, end, [](__m128i bytes) { return _mm_or_si128(equal(bytes, '\n'), equal(bytes, '\r')); });
}

}  // namespace
#else
namespace {

bool find_special_wide(const char*&, const char*) {
  return false;
}
bool find_line_end_wide(const char*&, const char*) {
  return false;
}

}  // namespace
#endif

const char* find_string_special(const char* at, const char* end) {
  if (find_special_wide(at, end)) return at;
  for (; end - at >= 8; at += 8) {
    const std::uint64_t word = load(at);
    const std::uint64_t controls = (word - ones * 0x20) & ~word & highs;
    const std::uint64_t hits =
        zero_bytes(word ^ (ones * '"')) | zero_bytes(word ^ (ones * '\\')) | controls;
    if (hits != 0) return at + std::countr_zero(hits) / 8;
  }
  while (at != end && !is_special(*at)) ++at;
  return at;
}

const char* find_line_end(const char* at, const char* end) {
  if (find_line_end_wide(at, end)) return at;
  for (; end - at >= 8; at += 8) {
    const std::uint64_t word = load(at);
    const std::uint64_t hits = zero_bytes(word ^ (ones * '\n')) | zero_bytes(word ^ (ones * '\r'));
    if (hits != 0) return at + std::countr_zero(hits) / 8;
  }
  while (at != end && *at != '\n' && *at != '\r') ++at;
  return at;
}

JsonCursor::JsonCursor(std::string_view text, std::size_t depth_max)
    : begin_(text.data()),
      at_(text.data()),
      end_(text.data() + text.size()),
      depth_max_(std::min(depth_max, depth_limit)) {}

char JsonCursor::peek() {
  while (at_ != end_ && is_space(*at_)) ++at_;
  return at_ != end_ ? *at_ : '\0';
}

bool JsonCursor::fail() {
  failed_ = true;
  at_ = end_;
  return false;
}

std::size_t JsonCursor::offset() {
  peek();
  return static_cast<std::size_t>(at_ - begin_);
}

bool JsonCursor::at_end() {
  peek();
  return !failed_ && at_ == end_;
}

JsonType JsonCursor::type() {
  switch (const char c = peek()) {
    case '{':
      return JsonType::object;
    case '[':
      return JsonType::array;
    case '"':
      return JsonType::string;
    case 't':
    case 'f':
      return JsonType::boolean;
    case 'n':
      return JsonType::null;
    default:
      return is_digit(c) || c == '-' ? JsonType::number : JsonType::bad;
  }
}

bool JsonCursor::open(bool object) {
  if (depth_ == depth_max_) {
    too_deep_ = true;
    return fail();
  }
  ++at_;
  ++depth_;
  const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
  std::uint64_t& word = kinds_[depth_ / 64];
  word = object ? word | bit : word & ~bit;
  fresh_ = true;
  return true;
}

bool JsonCursor::top_is_object() const {
  return ((kinds_[depth_ / 64] >> (depth_ % 64)) & 1) != 0;
}

// True if the innermost bracket ends here; false with the cursor at the next item, or failed.
bool JsonCursor::close(char bracket) {
  const char c = peek();
  separator_offset_ = static_cast<std::size_t>(at_ - begin_);
  if (c == bracket) {
    ++at_;
    --depth_;
    fresh_ = false;
    return true;
  }
  if (!fresh_) {
    if (c != ',') return fail();
    ++at_;
  }
  fresh_ = false;
  return false;
}

bool JsonCursor::begin_object() {
  return peek() == '{' ? open(true) : fail();
}

bool JsonCursor::begin_array() {
  return peek() == '[' ? open(false) : fail();
}

bool JsonCursor::read_key(JsonString& key) {
  if (peek() != '"') return fail();
  key_offset_ = static_cast<std::size_t>(at_ - begin_);
  if (!read_string(key)) return false;
  if (peek() != ':') return fail();
  ++at_;
  return true;
}

bool JsonCursor::next_member(JsonString& key) {
  if (failed_ || close('}') || failed_) return false;
  return read_key(key);
}

bool JsonCursor::next_element() {
  return !failed_ && !close(']') && !failed_;
}

// REQUIRES: the cursor is at the opening quote.
bool JsonCursor::read_string(JsonString& out) {
  const char* const first = ++at_;
  bool escaped = false;
  for (;;) {
    at_ = find_string_special(at_, end_);
    if (at_ == end_) return fail();
    if (*at_ == '"') break;
    if (*at_ != '\\' || end_ - at_ < 2) return fail();
    escaped = true;
    switch (at_[1]) {
      case 'u':
        if (end_ - at_ < 6 || !std::all_of(at_ + 2, at_ + 6, is_hex)) return fail();
        at_ += 6;
        break;
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        at_ += 2;
        break;
      default:
        return fail();
    }
  }
  out.raw = {first, static_cast<std::size_t>(at_ - first)};
  out.escaped = escaped;
  ++at_;
  return true;
}

bool JsonCursor::read_number() {
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  };
  if (*at_ == '-') ++at_;
  if (at_ != end_ && *at_ == '0') {
    ++at_;
  } else if (!digits()) {
    return fail();
  }
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (!digits()) return fail();
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!digits()) return fail();
  }
  // "01" or "1x" fail at the next token: only a separator may follow a value.
  return true;
}

bool JsonCursor::literal(std::string_view word) {
  if (static_cast<std::size_t>(end_ - at_) < word.size() ||
      std::memcmp(at_, word.data(), word.size()) != 0) {
    return fail();
  }
  at_ += word.size();
  return true;
}

JsonString JsonCursor::string() {
  JsonString out;
  if (peek() != '"') {
    fail();
  } else if (!read_string(out)) {
    return {};
  }
  return out;
}

std::string_view JsonCursor::number() {
  if (type() != JsonType::number) {
    fail();
    return {};
  }
  const char* const first = at_;
  if (!read_number()) return {};
  return {first, static_cast<std::size_t>(at_ - first)};
}

bool JsonCursor::boolean() {
  if (peek() == 't') return literal("true");
  literal("false");
  return false;
}

bool JsonCursor::scalar() {
  JsonString ignored;
  switch (*at_) {
    case '"':
      return read_string(ignored);
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      return is_digit(*at_) || *at_ == '-' ? read_number() : fail();
  }
}

std::string_view JsonCursor::skip() {
  peek();
  const char* const first = at_;
  const std::size_t outside = depth_;
  do {
    const char c = peek();
    if (at_ == end_) {
      fail();
    } else if (c == '{' || c == '[') {
      open(c == '{');
    } else {
      scalar();
    }
    // Step over what ends here, up to the next value or out of the one we came for.
    while (!failed_ && depth_ > outside) {
      const bool object = top_is_object();
      if (close(object ? '}' : ']')) continue;
      JsonString key;
      if (!failed_ && object) read_key(key);
      break;
    }
  } while (!failed_ && depth_ > outside);
  if (failed_) return {};
  return {first, static_cast<std::size_t>(at_ - first)};
}

}  // namespace flashgate

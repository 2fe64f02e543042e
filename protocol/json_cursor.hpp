#pragma once
// A strict, skimming JSON reader (RFC 8259): the caller walks what it wants and skips the rest, and
// every token is validated on the way in one linear pass with a bounded stack. Our own, because a
// DOM refuses 2^64, 1e400 and "\ud83d", which must pass byte for byte, and simdjson's on-demand
// reader accepts garbage in values that nobody visits. UTF-8 is the caller's check, once per text.
// Views point into the text. One thread at a time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flashgate {

/// A string between its quotes, escapes not resolved.
struct JsonString {
  std::string_view raw{};
  bool escaped = false;
};

enum class JsonType { object, array, string, number, boolean, null, bad };

class JsonCursor {
 public:
  static constexpr std::size_t depth_limit = 1024;

  /// `depth_max` is at most depth_limit.
  explicit JsonCursor(std::string_view text, std::size_t depth_max = 512);

  /// Type of the value at the cursor, by its first byte.
  JsonType type();

  // The reading calls fail for good when the value is another one or malformed: then every call
  // returns an empty value or false, so loops end.
  bool begin_object();
  /// After begin_object: true and the key, or false after the '}'.
  bool next_member(JsonString& key);
  bool begin_array();
  bool next_element();
  JsonString string();
  std::string_view number();
  bool boolean();
  /// Any value, with all that is in it; returns its raw text.
  std::string_view skip();

  /// Only white space is left.
  bool at_end();
  bool failed() const { return failed_; }
  bool too_deep() const { return too_deep_; }
  /// Of the next byte that is not white space.
  std::size_t offset();
  /// Of the cursor: just after what was read last.
  std::size_t offset_here() const { return static_cast<std::size_t>(at_ - begin_); }
  /// Of the '"' of the key that next_member gave last.
  std::size_t key_offset() const { return key_offset_; }
  /// Of the ',' before that key, or of the key itself if it is the first.
  std::size_t separator_offset() const { return separator_offset_; }

 private:
  char peek();
  bool fail();
  bool open(bool object);
  bool close(char bracket);
  bool scalar();
  bool literal(std::string_view word);
  bool read_string(JsonString& out);
  bool read_number();
  bool read_key(JsonString& key);
  bool top_is_object() const;

  const char* begin_;
  const char* at_;
  const char* end_;
  std::size_t depth_ = 0;
  std::size_t depth_max_;
  std::size_t key_offset_ = 0;
  std::size_t separator_offset_ = 0;
  std::array<std::uint64_t, depth_limit / 64 + 1> kinds_{};  // a bit per open bracket: object
  bool fresh_ = false;  // the innermost bracket was opened just now
  bool failed_ = false;
  bool too_deep_ = false;
};

/// Appends the decoded string, at most `bytes_max` of it and never half a character. Escapes of
/// lone surrogates become U+FFFD. False: it was cut.
bool append_decoded(std::string& out, JsonString string,
                    std::size_t bytes_max = static_cast<std::size_t>(-1));
bool json_equals(JsonString string, std::string_view text);
/// The number rounded down and clamped to 64 bits.
/// REQUIRES: it was validated by a cursor.
std::int64_t json_integer(std::string_view number);
/// First '"', '\\' or control character; `end` if there is none.
const char* find_string_special(const char* at, const char* end);
/// First CR or LF; `end` if there is none.
const char* find_line_end(const char* at, const char* end);

}  // namespace flashgate

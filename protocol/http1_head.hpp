#pragma once
// The header gate: bytes of an HTTP/1 message head to a checked value, or a refusal. Stricter than
// most parsers on purpose (RFC 9112 §2.2, §3.2, §5.2, §6; the framing matrix in docs/wire.md):
// one unambiguous framing or none. Views point into the caller's bytes. Pure, any thread.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/api_error.hpp"

namespace flashgate {

struct HeaderField {
  std::string_view name{};
  std::string_view value{};
};

struct HeadLimits {
  std::size_t bytes_max = 64 * 1024;
  std::size_t fields_max = 200;
  std::size_t target_bytes_max = 16 * 1024;
};

enum class Framing { none, length, chunked, until_close };

struct RequestHead {
  std::string_view method{};
  std::string_view target{};
  std::string_view host{};
  int minor_version = 1;
  bool keep_alive = true;
  bool expect_continue = false;
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  std::vector<HeaderField> fields{};
};

struct ResponseHead {
  int status = 0;
  int minor_version = 1;
  bool keep_alive = true;
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  std::vector<HeaderField> fields{};
};

struct HeadRefusal {
  ApiErrorKind kind = ApiErrorKind::invalid_request;
  std::string_view why{};  // static text, quotes no input
};

/// Finds the end of a head without looking at a byte twice. Feed it the whole buffer each time.
class HeadScanner {
 public:
  enum class State { incomplete, complete, refused };
  /// REQUIRES: `buffer` begins with what was passed before.
  State scan(std::string_view buffer, const HeadLimits& limits, bool is_request);
  /// Leading empty lines to skip (requests only, RFC 9112 §2.2).
  std::size_t begin() const { return begin_; }
  /// One past the empty line that ends the head.
  std::size_t end() const { return at_; }
  HeadRefusal refusal() const { return refusal_; }
  void reset() { *this = HeadScanner{}; }

 private:
  std::size_t begin_ = 0;
  std::size_t line_ = 0;
  std::size_t at_ = 0;
  std::size_t lines_ = 0;
  HeadRefusal refusal_{};
};

/// `head` is what the scanner found, the empty line included. False: `refusal` says why.
bool parse_request_head(std::string_view head, const HeadLimits& limits, RequestHead& out,
                        HeadRefusal& refusal);
/// `to_head_request`: the answer to HEAD has no body whatever its fields say (RFC 9112 §6.3).
bool parse_response_head(std::string_view head, const HeadLimits& limits, bool to_head_request,
                         ResponseHead& out, HeadRefusal& refusal);

bool iequals(std::string_view a, std::string_view b);
/// First field of that name, or an empty view with null data.
std::string_view field_value(const std::vector<HeaderField>& fields, std::string_view name);
std::size_t field_count(const std::vector<HeaderField>& fields, std::string_view name);
/// True if the comma-separated lists of all fields `name` hold `token` (case-insensitive).
bool list_has_token(const std::vector<HeaderField>& fields, std::string_view name,
                    std::string_view token);
/// Hop-by-hop by RFC 9110 §7.6.1, or named by the message's own Connection field.
bool is_hop_by_hop(const std::vector<HeaderField>& fields, std::string_view name);

}  // namespace flashgate

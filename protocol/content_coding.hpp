#pragma once
// Removes Content-Encoding (RFC 9110 §8.4): gzip, deflate, br, zstd, also stacked. Output stops at
// the cap, in memory and in time, whatever the input promises. Pure, any thread.
#include <cstddef>
#include <string>
#include <string_view>

namespace flashgate {

enum class CodingOutcome { ok, too_large, corrupt, unsupported };

/// For Accept-Encoding in our 415.
inline constexpr std::string_view accepted_codings = "gzip, deflate, br, zstd";

/// `content_encoding` is the field's value, lists are undone from the right. `out` is meaningful
/// only with ok. An empty body stays empty.
CodingOutcome decode_content(std::string_view content_encoding, std::string_view body,
                             std::size_t bytes_max, std::string& out);

}  // namespace flashgate

// Compressed bodies: any bytes under any stack of codings end in one of the outcomes, with no more
// output than the cap.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/content_coding.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flashgate;
  constexpr std::array<std::string_view, 8> codings = {
      "gzip", "deflate", "br", "zstd", "gzip, zstd", "br,deflate", "identity", "x, gzip"};
  constexpr std::size_t cap = 100'000;
  if (size < 1) return 0;
  std::string out;
  const CodingOutcome outcome =
      decode_content(codings[data[0] % codings.size()],
                     {reinterpret_cast<const char*>(data) + 1, size - 1}, cap, out);
  if (outcome == CodingOutcome::ok && out.size() > cap) std::abort();
  if (out.capacity() > 2 * (cap + 1)) std::abort();
  return 0;
}

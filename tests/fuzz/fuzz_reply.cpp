// Whole replies and error bodies: any bytes give facts and a valid, bounded error object.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json_text.hpp"
#include "protocol/json_cursor.hpp"
#include "protocol/padded_body.hpp"
#include "protocol/reply_facts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flashgate;
  if (size < 1) return 0;
  const auto api = static_cast<ApiKind>(data[0] % 7);
  const BodyBuffer body(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  const ReplyFacts facts = read_reply_facts(api, body.view(), TokenizerFamily::o200k);
  if (facts.error_message.size() > 2100) std::abort();
  if (facts.has_error && !facts.is_json) std::abort();
  const std::string error = normalize_error_body(400 + data[0] % 200, body.view());
  JsonCursor json(error);
  json.skip();
  if (!json.at_end() || !is_valid_utf8(error) || error.size() > 16 * 1024) std::abort();
  return 0;
}

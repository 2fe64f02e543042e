// Request bodies: what we accept is JSON for an independent reader too (but for the numbers and
// escapes that it cannot hold), ranges stand where they should, and an edited body is accepted
// again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/body_edit.hpp"
#include "protocol/padded_body.hpp"
#include "protocol/request_facts.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flashgate;
  if (size < 1) return 0;
  const auto api = static_cast<ApiKind>(data[0] % 7);
  const BodyBuffer body(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  FactsOptions options;
  options.families = data[0] / 7 % 32;
  const auto facts = read_request_facts(api, body.view(), options);
  if (!facts) {
    require(!facts.error().message.empty());
    return 0;
  }
  require(facts->has_model && !facts->model.empty());
  require(body.view()[facts->model_range.begin] == '"');
  require(body.view()[facts->model_range.end - 1] == '"');
  require(body.view()[facts->object_begin - 1] == '{');
  require(facts->last_user_text.size() <= RequestFacts::text_bytes_max);
  require(facts->system_text.size() <= RequestFacts::text_bytes_max);
  EditWishes wishes;
  wishes.model = "other \"name\"";
  wishes.max_tokens_cap = 100;
  wishes.ask_usage = true;
  const auto edits = plan_edits(*facts, wishes);
  BodyBuffer edited;
  for (const std::string_view piece : edited_pieces(body.view(), edits)) edited.append(piece);
  require(edited.size() == edited_size(body.size(), edits));
  const auto again = read_request_facts(api, edited.view(), options);
  require(again.has_value());
  require(again->model == wishes.model);
  require(again->stream == facts->stream);
  require(again->conversation_hash == facts->conversation_hash);
  require(!again->max_tokens || *again->max_tokens <= 100 || api == ApiKind::embeddings ||
          api == ApiKind::count_tokens || api == ApiKind::other);
  return 0;
}

#include "protocol/body_edit.hpp"

#include <algorithm>

#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::string_view usage_member = "\"include_usage\":true";

// Members to be put at the front of the object.
void insert_member(const RequestFacts& facts, std::string& members, std::string_view member) {
  if (facts.object_empty && !members.empty()) members += ',';
  members += member;
  if (!facts.object_empty) members += ',';
}

void cap_given(const std::optional<std::int64_t>& given, ByteRange range, std::int64_t cap,
               std::vector<BodyEdit>& edits) {
  // A negative limit means "no limit" to some backends.
  if (!given || (*given >= 0 && *given <= cap)) return;
  edits.push_back({range.begin, range.end, std::to_string(cap)});
}

void plan_cap(const RequestFacts& facts, std::int64_t cap, std::vector<BodyEdit>& edits,
              std::string& members) {
  const bool responses = facts.api == ApiKind::responses;
  if (!responses && facts.api != ApiKind::chat && facts.api != ApiKind::completions &&
      facts.api != ApiKind::messages) {
    return;
  }
  cap_given(facts.max_tokens_given, facts.max_tokens_range, cap, edits);
  cap_given(facts.max_completion_tokens_given, facts.max_completion_tokens_range, cap, edits);
  const bool known = responses ? facts.max_completion_tokens_given.has_value()
                               : facts.max_tokens_given || facts.max_completion_tokens_given;
  if (known) return;
  const ByteRange null_value = responses                        ? facts.max_completion_tokens_range
                               : facts.max_tokens_range.empty() ? facts.max_completion_tokens_range
                                                                : facts.max_tokens_range;
  if (!null_value.empty()) {
    edits.push_back({null_value.begin, null_value.end, std::to_string(cap)});
    return;
  }
  const std::string_view name = responses ? "\"max_output_tokens\":" : "\"max_tokens\":";
  insert_member(facts, members, std::string(name) + std::to_string(cap));
}

void plan_usage(const RequestFacts& facts, std::vector<BodyEdit>& edits, std::string& members) {
  if (!facts.stream || facts.include_usage) return;
  if (facts.api != ApiKind::chat && facts.api != ApiKind::completions) return;
  const ByteRange options = facts.stream_options_range;
  if (options.empty()) {
    insert_member(facts, members, "\"stream_options\":{\"include_usage\":true}");
  } else if (!facts.include_usage_range.empty()) {
    edits.push_back({facts.include_usage_range.begin, facts.include_usage_range.end, "true"});
  } else if (facts.stream_options_is_object) {
    std::string member(usage_member);
    if (!facts.stream_options_empty) member += ',';
    edits.push_back({options.begin + 1, options.begin + 1, std::move(member)});
  } else if (facts.stream_options_is_null) {
    edits.push_back({options.begin, options.end, "{\"include_usage\":true}"});
  }
}

}  // namespace

std::vector<BodyEdit> plan_edits(const RequestFacts& facts, const EditWishes& wishes) {
  std::vector<BodyEdit> edits;
  std::string members;
  if (!wishes.model.empty() && wishes.model != facts.model && facts.has_model) {
    std::string value;
    append_json_string(value, wishes.model);
    edits.push_back({facts.model_range.begin, facts.model_range.end, std::move(value)});
  }
  if (wishes.max_tokens_cap) plan_cap(facts, *wishes.max_tokens_cap, edits, members);
  if (wishes.ask_usage) plan_usage(facts, edits, members);
  if (!members.empty()) {
    edits.push_back({facts.object_begin, facts.object_begin, std::move(members)});
  }
  std::sort(edits.begin(), edits.end(),
            [](const BodyEdit& a, const BodyEdit& b) { return a.begin < b.begin; });
  return edits;
}

std::size_t edited_size(std::size_t body_bytes, const std::vector<BodyEdit>& edits) {
  for (const BodyEdit& edit : edits) body_bytes += edit.text.size() - (edit.end - edit.begin);
  return body_bytes;
}

std::vector<std::string_view> edited_pieces(std::string_view body,
                                            const std::vector<BodyEdit>& edits) {
  std::vector<std::string_view> pieces;
  pieces.reserve(edits.size() * 2 + 1);
  const auto add = [&pieces](std::string_view piece) {
    if (!piece.empty()) pieces.push_back(piece);
  };
  std::size_t at = 0;
  for (const BodyEdit& edit : edits) {
    add(body.substr(at, edit.begin - at));
    add(edit.text);
    at = edit.end;
  }
  add(body.substr(at));
  return pieces;
}

}  // namespace flashgate

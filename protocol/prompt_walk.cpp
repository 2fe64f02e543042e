#include "protocol/prompt_walk.hpp"

#include <algorithm>
#include <cstring>

namespace flashgate {
namespace {

constexpr std::string_view system_roles[] = {"system", "developer"};

bool is_system(std::string_view role) {
  return role == system_roles[0] || role == system_roles[1];
}

// Multiply and fold, eight bytes at a time. Its values are part of what replicas share, so it is
// spelled out here and not left to the standard library.
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_bytes(std::uint64_t hash, std::string_view bytes) {
  hash = mix(hash, bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    hash = mix(hash, word);
    bytes.remove_prefix(size);
  }
  return hash;
}

// First position from `at` on where decoding may start: not inside an escape or a character. An
// escape is at most six bytes and begins with a backslash that no backslash precedes.
std::size_t decodable_from(std::string_view raw, std::size_t at) {
  constexpr std::size_t search_bytes_max = 64;
  const std::size_t stop = std::min(raw.size(), at + search_bytes_max);
  for (; at < stop; ++at) {
    if ((static_cast<unsigned char>(raw[at]) & 0xC0) == 0x80) continue;
    const std::size_t before = std::min<std::size_t>(at, 5);
    if (raw.substr(at - before, before).find('\\') == std::string_view::npos) return at;
    if (raw[at] == '\\' && raw[at - 1] != '\\') return at;
  }
  return raw.size();
}

// Head and tail halves of the decoded texts, a line each.
std::string head_and_tail(const std::vector<JsonString>& texts) {
  constexpr std::size_t half = RequestFacts::text_bytes_max / 2;
  std::string head;
  std::size_t next = 0;
  bool cut = false;
  for (; next < texts.size() && !cut; ++next) {
    if (next > 0 && head.size() < half) head += '\n';
    const std::size_t left = RequestFacts::text_bytes_max - std::min(head.size(), half * 2);
    cut = !append_decoded(head, texts[next], left);
  }
  if (!cut) return head;
  // Six raw bytes may stand for one decoded byte, so this many are enough for the tail.
  std::string tail;
  const JsonString last = texts.back();
  const std::size_t raw_bytes = std::min(last.raw.size(), half * (last.escaped ? 6 : 1));
  const std::size_t from = decodable_from(last.raw, last.raw.size() - raw_bytes);
  append_decoded(tail, {last.raw.substr(from), last.escaped});
  if (tail.size() > half) {
    std::size_t begin = tail.size() - half;
    while (begin < tail.size() && (static_cast<unsigned char>(tail[begin]) & 0xC0) == 0x80) ++begin;
    tail.erase(0, begin);
  }
  std::size_t keep = half - 1;
  while (keep > 0 && (static_cast<unsigned char>(head[keep]) & 0xC0) == 0x80) --keep;
  head.resize(keep);
  return head + '\n' + tail;
}

}  // namespace

PromptWalk::PromptWalk(JsonCursor& json, std::string_view body, unsigned families,
                       RequestFacts& facts)
    : json_(json), body_(body), facts_(facts) {
  for (unsigned i = 0; i < families_.size(); ++i) {
    if ((families >> i & 1) != 0) families_[family_count_++] = static_cast<TokenizerFamily>(i);
  }
}

void PromptWalk::add_fixed(double count, Tokens& tokens) {
  for (std::size_t i = 0; i < family_count_; ++i) {
    tokens[static_cast<std::size_t>(families_[i])] += count;
  }
}

// Past the budget a small text counts at the average of what was counted, and a large one by
// samples, so that a body of 32 MB costs milliseconds.
void PromptWalk::count_text(std::string_view text, Tokens& tokens) {
  if (text.empty()) return;
  const bool exact = text.size() <= exact_left_;
  const bool average = !exact && text.size() < sample_bytes * samples_max;
  exact_left_ -= std::min(exact_left_, text.size());
  for (std::size_t i = 0; i < family_count_; ++i) {
    const auto family = static_cast<std::size_t>(families_[i]);
    if (average) {
      tokens[family] += rate_of(family) * static_cast<double>(text.size());
      continue;
    }
    const double count =
        exact ? estimate_tokens(text, families_[i]) : sampled_tokens(text, families_[i]);
    tokens[family] += count;
    counted_tokens_[family] += count;
  }
  if (!average) counted_bytes_ += static_cast<double>(text.size());
}

double PromptWalk::rate_of(std::size_t family) const {
  return counted_bytes_ > 0 ? counted_tokens_[family] / counted_bytes_ : unknown_rate;
}

double PromptWalk::sampled_tokens(std::string_view text, TokenizerFamily family) {
  const std::size_t step = (text.size() - sample_bytes) / (samples_max - 1);
  double count = 0;
  for (std::size_t i = 0; i < samples_max; ++i) {
    count += estimate_tokens(text.substr(i * step, sample_bytes), family);
  }
  return count * static_cast<double>(text.size()) / static_cast<double>(sample_bytes * samples_max);
}

void PromptWalk::add_text(JsonString text, Item& item) {
  if (item.texts != nullptr && item.texts->size() < string_parts_max && !text.raw.empty()) {
    item.texts->push_back(text);
  }
  if (family_count_ == 0) return;
  if (!text.escaped || text.raw.size() > exact_left_) {
    // Escapes make a text look longer: the guess leans high, which is the safe side.
    count_text(text.raw, item.tokens);
    return;
  }
  decoded_.clear();
  append_decoded(decoded_, text);
  count_text(decoded_, item.tokens);
}

void PromptWalk::add_raw(std::string_view raw, Tokens& tokens) {
  count_text(raw, tokens);
}

void PromptWalk::walk_raw() {
  add_raw(json_.skip(), facts_.input_tokens);
}

void PromptWalk::walk_system() {
  Item item;
  texts_.clear();
  item.texts = &texts_;
  const std::size_t begin = json_.offset();
  walk_content(item, 0);
  item.content = {begin, json_.offset_here()};
  item.role = system_roles[0];
  end_message(item);
}

void PromptWalk::walk_conversation() {
  if (json_.type() == JsonType::array) {
    json_.begin_array();
    Item rest;  // what is not a message: prompt strings and token numbers
    rest.role = "user";
    texts_.clear();
    std::vector<JsonString> loose;
    rest.texts = &loose;
    rest.content.begin = json_.offset();
    while (json_.next_element()) {
      if (json_.type() == JsonType::object) {
        walk_item(0, nullptr);
      } else {
        walk_any(rest, 1);
        rest.content.end = json_.offset_here();
      }
    }
    if (rest.content.end > rest.content.begin) end_message(rest);
    return;
  }
  Item item;
  texts_.clear();
  item.texts = &texts_;
  item.content.begin = json_.offset();
  item.role = "user";
  walk_any(item, 1);
  item.content.end = json_.offset_here();
  end_message(item);
}

void PromptWalk::walk_any(Item& item, int nesting) {
  switch (json_.type()) {
    case JsonType::string:
      add_text(json_.string(), item);
      return;
    case JsonType::number:
      json_.number();
      add_fixed(1, item.tokens);
      return;
    case JsonType::array:
      if (nesting > nesting_max) break;
      json_.begin_array();
      while (json_.next_element()) walk_any(item, nesting + 1);
      return;
    case JsonType::object:
      if (nesting > nesting_max) break;
      walk_item(nesting, &item);
      return;
    default:
      break;
  }
  json_.skip();
}

void PromptWalk::walk_content(Item& item, int nesting) {
  walk_any(item, nesting + 1);
}

// A message or, inside one, a part of its content.
void PromptWalk::walk_item(int nesting, Item* outer) {
  Item item;
  item.texts = outer != nullptr ? outer->texts : &texts_;
  if (outer == nullptr) texts_.clear();
  json_.begin_object();
  JsonString key;
  while (json_.next_member(key)) walk_member(key, item, nesting);
  if (item.media) add_fixed(image_tokens, item.tokens);
  if (outer == nullptr) {
    end_message(item);
    return;
  }
  for (std::size_t i = 0; i < item.tokens.size(); ++i) outer->tokens[i] += item.tokens[i];
}

void PromptWalk::walk_type(Item& item) {
  if (json_.type() != JsonType::string) {
    json_.skip();
    return;
  }
  const std::string_view type = json_.string().raw;
  constexpr std::string_view foreign[] = {"tool_use",         "tool_result",
                                          "thinking",         "redacted_thinking",
                                          "reasoning",        "function_call",
                                          "item_reference",   "function_call_output",
                                          "custom_tool_call", "custom_tool_call_output"};
  if (std::find(std::begin(foreign), std::end(foreign), type) != std::end(foreign)) {
    facts_.has_foreign_state = true;
  }
  if (type == "image" || type == "image_url" || type == "input_image") item.media = true;
}

void PromptWalk::walk_member(JsonString key, Item& item, int nesting) {
  const std::string_view name = key.raw;
  if (name == "role") {
    if (json_.type() != JsonType::string) {
      json_.skip();
    } else {
      item.role = json_.string().raw;
    }
  } else if (name == "content") {
    item.content.begin = json_.offset();
    walk_content(item, nesting);
    item.content.end = json_.offset_here();
  } else if (name == "text" || name == "summary" || name == "output" || name == "thinking" ||
             name == "refusal" || name == "arguments" || name == "reasoning_content") {
    walk_content(item, nesting);
  } else if (name == "type") {
    walk_type(item);
  } else if (name == "tool_calls" || name == "function_call" || name == "input") {
    facts_.has_foreign_state |= name == "tool_calls" && json_.type() == JsonType::array;
    add_raw(json_.skip(), item.tokens);
  } else if (name == "name") {
    add_raw(json_.skip(), item.tokens);
  } else if (name == "image_url" || name == "image") {
    item.media = true;
    json_.skip();
  } else if (name == "input_audio" || name == "audio") {
    if (json_.skip().size() > 4) add_fixed(audio_tokens, item.tokens);
  } else if (name == "file" || name == "file_data" || name == "file_id" || name == "file_url") {
    if (json_.skip().size() > 4) add_fixed(file_tokens, item.tokens);
  } else {
    const std::string_view value = json_.skip();
    if (name == "tool_call_id" || name == "tool_use_id" || name == "encrypted_content") {
      facts_.has_foreign_state |= value.starts_with('"');
    }
  }
  facts_.images |= item.media;
}

void PromptWalk::end_message(Item& item) {
  add_fixed(message_tokens, item.tokens);
  const bool system = is_system(item.role);
  for (std::size_t i = 0; i < item.tokens.size(); ++i) {
    facts_.input_tokens[i] += item.tokens[i];
    if (system) facts_.system_tokens[i] += item.tokens[i];
  }
  if (system) {
    hash(body_.substr(item.content.begin, item.content.end - item.content.begin));
    for (const JsonString text : *item.texts) {
      if (system_.size() < string_parts_max) system_.push_back(text);
    }
  } else if (item.role == "user") {
    ++facts_.turns;
    if (first_user_.empty()) first_user_ = item.content;
    user_ = *item.texts;
  }
}

void PromptWalk::hash(std::string_view bytes) {
  if (!bytes.empty()) hash_ = hash_bytes(hash_, bytes);
}

void PromptWalk::finish() {
  // A completion prompt grows at its end, so its head is what names the conversation.
  constexpr std::size_t head_bytes = 1024;
  std::string_view user = body_.substr(first_user_.begin, first_user_.size());
  if (facts_.api == ApiKind::completions) user = user.substr(0, head_bytes);
  hash(user);
  facts_.conversation_hash = hash_;
  facts_.system_text = head_and_tail(system_);
  facts_.last_user_text = head_and_tail(user_);
}

}  // namespace flashgate

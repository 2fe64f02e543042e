#pragma once
// The only edits of a client's body: the value of `model`, the cap of `max_tokens`, and asking for
// usage. They are splices into the original bytes; every other byte stays. Pure, any thread.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_facts.hpp"

namespace flashgate {

/// Replaces [begin, end) by `text`; begin == end inserts.
struct BodyEdit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text{};
};

struct EditWishes {
  std::string_view model{};  // empty: as the client sent it
  std::optional<std::int64_t> max_tokens_cap{};
  bool ask_usage = false;
};

/// Sorted and not overlapping. The cap lowers a larger or negative value and is inserted where
/// none was given, for chat, completions, messages and responses. Usage is asked for only in
/// streams of chat and completions.
std::vector<BodyEdit> plan_edits(const RequestFacts& facts, const EditWishes& wishes);

std::size_t edited_size(std::size_t body_bytes, const std::vector<BodyEdit>& edits);
/// Pieces of the edited body in order: views into `body` and `edits`, which must outlive them.
std::vector<std::string_view> edited_pieces(std::string_view body,
                                            const std::vector<BodyEdit>& edits);

}  // namespace flashgate

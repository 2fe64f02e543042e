#pragma once
// "Did you mean": which known names a mistyped one is close to. Case is ignored; edit distance with
// swaps, or one name holding the other. Bounded: long words are cut, far lengths skipped. Pure.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flashgate {

/// The closest first, at most `most`; ties keep the order of `known`. Empty when nothing is close.
std::vector<std::string> close_matches(std::string_view word, const std::vector<std::string>& known,
                                       std::size_t most = 3);

}  // namespace flashgate

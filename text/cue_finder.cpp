#include "text/cue_finder.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace flashgate {

namespace {

bool is_ascii_letter(char c) {
  return (static_cast<unsigned char>(c) | 0x20U) - 'a' < 26U;
}

}  // namespace

CueFinder::CueFinder(std::span<const detail::TaskCue> english,
                     std::span<const detail::TaskCue> chinese) {
  struct Placed {
    std::uint32_t hash;
    Row row;
  };
  std::vector<Placed> placed;
  for (const auto cues : {english, chinese}) {
    for (const detail::TaskCue& cue : cues) {
      Row row;
      row.cue = &cue;
      const std::size_t bytes = std::min(cue.phrase.size(), sizeof row.front);
      std::memcpy(&row.front, cue.phrase.data(), bytes);
      std::memset(&row.mask, 0xFF, bytes);
      const bool is_short = (long_mask(row.front) & ~row.mask) != 0;
      if (placed.size() == cues_max) break;
      placed.push_back({is_short ? hash_of_short(row.front) : hash_of_long(row.front), row});
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.hash < b.hash; });
  for (std::size_t i = 0; i < placed.size(); ++i) {
    rows_[i] = placed[i].row;
    filter_[placed[i].hash / 64U] |= std::uint64_t{1} << (placed[i].hash % 64U);
    ++first_row_[bucket_of(placed[i].hash) + 1];
  }
  for (std::size_t i = 1; i < first_row_.size(); ++i) {
    first_row_[i] = static_cast<std::uint16_t>(first_row_[i] + first_row_[i - 1]);
  }
}

/// The places of a block whose first bytes the filter knows. Without a branch on what it says,
/// because nothing could foretell that branch.
std::size_t CueFinder::likely_places(
    const FoldedText& text, std::size_t block,
    std::array<std::uint16_t, FoldedText::block_bytes>& places) const {
  std::size_t count = 0;
  for (std::uint64_t starts = text.starts(block); starts != 0; starts &= starts - 1) {
    const std::size_t at =
        block * FoldedText::block_bytes + static_cast<std::size_t>(std::countr_zero(starts));
    const std::uint64_t word = text.load_8(at);
    places[count] = static_cast<std::uint16_t>(at);
    count += known(hash_of_short(word)) | known(hash_of_long(word));
  }
  return count;
}

/// Short words must also end where they stand: "tag" is not "tagebuch", "hi" is not "his".
bool CueFinder::stands_at(std::string_view text, std::size_t at, const Row& row) {
  const std::string_view phrase = row.cue->phrase;
  if (phrase.size() > sizeof row.front) return text.substr(at).starts_with(phrase);
  const std::size_t end = at + phrase.size();
  const bool short_word = phrase.size() <= 4 && is_ascii_letter(phrase.back());
  return !short_word || end >= text.size() || !is_ascii_letter(text[end]);
}

}  // namespace flashgate

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
      if (placed.size() == cues_max) break;
      const auto key_mask =
          std::find_if(key_masks.begin(), key_masks.end() - 1,
                       [&](std::uint64_t mask) { return (mask & ~row.mask) == 0; });
      placed.push_back({hash(row.front & *key_mask), row});
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.hash < b.hash; });
  for (std::size_t i = 0; i < placed.size(); ++i) {
    rows_[i] = placed[i].row;
    filter_[placed[i].hash / 64U] |= std::uint64_t{1} << (placed[i].hash % 64U);
    ++first_row_[bucket_of(placed[i].hash) + 1U];
  }
  for (std::size_t i = 1; i < first_row_.size(); ++i) {
    first_row_[i] = static_cast<std::uint16_t>(first_row_[i] + first_row_[i - 1]);
  }
}

/// The places of a block whose first bytes the filter knows. Without a branch on what it says,
/// because nothing could foretell that branch.
std::size_t CueFinder::likely_places(const FoldedText& text, std::size_t block,
                                     Places& places) const {
  std::size_t count = 0;
  for (std::uint64_t starts = text.starts(block); starts != 0; starts &= starts - 1) {
    const std::size_t at =
        block * FoldedText::block_bytes + static_cast<std::size_t>(std::countr_zero(starts));
    const std::uint64_t word = text.load_8(at);
    for (const std::uint64_t key_mask : key_masks) {
      const std::uint32_t key_hash = hash(word & key_mask);
      places[count] = {static_cast<std::uint16_t>(at), bucket_of(key_hash)};
      count += known(key_hash);
    }
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

#pragma once
// Finds the vocabulary's phrases in a text in one pass: at every place where a phrase may begin, a
// hash of the first bytes is asked for in a small bit table, and only where it is known are phrases
// compared. Promises: no allocation; time linear in the text, with a small constant.
// Thread rule: immutable after construction.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

#include "text/folded_text.hpp"
#include "text/task_cues.hpp"

namespace flashgate {

class CueFinder {
 public:
  static constexpr std::size_t cues_max = 2048;

  /// `cues` in lower case, each of two bytes or more, beginning as `may_start_phrase` says.
  /// Their data must outlive this. Cues beyond `cues_max` are ignored.
  CueFinder(std::span<const detail::TaskCue> english, std::span<const detail::TaskCue> chinese);

  /// Calls `found(cue, at)` once for every cue of a text, where it first stands.
  template <typename Found>
  void find(const FoldedText& text, Found&& found) const {
    Seen seen;
    Places places;
    for (std::size_t block = 0; block < text.blocks(); ++block) {
      const std::size_t count = likely_places(text, block, places);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = places[i].at;
        const std::uint64_t word = text.load_8(at);
        const std::size_t end = first_row_[places[i].bucket + 1U];
        for (std::size_t row = first_row_[places[i].bucket]; row < end; ++row) {
          if (((word ^ rows_[row].front) & rows_[row].mask) != 0 || seen[row]) continue;
          if (!stands_at(text.view(), at, rows_[row])) continue;
          seen[row] = true;
          found(*rows_[row].cue, at);
        }
      }
    }
  }

 private:
  using Seen = std::bitset<cues_max>;
  struct Place {
    std::uint16_t at;
    std::uint16_t bucket;
  };
  struct Row {
    std::uint64_t front = 0;  // the first eight bytes of the phrase, those of them that `mask` has
    std::uint64_t mask = 0;
    const detail::TaskCue* cue = nullptr;
  };

  static constexpr unsigned filter_bits = 15;
  static constexpr unsigned bucket_bits = 12;

  /// A phrase is filed under as many of its first bytes as it has: six (two Han characters), four
  /// or two. Every place of a text is asked for all three.
  static constexpr std::array<std::uint64_t, 3> key_masks = {0xFFFFFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFU};
  // One more than there can be, because the last one is written before it is known to be none.
  using Places = std::array<Place, key_masks.size() * FoldedText::block_bytes + 1>;

  static std::uint32_t hash(std::uint64_t key) {
    return static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15U) >> (64U - filter_bits));
  }
  static std::uint16_t bucket_of(std::uint32_t hash) {
    return static_cast<std::uint16_t>(hash >> (filter_bits - bucket_bits));
  }
  std::uint64_t known(std::uint32_t hash) const { return filter_[hash / 64U] >> (hash % 64U) & 1U; }

  std::size_t likely_places(const FoldedText& text, std::size_t block, Places& places) const;
  static bool stands_at(std::string_view text, std::size_t at, const Row& row);

  std::array<std::uint64_t, (1U << filter_bits) / 64U> filter_{};
  std::array<std::uint16_t, (1U << bucket_bits) + 1> first_row_{};
  std::array<Row, cues_max> rows_{};
};

}  // namespace flashgate

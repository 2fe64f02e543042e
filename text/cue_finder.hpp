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
    std::array<std::uint16_t, FoldedText::block_bytes> places;
    for (std::size_t block = 0; block < text.blocks(); ++block) {
      const std::size_t count = likely_places(text, block, places);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = places[i];
        const std::uint64_t word = text.load_8(at);
        for (const std::uint32_t hash : {hash_of_short(word), hash_of_long(word)}) {
          const std::size_t bucket = bucket_of(hash);
          for (std::size_t row = first_row_[bucket]; row < first_row_[bucket + 1]; ++row) {
            if (((word ^ rows_[row].front) & rows_[row].mask) != 0 || seen[row]) continue;
            if (!stands_at(text.view(), at, rows_[row])) continue;
            seen[row] = true;
            found(*rows_[row].cue, at);
          }
        }
      }
    }
  }

 private:
  using Seen = std::bitset<cues_max>;
  struct Row {
    std::uint64_t front = 0;  // the first eight bytes of the phrase, those of them that `mask` has
    std::uint64_t mask = 0;
    const detail::TaskCue* cue = nullptr;
  };

  static constexpr unsigned filter_bits = 14;
  static constexpr unsigned bucket_bits = 11;

  /// Phrases of fewer bytes than go into the long hash are found by their first two.
  static constexpr std::uint64_t long_mask(std::uint64_t word) {
    return (word & 0x80U) != 0 ? 0xFFFFFFFFFFFFU
                               : 0xFFFFFFFFU;  // two Han characters, or four bytes
  }
  static std::uint32_t hash(std::uint64_t key) {
    return static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15U) >> (64U - filter_bits));
  }
  static std::uint32_t hash_of_short(std::uint64_t word) { return hash(word & 0xFFFFU); }
  static std::uint32_t hash_of_long(std::uint64_t word) { return hash(word & long_mask(word)); }
  static std::size_t bucket_of(std::uint32_t hash) { return hash >> (filter_bits - bucket_bits); }
  std::uint64_t known(std::uint32_t hash) const { return filter_[hash / 64U] >> (hash % 64U) & 1U; }

  std::size_t likely_places(const FoldedText& text, std::size_t block,
                            std::array<std::uint16_t, FoldedText::block_bytes>& places) const;
  static bool stands_at(std::string_view text, std::size_t at, const Row& row);

  std::array<std::uint64_t, (1U << filter_bits) / 64U> filter_{};
  std::array<std::uint16_t, (1U << bucket_bits) + 1> first_row_{};
  std::array<Row, cues_max> rows_{};
};

}  // namespace flashgate

#pragma once
// What the five vocabularies have in common, boiled down to bit tables by
// tests/text/tokenizers/make_tables.mjs: which words, Han pairs, letter pairs and punctuation pairs
// are tokens, and how dear a Han character or a Hangul syllable is. Membership is by hash: one
// strange word in fifty passes for known, and one strange pair in ten. Read-only data.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flashgate::detail {

inline constexpr unsigned hash_table_bits = 17;
inline constexpr std::size_t hash_table_bytes = (std::size_t{1} << hash_table_bits) / 8;
inline constexpr std::size_t word_letters_max = 16;
inline constexpr std::uint32_t han_first = 0x4E00;
inline constexpr std::uint32_t han_count = 0x5200;
inline constexpr std::uint32_t hangul_first = 0xAC00;
inline constexpr std::uint32_t hangul_count = 0x2BA4;

extern const std::array<std::uint8_t, hash_table_bytes> word_table_1;  // both must hold a word
extern const std::array<std::uint8_t, hash_table_bytes> word_table_2;
extern const std::array<std::uint8_t, hash_table_bytes> han_pair_table;
extern const std::array<std::uint8_t, han_count / 4> han_class_table;        // 2 bits each
extern const std::array<std::uint8_t, hangul_count / 4> hangul_class_table;  // 2 bits each
extern const std::array<std::uint32_t, 26> letter_pair_table;  // row: first letter, bit: second
extern const std::array<std::uint32_t, 32> punct_pair_table;   // the 32 ASCII marks in order

/// Two places of a word, one for each table.
struct WordHash {
  std::uint32_t first;
  std::uint32_t second;
};

/// `low` and `high` hold the word's lower-case letters, first letter in the lowest byte.
constexpr WordHash word_hash(std::uint64_t low, std::uint64_t high) {
  std::uint64_t mixed = low * 0x9E3779B97F4A7C15U + high * 0xC2B2AE3D27D4EB4FU;
  mixed = (mixed ^ (mixed >> 32U)) * 0xD6E8FEB86659FD93U;
  return {static_cast<std::uint32_t>(mixed >> (64U - hash_table_bits)),
          static_cast<std::uint32_t>(mixed >> (64U - 2 * hash_table_bits)) &
              ((1U << hash_table_bits) - 1U)};
}

/// One table answers three questions about a pair, told apart by the salt.
enum class PairHolder : std::uint32_t { anyone, o200k, llama3 };

constexpr std::uint32_t han_pair_hash(std::uint32_t first, std::uint32_t second,
                                      PairHolder holder) {
  const std::uint32_t salt = static_cast<std::uint32_t>(holder) * 0x85EBCA6BU;
  return (((first << 16U | (second & 0xFFFFU)) ^ salt) * 0x9E3779B1U) >> (32U - hash_table_bits);
}

template <std::size_t size>
constexpr bool bit_at(const std::array<std::uint8_t, size>& table, std::uint32_t index) {
  return (table[index >> 3U] >> (index & 7U) & 1U) != 0;
}

inline bool known_word(WordHash hash) {
  return bit_at(word_table_1, hash.first) & bit_at(word_table_2, hash.second);
}

template <std::size_t size>
constexpr std::uint32_t two_bits_at(const std::array<std::uint8_t, size>& table,
                                    std::uint32_t index) {
  return table[index >> 2U] >> ((index & 3U) * 2U) & 3U;
}

constexpr std::uint32_t base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<std::uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<std::uint32_t>(c - 'a' + 26);
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0' + 52);
  return c == '+' ? 62 : 63;
}

/// Base64 without padding, as the tables are written in the source.
template <std::size_t size>
constexpr std::array<std::uint8_t, size> unpack_table(std::string_view base64) {
  std::array<std::uint8_t, size> table{};
  std::uint32_t bits = 0;
  unsigned held = 0;
  std::size_t filled = 0;
  for (const char c : base64) {
    bits = (bits << 6U | base64_value(c)) & 0xFFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    if (filled < size) table[filled++] = static_cast<std::uint8_t>(bits >> held & 0xFFU);
  }
  return table;
}

}  // namespace flashgate::detail

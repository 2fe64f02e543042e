#pragma once
// Seeded chance for the simulator: the same seed gives the same numbers on every machine, which the
// standard distributions don't promise. Plain values, any thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace flashgate {

/// The finaliser of SplitMix64: every input bit reaches every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

/// FNV-1a, then mixed with the seed.
constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ull;
  }
  return mix_bits(hash ^ mix_bits(seed));
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    return mix_bits(state_);
  }
  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// REQUIRES: n > 0. In [0, n).
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  /// Log-normal with median 1, the shape of real latencies; kept within [0.2, 5].
  double around_one(double spread) {
    if (spread <= 0) return 1;
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    const double normal = radius * std::cos(6.283185307179586 * unit());
    return std::clamp(std::exp(spread * normal), 0.2, 5.0);
  }

 private:
  std::uint64_t state_;
};

}  // namespace flashgate

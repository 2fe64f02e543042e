#include <algorithm>
#include <cmath>
#include <limits>

#include "text/token_estimate.hpp"

namespace flashgate {

namespace {
// Below this many samples the factor moves only part of the way from 1 to the median.
constexpr int samples_for_full_trust = 8;
}  // namespace

void EstimateCorrection::observe(double estimated, double actual) {
  if (!std::isfinite(estimated) || !std::isfinite(actual) || estimated <= 0 || actual <= 0) return;
  const double ratio = std::clamp(actual / estimated, factor_min, factor_max);
  ratios_[static_cast<std::size_t>(samples_ % window)] = static_cast<float>(ratio);
  // The count saturates in step with the ring, so that it can never overflow.
  samples_ += samples_ < std::numeric_limits<int>::max() - window ? 1 : 1 - window;

  const int filled = std::min(samples_, window);
  auto sorted = ratios_;
  const auto middle = sorted.begin() + filled / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + filled);
  double median = *middle;
  if (filled % 2 == 0) median = (median + *std::max_element(sorted.begin(), middle)) / 2;
  const double trust = std::min(1.0, static_cast<double>(samples_) / samples_for_full_trust);
  factor_ = 1.0 + (median - 1.0) * trust;
}

}  // namespace flashgate

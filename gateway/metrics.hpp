#pragma once
// Counters of the data plane. Each worker counts in a slot of its own; a scrape sums the slots.
// A slot's mutex is taken by its worker and, a few times a minute, by the scrape. Labels come from
// the configuration only; anything else is `other`.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "protocol/exchange.hpp"
#include "routing/token_bucket.hpp"

namespace flashgate {

struct Runtime;

/// Cumulative buckets are made at scrape; here each sample is in one bucket.
class Histogram {
 public:
  static constexpr std::size_t bounds_max = 24;
  Histogram() = default;
  explicit Histogram(const std::vector<double>* bounds) : bounds_(bounds) {}
  void observe(double seconds);
  void add(const Histogram& other);
  const std::vector<double>& bounds() const { return *bounds_; }
  std::uint64_t bucket(std::size_t i) const { return counts_[i]; }  // bounds().size(): +Inf
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  const std::vector<double>* bounds_ = nullptr;
  std::array<std::uint64_t, bounds_max + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

enum class TokenType { input, output, cached, reasoning };
inline constexpr int token_type_count = 4;

enum class AttemptResult { success, failure, client_fault, backpressure, cancelled };
inline constexpr int attempt_result_count = 5;
std::string_view name(AttemptResult result);

/// What the slots hold, in sum or each.
struct MetricValues {
  explicit MetricValues(std::size_t profile_count);
  void add(const MetricValues& other);

  using RequestKey = std::tuple<int, int, int, int>;  // profile, rule, outcome, status
  struct PerProfile {
    std::array<std::uint64_t, attempt_result_count> attempts{};
    std::array<double, token_type_count> tokens{};
    Histogram ttft;
    Histogram duration;
    Histogram per_token;
    double cost = 0;
  };
  std::map<RequestKey, std::uint64_t> requests{};
  std::vector<PerProfile> profiles{};  // the last is for requests that reached none
  Histogram overhead;
  Histogram loop_lag;
  std::array<std::uint64_t, 3> rate_limited{};  // RateLimitKind
};

class Metrics {
 public:
  class Slot {
   public:
    explicit Slot(Metrics& owner, std::size_t profile_count)
        : owner_(owner), values_(profile_count) {}
    /// `profile` -1: none was reached.
    void finished(const Exchange& exchange, int profile);
    void attempt(int profile, AttemptResult result);
    void rate_limited(RateLimitKind limit);
    void loop_lag(double seconds);

   private:
    friend class Metrics;
    Metrics& owner_;
    std::mutex mutex_;
    MetricValues values_;
  };

  explicit Metrics(const Runtime& runtime);
  /// One per worker, before the workers start.
  Slot& add_slot();
  MetricValues sum() const;
  const Runtime& runtime() const { return runtime_; }
  const std::string& rule_name(int rule) const { return rules_[static_cast<std::size_t>(rule)]; }

 private:
  int rule_index(const std::string& name) const;

  const Runtime& runtime_;
  std::vector<std::string> rules_{};  // the last is "other"
  std::map<std::string, int, std::less<>> rule_indices_{};
  std::vector<std::unique_ptr<Slot>> slots_{};
};

}  // namespace flashgate

#include "gateway/metrics.hpp"

#include <algorithm>
#include <chrono>

#include "gateway/runtime.hpp"

namespace flashgate {
namespace {

const std::vector<double> latency_bounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5,
                                            0.75,  1,    1.5,   2,    3,   5,   8,    12,
                                            20,    30,   60,    120,  300, 600};
const std::vector<double> per_token_bounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015,
                                              0.02,   0.03,  0.05,   0.075, 0.1,  0.15,
                                              0.2,    0.3,   0.5,    1,     2};
const std::vector<double> overhead_bounds = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005,
                                             0.01,    0.02,   0.05,   0.1,    0.25,  1};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string_view name(AttemptResult result) {
  switch (result) {
    case AttemptResult::success:
      return "success";
    case AttemptResult::failure:
      return "failure";
    case AttemptResult::client_fault:
      return "client_fault";
    case AttemptResult::backpressure:
      return "backpressure";
    case AttemptResult::cancelled:
      break;
  }
  return "cancelled";
}

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_->begin(), bounds_->end(), value);
  ++counts_[static_cast<std::size_t>(at - bounds_->begin())];
  ++count_;
  sum_ += value;
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
}

MetricValues::MetricValues(std::size_t profile_count)
    : profiles(profile_count + 1), overhead(&overhead_bounds), loop_lag(&overhead_bounds) {
  for (PerProfile& profile : profiles) {
    profile.ttft = Histogram(&latency_bounds);
    profile.duration = Histogram(&latency_bounds);
    profile.per_token = Histogram(&per_token_bounds);
  }
}

void MetricValues::add(const MetricValues& other) {
  for (const auto& [key, count] : other.requests) requests[key] += count;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    PerProfile& mine = profiles[i];
    const PerProfile& theirs = other.profiles[i];
    for (std::size_t k = 0; k < mine.attempts.size(); ++k) mine.attempts[k] += theirs.attempts[k];
    for (std::size_t k = 0; k < mine.tokens.size(); ++k) mine.tokens[k] += theirs.tokens[k];
    mine.ttft.add(theirs.ttft);
    mine.duration.add(theirs.duration);
    mine.per_token.add(theirs.per_token);
    mine.cost += theirs.cost;
  }
  overhead.add(other.overhead);
  loop_lag.add(other.loop_lag);
  for (std::size_t i = 0; i < rate_limited.size(); ++i) rate_limited[i] += other.rate_limited[i];
}

Metrics::Metrics(const Runtime& runtime) : runtime_(runtime) {
  rules_ = {"default", "named", "pinned", "long_context", "none"};
  for (const Rule& rule : runtime.config.routes.rules) rules_.push_back(rule.name);
  rules_.push_back("other");
  for (std::size_t i = 0; i < rules_.size(); ++i)
    rule_indices_.emplace(rules_[i], static_cast<int>(i));
}

int Metrics::rule_index(const std::string& name) const {
  const auto found = rule_indices_.find(name.empty() ? std::string("none") : name);
  return found == rule_indices_.end() ? static_cast<int>(rules_.size()) - 1 : found->second;
}

Metrics::Slot& Metrics::add_slot() {
  slots_.push_back(std::make_unique<Slot>(*this, runtime_.profiles.size()));
  return *slots_.back();
}

MetricValues Metrics::sum() const {
  MetricValues total(runtime_.profiles.size());
  for (const std::unique_ptr<Slot>& slot : slots_) {
    const std::lock_guard lock(slot->mutex_);
    total.add(slot->values_);
  }
  return total;
}

void Metrics::Slot::finished(const Exchange& exchange, int profile) {
  const std::lock_guard lock(mutex_);
  ++values_.requests[{profile, owner_.rule_index(exchange.rule), static_cast<int>(exchange.outcome),
                      exchange.status}];
  const std::size_t last = values_.profiles.size() - 1;
  MetricValues::PerProfile& mine =
      values_.profiles[profile < 0 ? last : static_cast<std::size_t>(profile)];
  mine.duration.observe(seconds(exchange.total));
  values_.overhead.observe(
      std::max(0.0, seconds(exchange.total - exchange.upstream - exchange.queue)));
  if (exchange.ttft >= Duration::zero()) {
    mine.ttft.observe(seconds(exchange.ttft));
    if (exchange.output_tokens > 1)
      mine.per_token.observe(seconds(exchange.total - exchange.ttft) /
                             static_cast<double>(exchange.output_tokens - 1));
  }
  if (profile < 0) return;
  const auto tokens = [&mine](TokenType type) -> double& {
    return mine.tokens[static_cast<std::size_t>(type)];
  };
  if (exchange.outcome == Outcome::ok || exchange.output_tokens > 0) {
    tokens(TokenType::input) += static_cast<double>(exchange.input_tokens);
    tokens(TokenType::output) += static_cast<double>(exchange.output_tokens);
    tokens(TokenType::cached) += static_cast<double>(exchange.cached_tokens);
    tokens(TokenType::reasoning) += static_cast<double>(exchange.reasoning_tokens);
  }
  mine.cost += exchange.cost;
}

void Metrics::Slot::attempt(int profile, AttemptResult result) {
  const std::lock_guard lock(mutex_);
  ++values_.profiles[static_cast<std::size_t>(profile)].attempts[static_cast<std::size_t>(result)];
}

void Metrics::Slot::rate_limited(RateLimitKind limit) {
  const std::lock_guard lock(mutex_);
  ++values_.rate_limited[static_cast<std::size_t>(limit)];
}

void Metrics::Slot::loop_lag(double lag) {
  const std::lock_guard lock(mutex_);
  values_.loop_lag.observe(lag);
}

}  // namespace flashgate

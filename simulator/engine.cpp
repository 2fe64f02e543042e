#include "simulator/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/dice.hpp"

namespace flashgate {
namespace {

constexpr std::size_t attempts_max = 65536;
constexpr double kv_tokens = 100'000;  // pretended size of the key-value cache

}  // namespace

Engine::Options Engine::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

void Engine::set_faults(std::vector<FaultRule> faults) {
  const std::lock_guard lock(mutex_);
  SimulatorOptions changed = *options_;
  changed.faults = std::move(faults);
  options_ = std::make_shared<const SimulatorOptions>(std::move(changed));
}

void Engine::set_timing(Timing timing) {
  const std::lock_guard lock(mutex_);
  SimulatorOptions changed = *options_;
  changed.timing = timing;
  options_ = std::make_shared<const SimulatorOptions>(std::move(changed));
}

void Engine::set_started(TimePoint now) {
  const std::lock_guard lock(mutex_);
  started_ = now;
}

bool Engine::warm(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  return now - started_ >= options_->timing.startup;
}

std::uint64_t Engine::count_connection() {
  const std::lock_guard lock(mutex_);
  return ++stats_.connections;
}

std::uint64_t Engine::begin_request() {
  const std::lock_guard lock(mutex_);
  ++stats_.in_flight;
  stats_.in_flight_max = std::max(stats_.in_flight_max, stats_.in_flight);
  return ++stats_.requests;
}

std::uint64_t Engine::count_attempt(std::string_view body) {
  const std::lock_guard lock(mutex_);
  if (attempts_.size() >= attempts_max) attempts_.clear();
  return ++attempts_[hash_text(body, options_->seed)];
}

void Engine::record(const std::string& head, const std::string& body) {
  const std::lock_guard lock(mutex_);
  if (options_->record == 0) return;
  while (recorded_.size() >= options_->record) recorded_.pop_front();
  recorded_.push_back({head, body});
}

void Engine::count_answer(int status, const std::vector<FaultRule>& faults,
                          std::int64_t input_tokens, std::int64_t output_tokens) {
  const std::lock_guard lock(mutex_);
  ++stats_.by_status[status];
  for (const FaultRule& rule : faults) ++stats_.by_fault[std::string(name(rule.kind))];
  stats_.input_tokens += static_cast<std::uint64_t>(input_tokens);
  stats_.output_tokens += static_cast<std::uint64_t>(output_tokens);
}

void Engine::end_request(End end) {
  const std::lock_guard lock(mutex_);
  --stats_.in_flight;
  if (end == End::completed) ++stats_.completed;
  if (end == End::cancelled) ++stats_.cancelled;
  if (end == End::broken) ++stats_.broken;
}

bool Engine::take_slot(SlotWaiter& waiter) {
  const std::lock_guard lock(mutex_);
  const int limit = options_->timing.max_concurrency;
  waiter.granted = limit <= 0 || running_ < limit;
  if (waiter.granted) {
    ++running_;
  } else {
    line_.push_back(&waiter);
    ++stats_.waiting;
  }
  return waiter.granted;
}

void Engine::leave_line(SlotWaiter& waiter) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find(line_.begin(), line_.end(), &waiter);
  if (at == line_.end()) return;
  line_.erase(at);
  --stats_.waiting;
}

void Engine::release_slot() {
  SlotWaiter* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    --running_;
    const int limit = options_->timing.max_concurrency;
    if (line_.empty() || (limit > 0 && running_ >= limit)) return;
    next = line_.front();
    line_.pop_front();
    --stats_.waiting;
    ++running_;
    next->granted = true;
  }
  next->wake();
}

SimulatorStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<RecordedRequest> Engine::recorded() const {
  const std::lock_guard lock(mutex_);
  return {recorded_.begin(), recorded_.end()};
}

std::string Engine::metrics() const {
  const std::lock_guard lock(mutex_);
  std::string label = "{model_name=\"";
  for (const char c : options_->model) {
    if (c == '"' || c == '\\') label += '\\';
    if (c != '\n') label += c;
  }
  label += "\"}";
  const int running = stats_.in_flight - stats_.waiting;
  const double slots =
      options_->timing.max_concurrency > 0 ? options_->timing.max_concurrency : kv_tokens / 1000;
  std::string out;
  const auto add = [&out, &label](std::string_view metric, std::string_view type, double value) {
    out += fmt::format("# TYPE {0} {1}\n{0}{2} {3}\n", metric, type, label, value);
  };
  add("vllm:num_requests_running", "gauge", running);
  add("vllm:num_requests_waiting", "gauge", stats_.waiting);
  add("vllm:kv_cache_usage_perc", "gauge", std::min(1.0, running / slots));
  add("vllm:gpu_cache_usage_perc", "gauge", std::min(1.0, running / slots));
  add("vllm:prompt_tokens_total", "counter", static_cast<double>(stats_.input_tokens));
  add("vllm:generation_tokens_total", "counter", static_cast<double>(stats_.output_tokens));
  add("vllm:request_success_total", "counter", static_cast<double>(stats_.completed));
  return out;
}

}  // namespace flashgate

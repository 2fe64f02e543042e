#include "control/exposition.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "gateway/call_log.hpp"
#include "gateway/runtime.hpp"

namespace flashgate {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily family(const char* name, const char* help, MetricType type) {
  MetricFamily out;
  out.name = name;
  out.help = help;
  out.type = type;
  return out;
}

void add(MetricFamily& to, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (to.type == MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  to.metric.push_back(std::move(metric));
}

void add(MetricFamily& to, Labels labels, const Histogram& histogram) {
  ClientMetric metric;
  metric.label = std::move(labels);
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    cumulative += histogram.bucket(i);
    metric.histogram.bucket.push_back({cumulative, histogram.bounds()[i]});
  }
  metric.histogram.bucket.push_back({histogram.count(), std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = histogram.count();
  metric.histogram.sample_sum = histogram.sum();
  to.metric.push_back(std::move(metric));
}

class Exposition {
 public:
  explicit Exposition(const Metrics& metrics)
      : metrics_(metrics), runtime_(metrics.runtime()), values_(metrics.sum()) {}

  std::vector<MetricFamily> families() {
    add_requests();
    add_profiles();
    add_histograms();
    add_state();
    add_process();
    return std::move(families_);
  }

 private:
  std::string profile_name(int profile) const {
    return profile < 0 ? "none" : runtime_.profiles[static_cast<std::size_t>(profile)]->config.name;
  }
  Labels of_profile(std::size_t i) const {
    return {{"profile", i < runtime_.profiles.size() ? runtime_.profiles[i]->config.name : "none"}};
  }
  void single(const char* name, const char* help, MetricType type, double value) {
    MetricFamily one = family(name, help, type);
    add(one, {}, value);
    families_.push_back(std::move(one));
  }

  void add_requests() {
    MetricFamily requests = family("flashgate_requests_total", "Client requests by how they ended.",
                                   MetricType::Counter);
    for (const auto& [key, count] : values_.requests) {
      const auto& [profile, rule, outcome, status] = key;
      add(requests,
          {{"profile", profile_name(profile)},
           {"rule", metrics_.rule_name(rule)},
           {"arm", ""},
           {"outcome", std::string(name(static_cast<Outcome>(outcome)))},
           {"code", std::to_string(status)}},
          static_cast<double>(count));
    }
    families_.push_back(std::move(requests));
    MetricFamily limited =
        family("flashgate_rate_limited_total", "Requests that a rate limit refused, by limit.",
               MetricType::Counter);
    add(limited, {{"limit", "requests"}}, static_cast<double>(values_.rate_limited[1]));
    add(limited, {{"limit", "tokens"}}, static_cast<double>(values_.rate_limited[2]));
    families_.push_back(std::move(limited));
  }

  void add_profiles() {
    MetricFamily attempts =
        family("flashgate_attempts_total", "Attempts at backends, by result.", MetricType::Counter);
    MetricFamily tokens =
        family("flashgate_tokens_total", "Tokens, as backends counted them.", MetricType::Counter);
    MetricFamily cost =
        family("flashgate_cost_total", "Cost by the configured prices, in the currency named.",
               MetricType::Counter);
    constexpr const char* types[] = {"input", "output", "cached", "reasoning"};
    for (std::size_t i = 0; i < runtime_.profiles.size(); ++i) {
      const MetricValues::PerProfile& mine = values_.profiles[i];
      const std::string profile = profile_name(static_cast<int>(i));
      for (int k = 0; k < attempt_result_count; ++k)
        add(attempts,
            {{"profile", profile}, {"result", std::string(name(static_cast<AttemptResult>(k)))}},
            static_cast<double>(mine.attempts[static_cast<std::size_t>(k)]));
      for (std::size_t k = 0; k < token_type_count; ++k)
        add(tokens, {{"profile", profile}, {"type", types[k]}}, mine.tokens[k]);
      const Price& price = runtime_.profiles[i]->config.price;
      if (price.set) add(cost, {{"profile", profile}, {"currency", price.currency}}, mine.cost);
    }
    families_.push_back(std::move(attempts));
    families_.push_back(std::move(tokens));
    if (!cost.metric.empty()) families_.push_back(std::move(cost));
  }

  void add_histograms() {
    MetricFamily ttft =
        family("flashgate_ttft_seconds", "From the request's head to the first content.",
               MetricType::Histogram);
    MetricFamily duration =
        family("flashgate_request_duration_seconds",
               "From the request's head to the end of the answer.", MetricType::Histogram);
    MetricFamily per_token =
        family("flashgate_time_per_output_token_seconds",
               "After the first token, per output token.", MetricType::Histogram);
    for (std::size_t i = 0; i < values_.profiles.size(); ++i) {
      const MetricValues::PerProfile& mine = values_.profiles[i];
      add(duration, of_profile(i), mine.duration);
      if (i == runtime_.profiles.size()) continue;
      add(ttft, of_profile(i), mine.ttft);
      add(per_token, of_profile(i), mine.per_token);
    }
    MetricFamily overhead =
        family("flashgate_overhead_seconds",
               "Time in the gateway itself: total less queue and backends.", MetricType::Histogram);
    add(overhead, {}, values_.overhead);
    MetricFamily lag =
        family("flashgate_loop_lag_seconds",
               "How late a worker's tick came, sampled once a second.", MetricType::Histogram);
    add(lag, {}, values_.loop_lag);
    for (MetricFamily* one : {&ttft, &duration, &per_token, &overhead, &lag})
      families_.push_back(std::move(*one));
  }

  void add_state() {
    MetricFamily in_flight =
        family("flashgate_in_flight", "Attempts running now.", MetricType::Gauge);
    MetricFamily entries =
        family("flashgate_queue_entries", "Calls waiting for a place.", MetricType::Gauge);
    MetricFamily bytes =
        family("flashgate_queue_bytes", "Bodies of waiting calls.", MetricType::Gauge);
    MetricFamily breaker =
        family("flashgate_breaker_state", "0 closed (traffic flows), 1 half open, 2 open.",
               MetricType::Gauge);
    const TimePoint now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < runtime_.profiles.size(); ++i) {
      const ProfileState& profile = *runtime_.profiles[i];
      add(in_flight, of_profile(i), profile.in_flight.load());
      add(entries, of_profile(i), static_cast<double>(profile.gate.queued()));
      add(bytes, of_profile(i), static_cast<double>(profile.gate.queued_bytes()));
      for (const std::unique_ptr<Backend>& backend : profile.backends)
        add(breaker, {{"profile", profile.config.name}, {"backend", backend->url.authority()}},
            breaker_value(backend->breaker.state(now)));
    }
    MetricFamily connections =
        family("flashgate_connections", "Open connections by side.", MetricType::Gauge);
    add(connections, {{"side", "client"}}, runtime_.connections.load());
    add(connections, {{"side", "upstream"}}, runtime_.upstream_connections.load());
    for (MetricFamily* one : {&in_flight, &entries, &bytes, &breaker, &connections})
      families_.push_back(std::move(*one));
    single("flashgate_log_dropped_total",
           "Call log lines dropped because the sink was too slow or broken.", MetricType::Counter,
           static_cast<double>(runtime_.log.dropped()));
    single("flashgate_stale_replays_total",
           "Requests replayed because a pooled connection was closed.", MetricType::Counter,
           static_cast<double>(runtime_.stale_replays.load()));
    single("flashgate_upstream_excess_bytes_total",
           "Answers followed by bytes beyond their declared end; the connection was closed.",
           MetricType::Counter, static_cast<double>(runtime_.upstream_excess_bytes.load()));
    single("flashgate_upstream_auth_errors_total",
           "Answers of backends that reject the gateway's key.", MetricType::Counter,
           static_cast<double>(runtime_.upstream_auth_errors.load()));
    single("flashgate_ready", "1 while the gateway takes requests.", MetricType::Gauge,
           runtime_.ready && !runtime_.draining ? 1 : 0);
  }

  void add_process() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    single("process_cpu_seconds_total", "User and system CPU time.", MetricType::Counter,
           seconds(usage.ru_utime) + seconds(usage.ru_stime));
    long pages = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
      long size = 0;
      if (std::fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
      std::fclose(file);
    }
    single("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge,
           static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }

  static double breaker_value(Breaker::State state) {
    switch (state) {
      case Breaker::State::closed:
        return 0;
      case Breaker::State::half_open:
        return 1;
      case Breaker::State::open:
        break;
    }
    return 2;
  }

  const Metrics& metrics_;
  const Runtime& runtime_;
  MetricValues values_;
  std::vector<MetricFamily> families_{};
};

}  // namespace

std::string prometheus_text(const Metrics& metrics) {
  return prometheus::TextSerializer().Serialize(Exposition(metrics).families());
}

}  // namespace flashgate

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>

#include "gateway/attempt.hpp"
#include "gateway/call.hpp"

namespace flashgate {
namespace {

/// Longer than this no client is held for a backend's Retry-After; it gets the 429 and the hint.
constexpr Duration retry_wait_max = std::chrono::seconds(30);
constexpr int reserve_rounds_max = 4;
constexpr Duration quota_rest = std::chrono::minutes(1);

/// What one attempt holds while it runs: a place at the profile, its tokens, its breaker permit.
struct Holding {
  explicit Holding(ProfileState& owner) : profile(owner) {}
  ~Holding() {
    if (counted) profile.in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  ProfileState& profile;
  GateSlot slot{};
  RateLimiter::Reservation reservation{};
  Backend* backend = nullptr;
  Breaker::Permit permit{};
  bool counted = false;
  bool settled = false;
};

struct Entry {
  const Candidate* candidate = nullptr;
  bool excluded = false;
  bool tried = false;
  TimePoint not_before{};
};

std::chrono::seconds whole_seconds(Duration duration) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(duration);
  return std::max(std::chrono::seconds(1), seconds);
}

/// The attempts of one call: which candidate next, after what wait, with what in hand.
class Attempts {
 public:
  explicit Attempts(Call& call) : call_(call) {
    for (const Candidate& candidate : call.decision.candidates)
      entries_.push_back({&candidate, false, false, {}});
  }
  Task<void> run();

 private:
  Task<bool> round(Entry& entry);
  Entry* next_entry();
  bool may_go_on();
  Duration wait_before(const Entry& entry) const;
  Task<bool> pause(Duration wait);
  Task<bool> acquire(Entry& entry, Holding& holding);
  Task<bool> reserve(Holding& holding, const Candidate& candidate);
  Task<bool> enter_gate(Holding& holding);
  bool choose_backend(Holding& holding);
  void refuse(ApiErrorKind kind, std::string message, std::optional<Duration> retry_after);
  void after_failure(Entry& entry, Attempt& attempt);
  std::string fallback_reason(const std::string& profile) const;
  void settle(Holding& holding, Attempt& attempt);
  void count_attempt(Attempt& attempt, bool over);
  const Failure& decisive() const;
  Task<void> answer();
  Task<void> answer_spare(const Failure& failure);
  ProfileState& profile_of(const Entry& entry) {
    return *call_.runtime().profiles[entry.candidate->profile];
  }

  Call& call_;
  std::vector<Entry> entries_;
  std::vector<const Backend*> failed_backends_{};
  std::size_t cursor_ = 0;
  int made_ = 0;
  bool exhausted_ = false;  // our own retries are used up
};

void Attempts::refuse(ApiErrorKind kind, std::string message, std::optional<Duration> retry_after) {
  Failure failure;
  failure.kind = kind;
  failure.message = std::move(message);
  failure.retry_after = retry_after;
  failure.own_limit = true;
  failure.fault.try_other = true;
  call_.failures.push_back(std::move(failure));
}

/// False: refused here (a failure was added), or the call is over.
Task<bool> Attempts::reserve(Holding& holding, const Candidate& candidate) {
  ProfileState& profile = holding.profile;
  if (!profile.limiter.limits_anything()) co_return true;
  const double output =
      static_cast<double>(std::min<std::int64_t>(call_.facts.max_tokens.value_or(1024), 1024));
  for (int rounds = 0;; ++rounds) {
    const TimePoint now = call_.worker().now();
    const auto admission =
        profile.limiter.reserve(static_cast<double>(candidate.input_tokens), output, now);
    if (admission.admitted) {
      holding.reservation = admission.reservation;
      co_return true;
    }
    const std::string name = "profile '" + profile.config.name + "'";
    if (admission.never_fits) {
      refuse(ApiErrorKind::invalid_request,
             "The input is larger than the tokens per minute of " + name + " ever hold.", {});
      co_return false;
    }
    const Duration patience =
        std::min<Duration>(profile.config.queue.wait_max, call_.deadline - now);
    if (admission.wait > patience || rounds == reserve_rounds_max) {
      call_.worker().metrics.rate_limited(admission.limit);
      const bool by_tokens = admission.limit == RateLimitKind::tokens;
      refuse(ApiErrorKind::rate_limit_exceeded,
             "The limit of " + std::string(by_tokens ? "tokens" : "requests") + " per minute of " +
                 name + " is reached; try again later.",
             admission.wait);
      co_return false;
    }
    const bool waited = co_await pause(admission.wait);
    call_.exchange().queue += call_.worker().now() - now;
    if (!waited) co_return false;
  }
}

struct Grant {
  asio::io_context* io;
  std::shared_ptr<Event> event;
  static void called(void* self) {
    // Perhaps on another worker: the event is this worker's, so it is set there.
    auto* grant = static_cast<Grant*>(self);
    asio::post(*grant->io, [event = grant->event] { event->set(); });
  }
};

Task<bool> Attempts::enter_gate(Holding& holding) {
  ProfileState& profile = holding.profile;
  Worker& worker = call_.worker();
  Grant grant{&worker.io(), nullptr};
  ConcurrencyGate::Waiter waiter(&Grant::called, &grant);
  // Made only when it is needed: most calls find room. Nothing can call before enter() returns
  // queued, and nothing reads it on this worker before the first await.
  grant.event = std::make_shared<Event>(worker.executor());
  const ConcurrencyGate::Enter entered = profile.gate.enter(waiter, call_.body.size());
  if (entered == ConcurrencyGate::Enter::granted) {
    holding.slot = GateSlot(profile.gate);
    co_return true;
  }
  const std::string name = "profile '" + profile.config.name + "'";
  if (entered != ConcurrencyGate::Enter::queued) {
    refuse(ApiErrorKind::overloaded,
           "The queue of " + name + " is full; try again later, or raise its max_concurrency.",
           std::chrono::seconds(1));
    co_return false;
  }
  const TimePoint since = worker.now();
  call_.monitor().watch(*grant.event, since + profile.config.queue.wait_max, Stop::queue_timeout,
                        since);
  co_await grant.event->wait();
  call_.monitor().unwatch();
  call_.exchange().queue += worker.now() - since;
  const bool still_queued = profile.gate.leave_queue(waiter);
  if (!still_queued) holding.slot = GateSlot(profile.gate);
  if (call_.monitor().is_over()) co_return false;
  if (!still_queued) co_return true;
  refuse(ApiErrorKind::overloaded,
         "No place became free at " + name + " within " +
             std::to_string(whole_seconds(profile.config.queue.wait_max).count()) + " s.",
         std::chrono::seconds(1));
  co_return false;
}

/// The least loaded replica whose breaker lets us through; those that failed this call come last.
bool Attempts::choose_backend(Holding& holding) {
  ProfileState& profile = holding.profile;
  const TimePoint now = call_.worker().now();
  const std::size_t count = profile.backends.size();
  const unsigned turn = profile.turn.fetch_add(1, std::memory_order_relaxed);
  std::vector<Backend*> order;
  for (std::size_t i = 0; i < count; ++i)
    order.push_back(profile.backends[(turn + i) % count].get());
  const auto rank = [this](const Backend* backend) {
    const bool failed = std::find(failed_backends_.begin(), failed_backends_.end(), backend) !=
                        failed_backends_.end();
    return std::pair(failed, backend->in_flight.load(std::memory_order_relaxed));
  };
  if (count > 1)
    std::stable_sort(order.begin(), order.end(),
                     [&](const Backend* a, const Backend* b) { return rank(a) < rank(b); });
  Duration soonest = Duration::max();
  for (Backend* backend : order) {
    const Breaker::Permit permit = backend->breaker.acquire(now, call_.worker().roll());
    if (permit.granted) {
      holding.backend = backend;
      holding.permit = permit;
      return true;
    }
    soonest = std::min(soonest, permit.retry_after);
  }
  refuse(ApiErrorKind::no_backend_available,
         "The backend of profile '" + profile.config.name +
             "' is taken out after failures; it will be tried again soon.",
         soonest);
  return false;
}

Task<bool> Attempts::acquire(Entry& entry, Holding& holding) {
  const bool reserved = co_await reserve(holding, *entry.candidate);
  if (!reserved) co_return false;
  bool ready = co_await enter_gate(holding);
  if (ready) ready = choose_backend(holding);
  if (!ready) {
    holding.profile.limiter.refund(holding.reservation, call_.worker().now());
    co_return false;
  }
  holding.counted = true;
  holding.profile.in_flight.fetch_add(1, std::memory_order_relaxed);
  co_return true;
}

/// False: the call is over.
Task<bool> Attempts::pause(Duration wait) {
  const TimePoint now = call_.worker().now();
  Event event(call_.worker().executor());
  call_.monitor().watch(event, TimePoint::max(), Stop::none, now);
  co_await event.wait_until(now + wait);
  call_.monitor().unwatch();
  co_return !call_.monitor().is_over();
}

Duration Attempts::wait_before(const Entry& entry) const {
  if (!entry.tried) return Duration::zero();
  Worker& worker = call_.session.worker();
  const Duration backoff =
      backoff_delay(call_.session.runtime().config.retry, made_, worker.roll());
  return std::max(backoff, Duration(entry.not_before - worker.now()));
}

Entry* Attempts::next_entry() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[(cursor_ + i) % entries_.size()];
    if (entry.excluded) continue;
    cursor_ = (cursor_ + i + 1) % entries_.size();
    return &entry;
  }
  return nullptr;
}

bool Attempts::may_go_on() {
  Runtime& runtime = call_.runtime();
  if (made_ == 0) return true;
  exhausted_ = made_ >= runtime.config.retry.attempts ||
               !runtime.retry_budget.try_spend(call_.worker().now());
  return !exhausted_;
}

void Attempts::settle(Holding& holding, Attempt& attempt) {
  if (holding.settled) return;
  holding.settled = true;
  const TimePoint now = call_.worker().now();
  holding.backend->breaker.release(holding.permit, attempt.verdict(), now, call_.worker().roll());
  const Exchange& exchange = call_.exchange();
  const bool worked = exchange.output_tokens > 0 || exchange.token_source == TokenSource::usage;
  if (worked)
    holding.profile.limiter.settle(
        holding.reservation, static_cast<double>(exchange.input_tokens + exchange.output_tokens),
        now);
  else
    holding.profile.limiter.refund(holding.reservation, now);
  holding.slot.reset();
  if (holding.counted) holding.profile.in_flight.fetch_sub(1, std::memory_order_relaxed);
  holding.counted = false;
}

void Attempts::count_attempt(Attempt& attempt, bool over) {
  AttemptResult result = AttemptResult::cancelled;
  const FaultClass fault = attempt.failure().fault.fault;
  if (attempt.verdict() == AttemptVerdict::success)
    result = AttemptResult::success;
  else if (attempt.verdict() == AttemptVerdict::failure)
    result = AttemptResult::failure;
  else if (fault == FaultClass::backpressure)
    result = AttemptResult::backpressure;
  else if (!over)
    result = AttemptResult::client_fault;
  call_.worker().metrics.attempt(call_.recorder.profile(), result);
}

void Attempts::after_failure(Entry& entry, Attempt& attempt) {
  Failure& failure = attempt.failure();
  failed_backends_.push_back(&attempt.backend());
  const TimePoint now = call_.worker().now();
  if (failure.fault.fault == FaultClass::backpressure && failure.retry_after)
    attempt.backend().breaker.cool_down(now + *failure.retry_after);
  // Credit does not come back in seconds: that credential rests.
  if (failure.fault.fault == FaultClass::quota)
    attempt.backend().breaker.cool_down(now + failure.retry_after.value_or(quota_rest));
  if (failure.retry_after) entry.not_before = now + *failure.retry_after;
  entry.tried = true;
  if (!failure.fault.retry_same) entry.excluded = true;
  if (!failure.fault.try_other)
    for (Entry& other : entries_)
      if (&other != &entry) other.excluded = true;
  if (failure.fault.larger_window_only) {
    const auto& profiles = call_.runtime().config.routes.profiles;
    for (Entry& other : entries_)
      if (!may_have_larger_window(profiles[entry.candidate->profile],
                                  profiles[other.candidate->profile]))
        other.excluded = true;
  }
  const bool another = std::any_of(entries_.begin(), entries_.end(),
                                   [](const Entry& other) { return !other.excluded; });
  if (failure.fault.possible_duplicate && another) call_.exchange().possible_duplicate = true;
  call_.failures.push_back(std::move(failure));
}

/// Why this profile and not the one that the route named: what happened there.
std::string Attempts::fallback_reason(const std::string& profile) const {
  const std::string_view code = api_error_row(call_.failures.back().kind).code;
  const std::string then = "; " + profile + " after " + std::string(code);
  const std::size_t room = reason_bytes_max - std::min(reason_bytes_max, then.size());
  return call_.decision.reason.substr(0, room) + then;
}

/// True: the call is over.
Task<bool> Attempts::round(Entry& entry) {
  ProfileState& profile = profile_of(entry);
  Holding holding(profile);
  const bool ready = co_await acquire(entry, holding);
  if (!ready) {
    entry.excluded = true;
    if (!call_.monitor().is_over()) co_return false;
    co_await end_interrupted(call_);
    co_return true;
  }
  ++made_;
  Exchange& exchange = call_.exchange();
  exchange.attempts = made_;
  exchange.retried = made_ > 1;
  exchange.profile = profile.config.name;
  if (!call_.failures.empty()) exchange.reason = fallback_reason(profile.config.name);
  call_.recorder.set_profile(static_cast<int>(entry.candidate->profile));
  Attempt attempt(call_, profile, *holding.backend, *entry.candidate);
  attempt.on_settle([this, &holding, &attempt] { settle(holding, attempt); });
  const bool over = co_await attempt.run();
  exchange.upstream += call_.worker().now() - attempt.started();
  settle(holding, attempt);
  count_attempt(attempt, over);
  if (over) {
    if (!call_.recorder.finished()) co_await end_interrupted(call_);
    co_return true;
  }
  after_failure(entry, attempt);
  co_return false;
}

Task<void> Attempts::run() {
  call_.runtime().retry_budget.count_request(call_.worker().now());
  while (Entry* entry = next_entry()) {
    const Duration wait = wait_before(*entry);
    const bool too_long = wait > retry_wait_max || call_.worker().now() + wait >= call_.deadline;
    if (entry->tried && too_long) {
      entry->excluded = true;
      continue;
    }
    if (!may_go_on()) break;
    if (wait > Duration::zero()) {
      const bool waited = co_await pause(wait);
      if (!waited) {
        co_await end_interrupted(call_);
        co_return;
      }
    }
    const bool over = co_await round(*entry);
    if (over) co_return;
  }
  co_await answer();
}

/// A 429 with a hint wins, else the first candidate's error; never a 401 (the table has none).
const Failure& Attempts::decisive() const {
  for (const Failure& failure : call_.failures) {
    const int status = failure.status != 0 ? failure.status : api_error_row(failure.kind).status;
    if (status == 429 && failure.retry_after) return failure;
  }
  for (const Failure& failure : call_.failures)
    if (!failure.own_limit) return failure;
  return call_.failures.front();
}

/// Nothing better came than an empty 200: that is what the backend said, so it is what is sent.
Task<void> Attempts::answer_spare(const Failure& failure) {
  Session& session = call_.session;
  Exchange& exchange = call_.exchange();
  exchange.error_code = api_error_row(failure.kind).code;
  std::string headers;
  if (call_.facts.stream) headers = "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  call_.recorder.append_headers(headers);
  call_.recorder.finish(200, Outcome::upstream_error);
  co_await session.answer(200, headers, failure.spare_headers, failure.spare_answer);
}

Task<void> Attempts::answer() {
  const Failure& failure = decisive();
  const bool all_spare = std::all_of(call_.failures.begin(), call_.failures.end(),
                                     [](const Failure& one) { return !one.spare_answer.empty(); });
  if (all_spare && !call_.stream_started) {
    co_await answer_spare(failure);
    co_return;
  }
  ApiError error{failure.kind, failure.message};
  if (failure.retry_after) error.retry_after = whole_seconds(*failure.retry_after);
  Outcome outcome = outcome_of(failure.kind);
  if (call_.stream_started) {  // a heartbeat has committed the 200: the error goes in-band
    std::string event = error_event(error);
    if (call_.chunked)
      event = fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", event.size(), event);
    else
      call_.session.close_after();
    call_.exchange().error_code = api_error_row(error.kind).code;
    call_.recorder.finish(200, outcome);
    call_.monitor().end_call();
    const std::array<asio::const_buffer, 1> out{asio::buffer(event)};
    (void)co_await call_.session.write(out);
    co_return;
  }
  std::string extra;
  // The SDKs obey it: what could be tried has been tried here.
  const bool retries = call_.runtime().config.retry.attempts > 1;
  const bool used_up =
      exhausted_ || made_ > 0 || failure.kind == ApiErrorKind::no_backend_available;
  if (retries && used_up) extra = "x-should-retry: false\r\n";
  call_.monitor().end_call();
  if (failure.status == 0) {
    co_await call_.recorder.refuse_with(error, outcome, extra);
    co_return;
  }
  // The backend's own error, in OpenAI shape, with its status.
  if (failure.fault.fault == FaultClass::client_fault ||
      failure.fault.fault == FaultClass::context_length)
    outcome = Outcome::client_error;
  if (error.retry_after)
    extra += "retry-after: " + std::to_string(error.retry_after->count()) + "\r\n";
  call_.recorder.append_headers(extra);
  call_.exchange().error_code = failure.status == 429 ? "upstream_rate_limit" : "upstream_error";
  call_.recorder.finish(failure.status, outcome);
  co_await call_.session.answer(failure.status, extra, "application/json", failure.body);
}

}  // namespace

Task<void> run_attempts(Call& call) {
  Attempts attempts(call);
  co_await attempts.run();
}

Task<void> end_interrupted(Call& call) {
  Session& session = call.session;
  const Stop stop = call.monitor().stop();
  session.close_after();
  if (stop == Stop::total_timeout && !call.stream_started) {
    call.monitor().end_call();
    const ApiError error{ApiErrorKind::total_timeout,
                         "The call's time limit ended before a backend answered."};
    co_await call.recorder.refuse(error);
    co_return;
  }
  if (stop == Stop::shutting_down && !call.stream_started) {
    call.monitor().end_call();
    const ApiError error{
        ApiErrorKind::shutting_down, "The gateway is shutting down.", {}, std::chrono::seconds(1)};
    co_await call.recorder.refuse(error);
    co_return;
  }
  const bool stalled = stop == Stop::client_stalled || session.stalled();
  call.recorder.finish(499, stalled ? Outcome::client_stalled : Outcome::client_closed);
  session.client().reset();
}

}  // namespace flashgate

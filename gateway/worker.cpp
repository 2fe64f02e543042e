#include "gateway/worker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <exception>
#include <random>

#include "gateway/session.hpp"

namespace flashgate {
namespace {

constexpr std::size_t buffers_kept = 64;
constexpr std::size_t buffer_bytes_kept = 64 * 1024;
constexpr int sweep_ticks = 50;

std::uint64_t rotl(std::uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

/// xoshiro256++ (Blackman & Vigna): for jitter and identifiers, not for secrets.
std::uint64_t next_random(std::array<std::uint64_t, 4>& s) {
  const std::uint64_t result = rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotl(s[3], 45);
  return result;
}

}  // namespace

Worker::Worker(Runtime& shared, Metrics::Slot& slot)
    : runtime(shared),
      metrics(slot),
      wheel(std::chrono::steady_clock::now()),
      io_(std::make_unique<asio::io_context>(1)),
      resolver_(std::make_unique<Resolver>(io_->get_executor())),
      pools_(shared.backends.size()) {
  std::random_device seed;
  for (std::uint64_t& word : dice_) word = (std::uint64_t{seed()} << 32) | seed();
}

/// Sessions that are still suspended are destroyed with the io_context, and use the rest of this
/// worker as they go; what holds sockets must go before it.
Worker::~Worker() {
  pools_.clear();
  resolver_.reset();
  io_.reset();
}

double Worker::roll() {
  return static_cast<double>(next_random(dice_) >> 11) * 0x1.0p-53;
}

std::string Worker::make_request_id() {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string id = "req_";
  id.reserve(36);
  for (int half = 0; half < 2; ++half) {
    std::uint64_t word = next_random(dice_);
    for (int i = 0; i < 16; ++i, word >>= 4) id += hex[word & 15];
  }
  return id;
}

BodyBuffer Worker::take_buffer() {
  if (buffers_.empty()) return {};
  BodyBuffer buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void Worker::give_buffer(BodyBuffer buffer) {
  if (buffer.capacity() == 0 || buffer.capacity() > buffer_bytes_kept) return;
  if (buffers_.size() >= buffers_kept) return;
  buffer.clear();
  buffers_.push_back(std::move(buffer));
}

void Worker::drain_sessions(bool hard) {
  // drain() may end a session, which takes itself out of the set later, on this thread.
  for (Session* session : sessions) session->drain(hard);
}

Task<void> Worker::yield() {
  co_await asio::post(*io_, asio::use_awaitable_t<Executor>{});
}

Task<void> Worker::tick() {
  SteadyTimer timer(executor());
  TimePoint due = now() + TimerWheel::tick;
  for (int ticks = 0;; ++ticks) {
    timer.expires_at(due);
    auto [error] = co_await timer.async_wait(no_throw);
    if (error) co_return;
    const TimePoint at = now();
    if (ticks % sweep_ticks == 0) {
      metrics.loop_lag(std::chrono::duration<double>(at - due).count());
      for (UpstreamPool& pool : pools_) pool.sweep(at);
    }
    wheel.advance(at);
    due = std::max(due + TimerWheel::tick, at);
  }
}

void Worker::run() {
  spawn(executor(), "tick", tick());
  while (!io_->stopped()) {
    try {
      io_->run();
      return;
    } catch (const std::exception& escaped) {
      std::fprintf(stderr, "flashgate: a handler threw: %s\n", escaped.what());
    }
  }
}

void spawn(Executor executor, const char* name, Task<void> task) {
  asio::co_spawn(executor, std::move(task), [name](const std::exception_ptr& escaped) {
    if (!escaped) return;
    try {
      std::rethrow_exception(escaped);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "flashgate: %s ended by an exception: %s\n", name, error.what());
    }
  });
}

}  // namespace flashgate

#include "gateway/server.hpp"

#include <boost/asio/post.hpp>

#include "gateway/listener.hpp"
#include "gateway/session.hpp"

namespace flashgate {
namespace {

constexpr Duration last_words_time = std::chrono::seconds(2);
constexpr Duration look_interval = std::chrono::milliseconds(20);

/// True if all connections ended before `until`.
bool wait_for_quiet(const Runtime& runtime, TimePoint until) {
  while (runtime.connections.load() > 0) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

}  // namespace

Server::Server(Runtime& runtime, Metrics& metrics, unsigned workers) : runtime_(runtime) {
  const unsigned count = workers > 0 ? workers : std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<Worker>(runtime, metrics.add_slot()));
    listeners_.push_back(std::make_unique<Listener>(*workers_.back()));
  }
}

Server::~Server() {
  stop_workers();
}

Result<void> Server::start() {
  const ListenConfig& listen = runtime_.config.listen;
  port_ = listen.port;
  for (const std::unique_ptr<Listener>& listener : listeners_) {
    Result<void> opened = listener->open(listen.host, port_);
    if (opened.has_error()) return opened.error();
    port_ = listener->port();
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    spawn(workers_[i]->executor(), "listener", listeners_[i]->run());
    threads_.emplace_back([worker = workers_[i].get()] { worker->run(); });
  }
  runtime_.ready = true;
  return {};
}

void Server::drain(Duration grace) {
  runtime_.draining = true;
  const TimePoint now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < workers_.size(); ++i)
    asio::post(workers_[i]->io(), [worker = workers_[i].get(), listener = listeners_[i].get()] {
      listener->close();
      worker->drain_sessions(false);
    });
  if (!wait_for_quiet(runtime_, now + grace)) {
    for (const std::unique_ptr<Worker>& worker : workers_)
      asio::post(worker->io(), [one = worker.get()] { one->drain_sessions(true); });
    (void)wait_for_quiet(runtime_, std::chrono::steady_clock::now() + last_words_time);
  }
  stop_workers();
}

void Server::stop_workers() {
  for (const std::unique_ptr<Worker>& worker : workers_) worker->stop();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace flashgate

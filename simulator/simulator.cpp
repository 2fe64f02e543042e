#include "simulator/simulator.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <list>
#include <thread>

#include "simulator/session.hpp"

namespace flashgate {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);
constexpr int backlog = 1024;
constexpr auto accept_pause = std::chrono::milliseconds(20);

void report(std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& what) {
    fmt::print(stderr, "simulator: a connection ended by an exception: {}\n", what.what());
  }
}

}  // namespace

class Simulator::Impl {
 public:
  explicit Impl(SimulatorOptions options)
      : host_(options.host), wanted_port_(options.port), engine_(std::move(options)) {}
  ~Impl() { stop(); }

  Result<void> start() {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(host_, error);
    if (error) return Error{"bad_host", "'" + host_ + "' is not an IP address"};
    const tcp::endpoint endpoint(address, wanted_port_);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(backlog, error);
    if (error) {
      acceptor_.close();
      return Error{"listen_failed",
                   fmt::format("cannot listen on {}:{}: {}", host_, wanted_port_, error.message())};
    }
    port_ = acceptor_.local_endpoint().port();
    engine_.set_started(std::chrono::steady_clock::now());
    asio::co_spawn(io_, accept_loop(*this), report);
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  void stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { close_all(); });
    thread_.join();
    port_ = 0;
  }

  std::uint16_t port() const { return port_; }
  std::string url() const {
    const bool v6 = host_.find(':') != std::string::npos;
    return fmt::format("http://{}:{}", v6 ? "[" + host_ + "]" : host_, port());
  }
  Engine& engine() { return engine_; }

 private:
  void close_all() {
    stopping_ = true;
    acceptor_.close();
    pause_.cancel();
    for (const auto& weak : sessions_) {
      if (const auto session = weak.lock()) session->close();
    }
  }

  static asio::awaitable<void> accept_loop(Impl& self) {
    while (!self.stopping_) {
      auto [error, socket] = co_await self.acceptor_.async_accept(no_throw);
      if (error && !self.stopping_) {
        // Out of descriptors, most likely: leave the others time to end.
        self.pause_.expires_after(accept_pause);
        co_await self.pause_.async_wait(no_throw);
      }
      if (error) continue;
      self.admit(std::move(socket));
    }
  }

  void admit(tcp::socket socket) {
    FaultFacts facts;
    facts.ordinal = engine_.count_connection();
    const Engine::Options options = engine_.options();
    facts.name = options->name;
    const auto session = std::make_shared<Session>(std::move(socket), engine_);
    for (const FaultRule& rule : choose_faults(options->faults, facts, options->seed)) {
      if (!is_for_accept(rule)) continue;
      engine_.count_answer(0, {rule}, 0, 0);
      session->reset();
      return;
    }
    std::erase_if(sessions_, [](const std::weak_ptr<Session>& weak) { return weak.expired(); });
    sessions_.push_back(session);
    asio::co_spawn(io_, Session::serve(session), report);
  }

  std::string host_;
  std::uint16_t wanted_port_;
  Engine engine_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  std::list<std::weak_ptr<Session>> sessions_{};
  bool stopping_ = false;
  std::atomic<std::uint16_t> port_ = 0;
  std::thread thread_{};
};

Simulator::Simulator(SimulatorOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
Simulator::~Simulator() = default;

Result<void> Simulator::start() {
  return impl_->start();
}
std::uint16_t Simulator::port() const {
  return impl_->port();
}
std::string Simulator::url() const {
  return impl_->url();
}
SimulatorStats Simulator::stats() const {
  return impl_->engine().stats();
}
std::vector<RecordedRequest> Simulator::recorded() const {
  return impl_->engine().recorded();
}
void Simulator::set_faults(std::vector<FaultRule> faults) {
  impl_->engine().set_faults(std::move(faults));
}
void Simulator::set_timing(Timing timing) {
  impl_->engine().set_timing(timing);
}
void Simulator::stop() {
  impl_->stop();
}

std::string stats_json(const SimulatorStats& stats) {
  Json out = Json::object();
  out["connections"] = stats.connections;
  out["requests"] = stats.requests;
  out["completed"] = stats.completed;
  out["cancelled"] = stats.cancelled;
  out["broken"] = stats.broken;
  out["in_flight"] = stats.in_flight;
  out["waiting"] = stats.waiting;
  out["in_flight_max"] = stats.in_flight_max;
  out["input_tokens"] = stats.input_tokens;
  out["output_tokens"] = stats.output_tokens;
  out["by_status"] = Json::object();
  for (const auto& [status, count] : stats.by_status) {
    out["by_status"][std::to_string(status)] = count;
  }
  out["by_fault"] = Json::object();
  for (const auto& [fault, count] : stats.by_fault) out["by_fault"][fault] = count;
  return dump(out);
}

}  // namespace flashgate

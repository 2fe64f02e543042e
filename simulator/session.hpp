#pragma once
// One accepted connection of a simulated backend: reads requests, runs scripts, notices the
// client's departure. Internal to this folder (it shows Asio); lives and runs on the simulator's
// thread.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <string>

#include "simulator/engine.hpp"
#include "simulator/respond.hpp"
#include "simulator/wire_script.hpp"

namespace flashgate {

class Session final : public SlotWaiter, public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, Engine& engine);

  static boost::asio::awaitable<void> serve(std::shared_ptr<Session> self);
  void wake() override { timer_.cancel(); }
  /// Ends whatever the connection is doing.
  void close();
  void reset();

 private:
  template <class T>
  using Task = boost::asio::awaitable<T>;
  enum class After { keep, close, gone };

  Task<bool> fill();
  Task<bool> read_head(RequestHead& head);
  Task<bool> read_body(const RequestHead& head, std::string& body);
  Task<bool> refuse(int status, std::string_view why);
  Task<After> answer(const Incoming& request);
  Task<bool> wait_for_slot();
  Task<Engine::End> run(const Script& script);
  Task<Engine::End> stall(Duration duration);
  Task<bool> send(std::string_view bytes, const Script& script);
  Task<bool> sleep_until(TimePoint due);
  Task<void> linger();
  void watch();
  void on_readable();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer idle_timer_;
  Engine& engine_;
  std::string buffer_{};
  std::string chunk_{};
  std::string head_text_{};
  bool answering_ = false;
  bool watching_ = false;
  bool gone_ = false;
  bool closed_ = false;
};

}  // namespace flashgate

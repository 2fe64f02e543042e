#pragma once
// Names to addresses, off the loop (Asio resolves on a thread of its own), remembered per worker.
// A name that stops resolving keeps its last good addresses. One worker only.
#include <boost/asio/ip/basic_resolver.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "net/event.hpp"

namespace flashgate {

class Resolver {
 public:
  using Endpoints = std::vector<asio::ip::tcp::endpoint>;
  static constexpr Duration remembered = std::chrono::seconds(30);

  explicit Resolver(Executor executor) : executor_(executor), resolver_(executor) {}

  /// At once for literals and remembered names, else null: start() and wait for the event.
  const Endpoints* find(const std::string& host, std::uint16_t port, TimePoint now);
  /// Sets `done` when the look-up has ended; find() with `now` then has the answer, or fails.
  void start(const std::string& host, std::uint16_t port, const std::shared_ptr<Event>& done);

 private:
  struct Entry {
    Endpoints endpoints{};
    TimePoint until{};
    bool resolving = false;
    std::vector<std::shared_ptr<Event>> waiters{};
  };
  using Key = std::pair<std::string, std::uint16_t>;
  using Results = asio::ip::basic_resolver_results<asio::ip::tcp>;
  void finished(const Key& key, const error_code& error, const Results& results);

  Executor executor_;
  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver_;
  std::map<Key, Entry> entries_;
};

}  // namespace flashgate

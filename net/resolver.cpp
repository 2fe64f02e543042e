#include "net/resolver.hpp"

namespace flashgate {

const Resolver::Endpoints* Resolver::find(const std::string& host, std::uint16_t port,
                                          TimePoint now) {
  Entry& entry = entries_[{host, port}];
  if (!entry.endpoints.empty() && now < entry.until) return &entry.endpoints;
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) return nullptr;
  entry.endpoints = {asio::ip::tcp::endpoint(address, port)};
  entry.until = TimePoint::max();
  return &entry.endpoints;
}

void Resolver::start(const std::string& host, std::uint16_t port,
                     const std::shared_ptr<Event>& done) {
  const Key key{host, port};
  Entry& entry = entries_[key];
  entry.waiters.push_back(done);
  if (entry.resolving) return;
  entry.resolving = true;
  resolver_.async_resolve(host, std::to_string(port), asio::ip::resolver_base::numeric_service,
                          [this, key](const error_code& error, const Results& results) {
                            finished(key, error, results);
                          });
}

void Resolver::finished(const Key& key, const error_code& error, const Results& results) {
  Entry& entry = entries_[key];
  entry.resolving = false;
  const TimePoint now = std::chrono::steady_clock::now();
  if (!error) {
    entry.endpoints.clear();
    for (const auto& result : results) entry.endpoints.push_back(result.endpoint());
  }
  // A failed look-up leaves the old addresses for a moment; without any, find() has nothing.
  entry.until = now + (error ? std::chrono::seconds(1) : remembered);
  std::vector<std::shared_ptr<Event>> waiters = std::move(entry.waiters);
  entry.waiters.clear();
  for (const std::shared_ptr<Event>& waiter : waiters) waiter->set();
}

}  // namespace flashgate

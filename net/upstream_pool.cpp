#include "net/upstream_pool.hpp"

#include <algorithm>

namespace flashgate {

std::unique_ptr<Connection> UpstreamPool::take(TimePoint now) {
  while (!idle_.empty()) {
    Idle last = std::move(idle_.back());
    idle_.pop_back();
    if (now >= last.until) continue;
    if (now - last.since < surely_fresh || last.connection->is_quiet())
      return std::move(last.connection);
  }
  return nullptr;
}

void UpstreamPool::put(std::unique_ptr<Connection> connection, TimePoint now, Duration keep) {
  if (idle_.size() >= idle_max || keep <= Duration::zero()) return;
  idle_.push_back({std::move(connection), now, now + std::min(keep, idle_time)});
}

void UpstreamPool::sweep(TimePoint now) {
  std::erase_if(idle_, [now](const Idle& idle) {
    return now >= idle.until || (now - idle.since >= surely_fresh && !idle.connection->is_quiet());
  });
}

}  // namespace flashgate

#pragma once
// The admin listener: /metrics, /livez, /readyz, /status. Beast serves it whole, on a thread of its
// own, so that nothing here can delay a request. Loopback unless a token is set.
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "gateway/metrics.hpp"

namespace flashgate {

class Admin {
 public:
  Admin(const Runtime& runtime, const Metrics& metrics);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  Result<void> start();
  std::uint16_t port() const;
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace flashgate

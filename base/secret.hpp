#pragma once
// A credential in memory: never printed, wiped when it goes. `reveal()` is the one place it comes
// out, to be called only where it is written to a backend. Plain value, any thread.
#include <string>
#include <string_view>
#include <utility>

namespace flashgate {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  Secret(Secret&& other) noexcept : value_(std::move(other.value_)) { other.wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe();
      value_ = std::move(other.value_);
      other.wipe();
    }
    return *this;
  }
  ~Secret() { wipe(); }

  std::string_view reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  bool operator==(const Secret&) const = default;

 private:
  void wipe() {
    for (volatile char& c : value_) c = 0;
    value_.clear();
  }

  std::string value_;
};

}  // namespace flashgate

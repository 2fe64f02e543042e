#pragma once
// Result<T>: a value or an Error that says what was wrong and what would fix it.
// An Error carries a stable machine code (snake_case) and a message for people. Plain values, any
// thread.
#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>

namespace flashgate {

struct Error {
  std::string code{};
  std::string message{};
};

[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::logic_error(error.code + ": " + error.message);
}

template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace flashgate

#pragma once
// The seam to Asio: one executor type, one token, one result of an operation. Everything on a
// worker runs on that worker's io_context; nothing here is shared between threads.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>

namespace flashgate {

namespace asio = boost::asio;
using boost::system::error_code;

using Executor = asio::io_context::executor_type;
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

template <class T = void>
using Task = asio::awaitable<T, Executor>;

/// Every await in this program uses it: errors come back as values, on the next line.
inline constexpr auto no_throw = asio::as_tuple(asio::use_awaitable_t<Executor>{});

struct IoResult {
  error_code error{};
  std::size_t bytes = 0;
};

}  // namespace flashgate

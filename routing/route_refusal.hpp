#pragma once
// How the router says no, and how it words its reasons. Pure, any thread.
#include <string>
#include <string_view>
#include <vector>

#include "routing/router.hpp"

namespace flashgate {

/// What the client wrote, cut to a length that is fit to repeat.
std::string quoted_model(std::string_view model);
ApiError unknown_model(const RouteTable& table, const RouteInput& input, std::string_view model);
ApiError model_not_allowed(std::string_view model);
/// Every candidate was dropped: the reason that a client can do something about wins.
ApiError nothing_fits(const RouteTable& table, const RouteInput& input,
                      const std::vector<Candidate>& dropped);
/// Printable ASCII only, at most reason_bytes_max bytes.
std::string header_line(std::string_view text);

}  // namespace flashgate

#pragma once
// `flashgate demo`: the gateway over two simulated backends in the same process, a fast local
// "flash" and a slower "cloud". No key, no network. Main thread only.
#include "cli/serve.hpp"

namespace flashgate {

int run_demo(const ServeCommand& command);

}  // namespace flashgate

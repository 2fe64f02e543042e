#pragma once
// `flashgate check`: everything that is wrong with a configuration file, at once.
#include <string>

namespace flashgate {

struct CheckCommand {
  std::string config{};  // empty: where `serve` would look
  bool json = false;
  bool upgrade = false;  // print the file in the current version instead
};

/// Diagnostics go to standard output. 0: it will run (warnings allowed), 1: errors, 2: no file.
int run_check(const CheckCommand& command);

}  // namespace flashgate

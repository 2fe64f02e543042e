#pragma once
// The process's files and environment, in the shape in which the configuration asks for them.
#include <string>

#include "base/result.hpp"
#include "config/load.hpp"

namespace flashgate {

Result<std::string> read_file(const std::string& path);
bool file_exists(const std::string& path);
Environment process_environment();

}  // namespace flashgate

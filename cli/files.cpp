#include "cli/files.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace flashgate {

Result<std::string> read_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return Error{"file_unreadable", "cannot read '" + path + "': " + std::strerror(errno)};
  if (S_ISDIR(found.st_mode)) return Error{"file_unreadable", "'" + path + "' is a directory"};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{"file_unreadable", "cannot read '" + path + "'"};
  return {boost::system::in_place_value, text.str()};
}

bool file_exists(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0;
}

Environment process_environment() {
  return [](const std::string& variable) -> std::optional<std::string> {
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

}  // namespace flashgate

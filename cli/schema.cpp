#include "cli/schema.hpp"

#include <iostream>

#include "config/load.hpp"

namespace flashgate {

int run_schema() {
  std::cout << config_schema();
  return 0;
}

}  // namespace flashgate

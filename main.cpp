// flashgate: one gateway in front of several LLM backends. The commands are in cli/.
#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  return flashgate::run_command_line(argc, argv);
}

#pragma once
// The commands and their flags, in one place. Exit codes: 0 done, 1 failed, 2 usage.
namespace flashgate {

int run_command_line(int argc, char** argv);

}  // namespace flashgate

#!/bin/sh
# Compares flashgate, nginx and HAProxy on the same work in one run; `run.sh --help` lists options.
# Needs cmake, a C++20 compiler, python3, taskset, nginx and haproxy. FLASHGATE_BIN names the binary
# (default build/release/flashgate); FLASHGATE_BENCH_BUILD the directory of the load programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${FLASHGATE_BENCH_BUILD:-$root/build/bench}
cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" >/dev/null
FLASHGATE_BIN=${FLASHGATE_BIN:-$root/build/release/flashgate}
export FLASHGATE_BIN
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec python3 "$here/bench.py" --programs "$build" "$@"

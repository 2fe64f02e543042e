#!/usr/bin/env bash
# Configures and builds one preset. usage: scripts/build.sh PRESET [TARGET ...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "build.sh: configuring '$preset' failed" >&2
    exit 1
  }
fi
cmake --build "build/$preset" ${1:+--target "$@"}

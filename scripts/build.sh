#!/usr/bin/env bash
# Configures and builds one preset. usage: scripts/build.sh PRESET [TARGET ...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
# Two clones of one tree share what was compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
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

#!/usr/bin/env bash
# Builds the libFuzzer targets and runs each for some seconds over its corpus.
# usage: tests/fuzz/run.sh [seconds per target]
set -uo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-5}
scripts/install.sh fuzz
targets=()
for source in tests/fuzz/fuzz_*.cpp; do targets+=("$(basename "$source" .cpp)"); done
scripts/build.sh fuzz "${targets[@]}" || exit 1
passed=0
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for target in "${targets[@]}"; do
  mkdir -p "$scratch/$target"
  corpus=tests/fuzz/corpus/${target#fuzz_}
  [ -d "$corpus" ] || corpus=tests/fuzz/corpus/$target
  [ -d "$corpus" ] || corpus=
  if "build/fuzz/tests/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$scratch/" -print_final_stats=1 "$scratch/$target" ${corpus:+"$corpus"} \
    >"$scratch/$target.log" 2>&1; then
    passed=$((passed + 1))
    echo "$target: $(grep -oE 'number_of_executed_units: *[0-9]+' "$scratch/$target.log" | tr -dc 0-9) runs"
  else
    failed=$((failed + 1))
    echo "$target: FAILED"
    tail -n 40 "$scratch/$target.log"
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

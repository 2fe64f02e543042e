#!/usr/bin/env bash
# Installs, builds and runs all tests; prints the minutes of each stage and a closing count.
# usage: scripts/test.sh [stage ...]     stages: build unit integration clients asan tsan fuzz;
# without any: all but fuzz, which searches and is run by hand (tests/fuzz/run.sh 60).
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(build unit integration clients asan tsan)

passed=0
failed=0
failures=()
wants() { [[ " ${stages[*]} " == *" $1 "* ]]; }

# stage NAME COMMAND...: output to the screen and a log; minutes at the end.
stage() {
  local name=$1 began=$SECONDS
  shift
  echo "== $name"
  log=$(mktemp)
  "$@" 2>&1 | tee "$log"
  local code=${PIPESTATUS[0]}
  count "$name" "$code" "$log"
  rm -f "$log"
  printf '== %s: %d.%d min\n' "$name" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60 / 6))
}

# Adds what the runner said at its end; a stage that fails without a count is one failure.
count() {
  local name=$1 code=$2 log=$3 good=0 bad=0
  if grep -qE '^[0-9]+ passed, [0-9]+ failed$' "$log"; then
    read -r good bad < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1 | tr -dc '0-9 \n')
  elif grep -qE '(^| )[0-9]+ (passed|failed)' "$log"; then
    good=$(grep -oE '[0-9]+ passed' "$log" | tail -n 1 | tr -dc 0-9)
    bad=$(grep -oE '[0-9]+ (failed|error)' "$log" | tail -n 1 | tr -dc 0-9)
  elif grep -q 'tests passed' "$log"; then
    local all
    all=$(grep -oE 'out of [0-9]+' "$log" | tail -n 1 | tr -dc 0-9)
    bad=$(grep -oE '[0-9]+ tests failed' "$log" | tail -n 1 | tr -dc 0-9)
    good=$((all - ${bad:-0}))
  elif [ "$code" -eq 0 ]; then
    good=1
  fi
  good=${good:-0}
  bad=${bad:-0}
  [ "$code" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  passed=$((passed + good))
  failed=$((failed + bad))
  [ "$bad" -eq 0 ] || failures+=("$name")
}

stop_if_failed() {
  [ ${#failures[@]} -eq 0 ] && return
  echo "test.sh: stage '${failures[0]}' failed; nothing after it can run" >&2
  echo "$passed passed, $failed failed"
  exit 1
}

unit() { ctest --test-dir "build/$1" --output-on-failure -j2 --timeout 300; }
integration() {
  FLASHGATE_BIN=$root/build/$1/flashgate /usr/bin/python3 -m pytest -q -p no:cacheprovider \
    --durations=5 "${@:2}"
}
sanitized() {
  ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99 \
    UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=0:exitcode=98:second_deadlock_stack=1 \
    "$@"
}

began=$SECONDS
stage "install" scripts/install.sh build test
stop_if_failed
if wants build || wants unit || wants integration || wants clients; then
  stage "build release" scripts/build.sh release
  stop_if_failed
fi
if wants unit; then stage "unit" unit release; fi
if wants integration; then stage "integration" integration release tests/integration; fi
if wants clients; then stage "clients" tests/clients/run.sh; fi
if wants asan; then
  stage "build asan" scripts/build.sh asan
  stop_if_failed
  stage "unit asan" sanitized unit asan
  # Resident memory says nothing under a sanitizer that keeps what was freed.
  FLASHGATE_SLOW=3 stage "integration asan" sanitized integration asan tests/integration \
    -k "not memory"
fi
if wants tsan; then
  stage "build tsan" scripts/build.sh tsan flashgate test_routing
  stop_if_failed
  stage "unit tsan" sanitized build/tsan/tests/test_routing
  FLASHGATE_SLOW=3 stage "integration tsan" sanitized integration tsan tests/integration \
    -k "cancel or queue or retry or breaker"
fi
if wants fuzz; then stage "fuzz" tests/fuzz/run.sh 5; fi

printf '== all: %d min\n' $(((SECONDS - began) / 60))
[ ${#failures[@]} -eq 0 ] || echo "test.sh: failed stages: ${failures[*]}" >&2
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/usr/bin/env bash
# Installs what is missing, builds flashgate and starts it: with the configuration file you name,
# or as a demo with simulated backends. usage: scripts/run.sh [config.yaml] [flags of serve or demo]
set -euo pipefail
start=$PWD
cd "$(dirname "$0")/.."

case "${1:-}" in
  -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;;
esac
config=
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  config=$1
  shift
  [ "${config#/}" != "$config" ] || config=$start/$config
  [ -r "$config" ] || { echo "run.sh: cannot read '$config'" >&2; exit 1; }
fi

scripts/install.sh build
echo "Building build/release/flashgate (the first time takes a few minutes) …" >&2
log=$(mktemp)
if ! scripts/build.sh release flashgate >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "run.sh: the build failed; the lines above say why" >&2
  rm -f "$log"
  exit 1
fi
rm -f "$log"

if [ -n "$config" ]; then exec build/release/flashgate serve --config "$config" "$@"; fi
exec build/release/flashgate demo "$@"

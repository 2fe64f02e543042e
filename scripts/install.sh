#!/usr/bin/env bash
# Installs the Debian packages that a purpose needs and that are missing. Quick when none is.
# usage: scripts/install.sh build|test|bench|style ...
set -euo pipefail

build="g++ cmake ninja-build ccache pkg-config libboost1.81-dev libyaml-cpp-dev nlohmann-json3-dev
  libsimdjson-dev libfmt-dev libcli11-dev prometheus-cpp-dev libssl-dev libzstd-dev libbrotli-dev
  zlib1g-dev ca-certificates"
test="$build catch2 python3 python3-venv python3-pytest nodejs npm prometheus openssl curl procps
  iproute2 git"
bench="$build python3 nginx haproxy"
style="clang-format-14 clang-tidy-19"
fuzz="$build catch2 clang-14 libclang-rt-14-dev"

wanted=()
for purpose in "$@"; do
  case "$purpose" in
    build | test | bench | style | fuzz) read -r -d '' -a more <<<"${!purpose}" || true ;;
    *) echo "install.sh: unknown purpose '$purpose'" >&2; exit 2 ;;
  esac
  wanted+=("${more[@]}")
done

missing=()
for package in "${wanted[@]}"; do
  # Programs that came another way count too: a newer node, a python of one's own.
  case "$package" in
    nodejs) command -v node >/dev/null && continue ;;
    npm) command -v npm >/dev/null && continue ;;
  esac
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install.sh: these packages are missing and need root: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# No service may start by itself: tests bring up what they need, on ports of their own.
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  made_policy=yes
fi
cleanup() { [ -z "$made_policy" ] || "${as_root[@]}" rm -f "$policy"; rm -f "$log"; }
trap cleanup EXIT
if ! { "${as_root[@]}" apt-get update -q &&
  "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "install.sh: apt-get failed; the lines above say why" >&2
  exit 1
fi

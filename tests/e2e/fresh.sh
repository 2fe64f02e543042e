#!/usr/bin/env bash
# Shows that ./scripts/run.sh needs nothing but git: a bare Debian 12 in a chroot, a clone of this
# repository's last commit, the script, and the curl that it prints. Then once more, to see that the
# second start is quick. Not part of CI: it compiles everything from nothing.
# usage, as root: tests/e2e/fresh.sh
# Environment: MIRROR (default http://deb.debian.org/debian); proxies and apt's own proxy settings
# of this machine are taken over.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
mirror=${MIRROR:-http://deb.debian.org/debian}

fail() { echo "fresh.sh: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail "needs root for debootstrap and chroot"
for program in debootstrap unshare curl git; do
  command -v "$program" >/dev/null || fail "needs $program (apt-get install debootstrap curl git)"
done

# Everything happens in namespaces of its own: their end takes all processes and mounts along.
if [ -z "${FRESH_DIR:-}" ]; then
  FRESH_DIR=$(mktemp -d /var/tmp/flashgate-fresh.XXXXXX)
  export FRESH_DIR
  trap 'rm -rf --one-file-system "$FRESH_DIR"' EXIT
  unshare --mount --propagation private --pid --fork --kill-child "$0" "$@"
  exit
fi
machine=$FRESH_DIR/machine

began=$SECONDS
echo "== debootstrap (Debian 12, minbase and git)"
debootstrap --variant=minbase --include=git bookworm "$machine" "$mirror" \
  >"$FRESH_DIR/debootstrap.log" 2>&1 || {
  tail -n 20 "$FRESH_DIR/debootstrap.log"
  fail "debootstrap failed"
}
mount -t proc proc "$machine/proc"
mount --rbind /dev "$machine/dev"
{
  echo "deb $mirror bookworm main"
  echo "deb $mirror bookworm-updates main"
  echo "deb ${mirror%/debian}/debian-security bookworm-security main"
} >"$machine/etc/apt/sources.list"
grep -lsE 'Acquire::.*([Pp]roxy|CaInfo|CaPath)' /etc/apt/apt.conf /etc/apt/apt.conf.d/* |
  xargs -r cp -t "$machine/etc/apt/apt.conf.d/" || true
cp /etc/resolv.conf /etc/hosts "$machine/etc/"
authorities=usr/local/share/ca-certificates
mkdir -p "$machine/$authorities"
cp -t "$machine/$authorities" "/$authorities/"*.crt 2>/dev/null || true
git clone -q --bare "$root" "$machine/srv/flashgate.git"
echo "== bare machine ready after $((SECONDS - began)) s"

keep=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || keep+=("$name=${!name}")
done
inside=(chroot "$machine" /usr/bin/env -i HOME=/root LANG=C.UTF-8
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${keep[@]}")
for program in cmake g++ curl python3; do
  ! "${inside[@]}" /bin/sh -c "command -v $program" >/dev/null || fail "the machine is not bare: $program"
done
"${inside[@]}" git clone -q /srv/flashgate.git /root/flashgate

# The lines of the first curl command that the demo prints, as one command.
printed_curl() { awk '/^  curl /{on=1} on{print} on && !/\\$/{exit}' "$1"; }

start_and_ask() {
  local what=$1 out=$FRESH_DIR/$1.out err=$FRESH_DIR/$1.err from=$SECONDS
  # Ports 0: whatever else this machine serves is left alone.
  local run="./scripts/run.sh --listen 127.0.0.1:0 --admin 127.0.0.1:0"
  echo "== $what start: $run"
  : >"$out"
  "${inside[@]}" /bin/bash -c "cd /root/flashgate && exec $run" >"$out" 2>"$err" &
  local pid=$!
  while ! grep -q 'Stop with Ctrl-C' "$out"; do
    kill -0 "$pid" 2>/dev/null || { tail -n 40 "$err"; fail "run.sh ended before it served"; }
    [ $((SECONDS - from)) -lt 3600 ] || { tail -n 40 "$err"; fail "run.sh took over an hour"; }
    sleep 0.2
  done
  echo "== $what start served after $((SECONDS - from)) s"
  local command answer
  command=$(printed_curl "$out")
  [ -n "$command" ] || fail "run.sh printed no curl command"
  echo "$command"
  answer=$(bash -c "$command")
  echo "$answer"
  [[ "$answer" == *'"content"'* && "$answer" == *'"usage"'* ]] ||
    fail "that is not a chat completion"
  kill -TERM "$pid"
  local code=0
  wait "$pid" || code=$?
  [ "$code" -eq 0 ] || fail "run.sh ended with $code on SIGTERM"
}

start_and_ask first
start_and_ask second
echo "fresh: run.sh answered its own curl on a bare Debian 12, twice ($((SECONDS - began)) s)"

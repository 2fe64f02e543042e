#!/usr/bin/env bash
set -euo pipefail

readonly app="${1:?usage: deploy.sh <app> <version>}"
readonly version="${2:?usage: deploy.sh <app> <version>}"
readonly target="/srv/${app}/releases/${version}"

log() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >&2; }

if [[ ! -f "build/${app}.tar.gz" ]]; then
  log "no build for ${app}; run make first"
  exit 1
fi

mkdir -p "${target}"
tar -xzf "build/${app}.tar.gz" -C "${target}" --strip-components=1
ln -sfn "${target}" "/srv/${app}/current"
systemctl reload "${app}.service" || systemctl restart "${app}.service"

for attempt in $(seq 1 30); do
  if curl -fsS --max-time 2 "http://127.0.0.1:8080/healthz" >/dev/null; then
    log "${app} ${version} is healthy after ${attempt} tries"
    exit 0
  fi
  sleep 1
done
log "health check failed, rolling back"
ln -sfn "$(ls -1dt /srv/${app}/releases/* | sed -n 2p)" "/srv/${app}/current"
exit 1

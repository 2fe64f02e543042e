#!/usr/bin/env bash
# Starts the real model's server and prints its base_url on one line once it answers; then stays
# in the foreground until it is ended. Environment: PORT (default 0: a free one), MODEL_NAME,
# CONTEXT_TOKENS.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/env.sh"

prepared="$("$here/setup.sh")"
MODEL_FILE="$(sed -n 1p <<<"$prepared")"
RUNTIME_DIR="$(sed -n 2p <<<"$prepared")"
export MODEL_FILE RUNTIME_DIR
need_node
exec node "$here/server.mjs"

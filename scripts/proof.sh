#!/usr/bin/env bash
# Shows the whole promise on a real model: the founding configuration, the OpenAI SDKs for Python
# and Node, streaming, over 16,000 input tokens to the cloud profile, the flash backend killed and
# the cloud answering. Prints PASS or FAIL for each step with what was seen.
# Environment: FLASHGATE_BIN (default build/release/flashgate).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
clients="$root/tests/clients"
. "$root/tests/real_model/env.sh"
. "$clients/install.sh"

need_gateway "$root"
"$root/tests/real_model/setup.sh" >/dev/null
install_clients "$clients"
cd "$clients"
exec "$CLIENTS_PYTHON" proof.py "$root/examples/founding.yaml"

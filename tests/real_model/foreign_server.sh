#!/usr/bin/env bash
# Puts flashgate in front of an inference server that nobody here wrote: llama.cpp's own HTTP
# server (from the PyPI wheel `xllamacpp`), with the small model of setup.sh. For a person to run.
# Environment: FLASHGATE_BIN; FLASHGATE_DIRECT=1 asks the server itself.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
. "$here/env.sh"
. "$root/tests/clients/install.sh"

need_gateway "$root"
model_file="$("$here/setup.sh" | sed -n 1p)"
install_clients "$root/tests/clients"
server_dir="$(python_env foreign-server "$here/foreign_requirements.txt")"
exec "$CLIENTS_PYTHON" "$here/foreign_check.py" "$server_dir/bin/python" "$model_file"

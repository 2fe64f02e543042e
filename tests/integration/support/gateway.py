"""Gateway: the real binary as a process, with its ports, call log and metrics.

The binary is $FLASHGATE_BIN, else build/release/flashgate of this tree.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from .client import FakeClient

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY = re.compile(r"serving (https?)://(\S+):(\d+)/v1, admin https?://(\S+):(\d+)")
SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

# A breaker that never opens: what most tests want. Override per profile.
QUIET = {
    "auth": "none",
    "breaker": {"consecutive_failures": 100000, "failure_ratio": "100%", "min_samples": 100000,
                "cooldown": "1s"},
}


def binary():
    """Path of the program under test."""
    return os.environ.get("FLASHGATE_BIN") or str(ROOT / "build/release/flashgate")


def profile(backend, **more):
    """A profile for `backend` (a FakeBackend or a URL): QUIET plus `more`."""
    url = backend if isinstance(backend, str) else backend.url
    whole = {"base_url": url, "model": "m", **QUIET}
    whole.update(more)
    return {k: v for k, v in whole.items() if v is not None}


def config(backend=None, fallback=None, profiles=None, attempts=1, **top):
    """A configuration. Either one backend (profile `main`), with `fallback` a second one
    (profile `spare`), or `profiles` as a dict of profile dicts, the first being the default.

    `attempts` is routing.retry.attempts; `top` adds top-level keys (routing is merged).
    """
    if profiles is None:
        main = backend if isinstance(backend, dict) else profile(backend)
        profiles = {"main": main}
        if fallback is not None:
            spare = fallback if isinstance(fallback, dict) else profile(fallback, model="m2")
            profiles["spare"] = spare
    names = list(profiles)
    routing = {"retry": {"attempts": attempts, "backoff": "10ms"}}
    if len(names) > 1 and fallback is not None:
        routing["fallback"] = names[1]
    routing.update(top.pop("routing", {}))
    return {"version": 1, "profiles": profiles, "default": names[0], "routing": routing, **top}


class Gateway:
    """One running gateway. Made by the `gateway` fixture, which also ends it."""

    def __init__(self, configuration, folder, env=None, args=(), wait=True,
                 listen="127.0.0.1:0"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_file = self.folder / "calls.jsonl"
        self.config_file = self.folder / "flashgate.yaml"
        self.write_config(configuration)
        self.stderr = []
        self.clients = []
        self.marked = 0
        self.port = self.admin_port = 0
        self.ready = threading.Event()
        clean = {k: v for k, v in os.environ.items()
                 if k.lower() not in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
                 and not k.startswith("FLASHGATE_")}
        self.process = subprocess.Popen(
            [binary(), "serve", "--config", str(self.config_file), "--listen", listen,
             "--admin", "127.0.0.1:0", *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**clean, **(env or {})}, cwd=self.folder)
        self.reader = threading.Thread(target=self._read_stderr, daemon=True)
        self.reader.start()
        if wait:
            self.wait_ready()

    def write_config(self, configuration):
        """Write the file: text as it is, a dict as JSON (which is YAML) with log and data_dir."""
        if not isinstance(configuration, str):
            whole = dict(configuration)
            whole.setdefault("log", {"path": str(self.log_file)})
            whole.setdefault("data_dir", str(self.folder / "data"))
            configuration = json.dumps(whole, indent=1)
        self.config_file.write_text(configuration)

    def _read_stderr(self):
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.stderr.append(line)
            found = READY.search(line)
            if found:
                self.port, self.admin_port = int(found[3]), int(found[5])
                self.ready.set()

    def wait_ready(self, seconds=15.0):
        end = time.monotonic() + seconds
        while not self.ready.wait(0.02):
            if self.process.poll() is not None or time.monotonic() > end:
                self.reader.join(1.0)
                raise AssertionError("gateway did not start: " + "\n".join(self.stderr[-30:]))
        return self

    # Talking to it.

    def client(self, **more):
        """A new connection to the data plane; closed with the gateway."""
        one = FakeClient(self.port, **more)
        self.clients.append(one)
        return one

    def chat(self, content="hi", stream=False, headers=(), seconds=None, **members):
        """One chat request on a connection of its own."""
        with FakeClient(self.port) as one:
            return one.chat(content, stream, headers, seconds, **members)

    def request(self, body=None, seconds=None, **more):
        """One request of any kind on a connection of its own."""
        with FakeClient(self.port) as one:
            return one.exchange(body, seconds, **more)

    def admin(self, path, method="GET", body=None, **more):
        """One request to the admin plane."""
        more.setdefault("host", f"127.0.0.1:{self.admin_port}")
        with FakeClient(self.admin_port) as one:
            return one.exchange(body, method=method, path=path,
                                headers=[("Connection", "close")], **more)

    # Looking at it.

    def log_lines(self):
        """All call-log lines so far as dicts. A line that is not JSON fails the test."""
        if not self.log_file.exists():
            return []
        text = self.log_file.read_bytes().decode("utf-8")
        lines = [json.loads(t) for t in text.split("\n")[:-1] if t]
        return [line for line in lines if "outcome" in line]

    def mark(self):
        """From here on count log lines anew (see new_lines and assert_at_rest)."""
        self.marked = len(self.log_lines())

    def new_lines(self):
        return self.log_lines()[self.marked:]

    def wait_lines(self, count, seconds=3.0):
        """Wait for `count` log lines since the mark; returns them."""
        end = time.monotonic() + seconds
        while len(self.new_lines()) < count and time.monotonic() < end:
            time.sleep(0.01)
        lines = self.new_lines()
        assert len(lines) >= count, f"{len(lines)} of {count} log lines: {lines}"
        return lines

    def metrics(self):
        """{name: [(labels, value)]} from /metrics."""
        text = self.admin("/metrics").body.decode()
        found = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                sample = SAMPLE.match(line)
                assert sample, f"not a sample: {line!r}"
                name, labels, value = sample.groups()
                found.setdefault(name, []).append((dict(LABEL.findall(labels or "")),
                                                   float(value)))
        return found

    def metric(self, name, **labels):
        """Sum of the samples of `name` that carry these labels; 0 if there are none."""
        return sum(value for got, value in self.metrics().get(name, [])
                   if all(got.get(k) == v for k, v in labels.items()))

    def rss_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def cpu_seconds(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def alive(self):
        return self.process.poll() is None

    # Ending it.

    def signal(self, number):
        self.process.send_signal(number)

    def terminate(self, seconds=10.0):
        """SIGTERM and wait; returns the exit code. Kills, and fails, if that takes too long."""
        for one in self.clients:
            one.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"gateway still running {seconds} s after SIGTERM") from None
        finally:
            self.reader.join(1.0)
        return code


def wait_until(check, seconds=3.0, every=0.01):
    """Call `check` until it is true; returns its value, fails after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"not true within {seconds} s")
        time.sleep(every)

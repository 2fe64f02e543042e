"""Starts what a client test needs: two fake backends ("flash" and "cloud"), or the real model as
flash, and flashgate in front of them; ends all of it. With FLASHGATE_DIRECT=1 there is no gateway
and `base_url` is the flash backend itself: that proves the tests without the gateway.

From Python: `with Stack(...) as stack`. From elsewhere: `stack.py [--real-model] [--config JSON]`
prints one JSON line with the addresses and lives until its standard input closes.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DIRECT = os.environ.get("FLASHGATE_DIRECT") == "1"
START_SECONDS_MAX = 30
REAL_MODEL_START_SECONDS_MAX = 300
LOCAL_KEY, CLOUD_KEY = "backend-key-of-flash", "backend-key-of-cloud"
SERVING = re.compile(r"serving (http://\S+/v1), admin (http://\S+)")


def gateway_binary():
    return os.environ.get("FLASHGATE_BIN", str(ROOT / "build" / "release" / "flashgate"))


class Child:
    """A process whose output lines are read as they come, and that is ended with us."""

    def __init__(self, command, env=None, stream="stdout", stdout=os.devnull):
        """Reads `stream`; when that is stderr, standard output goes to the file `stdout`."""
        pipes = {stream: subprocess.PIPE}
        if stream == "stderr":
            pipes["stdout"] = open(stdout, "wb")
        self.process = subprocess.Popen(command, env=env, text=True, **pipes)
        if stream == "stderr":
            pipes["stdout"].close()
        self.lines = []
        self.fresh = queue.Queue()
        self.reader = threading.Thread(target=self.read, args=(getattr(self.process, stream),))
        self.reader.daemon = True
        self.reader.start()

    def read(self, pipe):
        for line in pipe:
            self.lines.append(line.rstrip("\n"))
            self.fresh.put(self.lines[-1])
        self.fresh.put(None)

    def wait_for(self, pattern, seconds_max):
        deadline = time.monotonic() + seconds_max
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self.fresh.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            if match := re.search(pattern, line):
                return match
        said = "\n".join(self.lines[-20:])
        raise RuntimeError(f"{self.process.args[0]} never printed {pattern!r}; it printed:\n{said}")

    def stop(self, seconds_max=5):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(1)


class FakeBackend:
    def __init__(self, models):
        command = [sys.executable, str(HERE / "fake_openai.py"), "--models", models]
        self.child = Child(command)
        self.base_url = self.child.wait_for(r"^(http://\S+)$", START_SECONDS_MAX).group(1)

    def call(self, name, value=None):
        url = self.base_url.removesuffix("/v1") + "/_" + name
        data = None if value is None else json.dumps(value).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
            return json.load(answer)

    def script(self, *steps):
        self.call("script", list(steps))

    def pace(self, **fields):
        self.call("pace", fields)

    def requests(self, path="/v1/chat/completions"):
        return [r for r in self.call("requests")["requests"] if r["path"] == path]

    def stop(self):
        self.child.stop()


class RealModel:
    """The real model's server; `env` may set CONTEXT_TOKENS and MODEL_NAME."""

    def __init__(self, **env):
        command = [str(ROOT / "tests" / "real_model" / "start.sh")]
        self.child = Child(command, env={**os.environ, **env})
        match = self.child.wait_for(r"^(http://\S+)$", REAL_MODEL_START_SECONDS_MAX)
        self.base_url = match.group(1)

    def health(self):
        url = self.base_url.removesuffix("/v1") + "/health"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def tokens(self, text):
        """The length of a text in the model's own tokens."""
        url = self.base_url.removesuffix("/v1") + "/tokenize"
        data = json.dumps({"content": text}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
            return json.load(answer)["tokens"]

    def stop(self):
        self.child.stop()


def merged(base, extra):
    """`extra` laid over `base`; None removes a key."""
    result = dict(base)
    for key, value in extra.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


class Gateway:
    """flashgate on free ports with a configuration given as a dict (JSON is YAML)."""

    def __init__(self, config, folder):
        self.log_path = folder / "calls.jsonl"
        config = merged(config, {"log": {"path": str(self.log_path)}, "data_dir": str(folder)})
        path = folder / "flashgate.yaml"
        path.write_text(json.dumps(config, indent=2, ensure_ascii=False))
        env = {**os.environ, "LOCAL_KEY": LOCAL_KEY, "CLOUD_KEY": CLOUD_KEY}
        command = [gateway_binary(), "serve", "--config", str(path)]
        command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        self.child = Child(command, env=env, stream="stderr")
        match = self.child.wait_for(SERVING, START_SECONDS_MAX)
        self.base_url, self.admin_url = match.group(1), match.group(2)

    def calls(self, count=None, seconds_max=5):
        """The call log's lines; waits until there are at least `count`."""
        deadline = time.monotonic() + seconds_max
        while True:
            text = self.log_path.read_text() if self.log_path.exists() else ""
            whole = text.split("\n")[:-1]
            lines = [json.loads(line) for line in whole]
            if count is None or len(lines) >= count or time.monotonic() > deadline:
                return lines
            time.sleep(0.02)

    def stop(self):
        self.child.stop()


class Stack:
    def __init__(self, config=None, real_model=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="flashgate-clients-"))
        self.parts = []
        self.gateway = None
        try:
            self.start(config or {}, real_model)
        except BaseException:
            self.stop()
            raise

    def start(self, config, real_model):
        self.flash = self.add(RealModel() if real_model else FakeBackend("flash"))
        self.cloud = self.add(FakeBackend("cloud-large"))
        self.base_url = self.flash.base_url
        if not DIRECT:
            self.gateway = self.add(Gateway(merged(self.founding(), config), self.folder))
            self.base_url = self.gateway.base_url

    def founding(self):
        """The founding configuration with our backends' addresses."""
        return {
            "profiles": {
                "local-flash": {
                    "base_url": self.flash.base_url,
                    "model": "flash",
                    "api_key_env": "LOCAL_KEY",
                    "timeout": 60,
                    "max_concurrency": 8,
                },
                "cloud-main": {
                    "base_url": self.cloud.base_url,
                    "model": "cloud-large",
                    "api_key_env": "CLOUD_KEY",
                    "timeout": 120,
                    "max_concurrency": 32,
                },
            },
            "default": "local-flash",
            "routing": {"long_context_threshold": 16000, "fallback": "cloud-main"},
        }

    def add(self, part):
        self.parts.append(part)
        return part

    def stop(self):
        for part in reversed(self.parts):
            part.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real-model", action="store_true")
    parser.add_argument("--config", default="{}", help="JSON laid over the founding configuration")
    options = parser.parse_args()
    with Stack(json.loads(options.config), options.real_model) as stack:
        addresses = {
            "base_url": stack.base_url,
            "flash": stack.flash.base_url,
            "cloud": stack.cloud.base_url,
            "log": str(stack.gateway.log_path) if stack.gateway else None,
            "direct": DIRECT,
        }
        print(json.dumps(addresses), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

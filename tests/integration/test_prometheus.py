"""Metrics as Prometheus itself sees them: a real server scrapes, promtool judges."""
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from support import wire


def tool(name):
    path = shutil.which(name)
    assert path, f"{name} is missing: apt-get install prometheus"
    return path


def fetch(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def served(gateway, backend):
    """A gateway that has seen a success and a refusal."""
    gw = gateway(backend)
    backend.then(wire.json_200())
    assert gw.chat().status == 200
    assert gw.chat(model="nobody").status == 404
    return gw


def test_promtool_finds_nothing_to_say_about_the_metrics(served):
    text = fetch(f"http://127.0.0.1:{served.admin_port}/metrics")
    done = subprocess.run([tool("promtool"), "check", "metrics"], input=text,
                          capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.strip() == b"" and done.stderr.strip() == b"", done.stderr.decode()


def test_a_real_prometheus_scrapes_what_the_gateway_counts(served, tmp_path):
    port = free_port()
    configuration = {"scrape_configs": [{
        "job_name": "flashgate", "scrape_interval": "1s",
        "static_configs": [{"targets": [f"127.0.0.1:{served.admin_port}"]}]}]}
    file = pathlib.Path(tmp_path) / "prometheus.yml"
    file.write_text(json.dumps(configuration))
    server = subprocess.Popen(
        [tool("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={tmp_path}/tsdb",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        query = urllib.parse.quote('sum by (outcome) (flashgate_requests_total{profile!="x"})')
        found = {}
        end = time.monotonic() + 30
        while time.monotonic() < end and len(found) < 2:
            time.sleep(0.3)
            try:
                answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?query={query}"))
            except OSError:
                continue
            found = {row["metric"]["outcome"]: float(row["value"][1])
                     for row in answer["data"]["result"]}
        assert found == {"ok": 1.0, "client_error": 1.0}
        up = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?query=up"))
        assert [row["value"][1] for row in up["data"]["result"]] == ["1"]
    finally:
        server.terminate()
        server.wait(20)

"""Ways to and from the gateway: an outbound CONNECT proxy, and TLS on the listener."""
import json
import select
import socket
import ssl
import subprocess
import threading
import urllib.request

import pytest

from support import wire
from support.gateway import config, profile


class ConnectProxy:
    """A proxy of its own: every CONNECT is tunnelled to `target`, or refused with `status`."""

    def __init__(self, target, status=200):
        self.target, self.status = target, status
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:pa%73s@127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.tunnel, args=(client,), daemon=True).start()

    def tunnel(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.heads.append(head)
        if self.status != 200:
            client.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % self.status)
            client.close()
            return
        backend = socket.create_connection(("127.0.0.1", self.target))
        client.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 p\r\n\r\n")
        pairs = {client: backend, backend: client}
        while True:
            for ready in select.select(list(pairs), [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    client.close()
                    backend.close()
                    return
                pairs[ready].sendall(data)

    def close(self):
        self.listener.close()


@pytest.fixture
def proxy(backend):
    made = []

    def make(**more):
        made.append(ConnectProxy(backend.port, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


def remote(**more):
    """A backend that only the proxy can reach: its name resolves nowhere."""
    return profile("http://backend.invalid:8099/v1", proxy={"url_env": "OUT_PROXY", **more})


def test_a_remote_backend_is_reached_through_the_proxy(gateway, backend, proxy):
    one = proxy()
    gw = gateway(remote(), env={"OUT_PROXY": one.url}, args=["--workers", "1"])
    backend.then(wire.json_200()).then(wire.json_200())
    assert gw.chat().status == 200
    assert gw.chat().status == 200
    head, = one.heads  # the second request found the tunnel in the pool
    assert head.startswith(b"CONNECT backend.invalid:8099 HTTP/1.1\r\nHost: backend.invalid:8099\r\n")
    assert b"\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n" in head
    assert b"roxy-" not in backend.requests[0].head, "the proxy's credentials are its own"


def test_a_local_backend_bypasses_the_proxy(gateway, backend, proxy):
    one = proxy()
    gw = gateway(profile(backend, proxy={"url_env": "OUT_PROXY"}), env={"OUT_PROXY": one.url})
    backend.then(wire.json_200())
    assert gw.chat().status == 200
    assert one.heads == []


def test_a_host_in_no_proxy_is_reached_directly(gateway, proxy):
    one = proxy()
    gw = gateway(remote(no_proxy=[".invalid"]), env={"OUT_PROXY": one.url})
    answer = gw.chat(seconds=10)
    assert answer.status == 502 and answer.error()["code"] == "upstream_connect_failed"
    assert one.heads == []


@pytest.mark.parametrize("status", [403, 407, 502])
def test_a_proxy_that_refuses_is_a_clear_error(gateway, proxy, status):
    one = proxy(status=status)
    gw = gateway(remote(), env={"OUT_PROXY": one.url})
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"] == "upstream_connect_failed"
    assert str(status) in answer.error()["message"]
    assert "pass" not in answer.error()["message"]


@pytest.fixture
def certificate(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def tls_gateway(gateway, backend, certificate):
    cert, key = certificate
    whole = config(backend)
    whole["listen"] = {"address": "127.0.0.1:0", "tls": {"cert": str(cert), "key": str(key)}}
    return gateway(whole)


def ask(gw, context, body):
    request = urllib.request.Request(
        f"https://127.0.0.1:{gw.port}/v1/chat/completions", data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return answer.status, answer.read()


def test_a_tls_listener_serves_whole_answers_and_streams(tls_gateway, backend, certificate):
    context = ssl.create_default_context(cafile=str(certificate[0]))
    message = {"model": "m", "messages": [{"role": "user", "content": "hi " * 20000}]}
    backend.then(wire.json_200("secret answer"))
    status, body = ask(tls_gateway, context, message)
    assert status == 200 and b"secret answer" in body
    backend.then(wire.good_stream("ab", "cd"))
    status, body = ask(tls_gateway, context, {**message, "stream": True})
    assert status == 200 and body.endswith(b"data: [DONE]\n\n") and b'"ab"' in body
    assert [line["outcome"] for line in tls_gateway.wait_lines(2)] == ["ok", "ok"]


def test_a_tls_listener_refuses_old_protocols_and_plain_text(tls_gateway, backend):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", tls_gateway.port)) as raw:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(raw)
    with socket.create_connection(("127.0.0.1", tls_gateway.port)) as raw:
        raw.settimeout(10)
        raw.sendall(b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            told = raw.recv(100)
        except ConnectionError:
            told = b""
        assert not told.startswith(b"HTTP/")
    assert tls_gateway.alive()

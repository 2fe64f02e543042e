"""Several backends: each gets its own credential, host and path, and only these."""
import ssl
import subprocess

import pytest

from support import wire
from support.backend import FakeBackend
from support.gateway import config, profile
from support.oracle import assert_at_rest


@pytest.mark.parametrize("status", [500, 401, 403, 429])
def test_each_attempt_carries_only_its_own_key(gateway, backends, status):
    """HDR-04: after a fallback too; and a backend without a key gets none."""
    one, two, three = backends(), backends(), backends()
    for each in (one, two):
        each.always(wire.error_response(status))
    gw = gateway(config(profiles={
        "main": profile(one, auth="bearer", api_key_env="KEY_1", headers={"X-Org": "org-1"}),
        "spare": profile(two, model="m2", auth="api-key", api_key_env="KEY_2"),
        "last": profile(three, model="m3", auth={"header": "X-Key"}, api_key_env="KEY_3")},
        attempts=3, routing={"fallback": ["spare", "last"], "retry": {"attempts": 3}}),
        env={"KEY_1": "secret-one", "KEY_2": "secret-two", "KEY_3": "secret-three"})
    answer = gw.chat(headers=[("Authorization", "Bearer client-secret")])
    assert answer.status == 200, answer.body
    expected = {"authorization": ("Bearer secret-one", None, None),
                "api-key": (None, "secret-two", None), "x-key": (None, None, "secret-three"),
                "x-org": ("org-1", None, None)}
    for n, each in enumerate((one, two, three)):
        request = each.requests[-1]
        for name, values in expected.items():
            assert request.header(name) == values[n], (n, name, request.head)
        assert b"client-secret" not in request.head
        assert request.header("host") == f"127.0.0.1:{each.port}"
        assert request.json()["model"] == ("m", "m2", "m3")[n]
    told = answer.head + answer.body + gw.log_file.read_bytes() + "\n".join(gw.stderr).encode()
    told += gw.admin("/metrics").body
    assert b"secret" not in told
    assert_at_rest(gw, three, calls=1, plain=False)


def test_a_backend_without_a_key_gets_no_authorization(gateway, backend):
    """HDR-03: not the client's, not an empty one."""
    gw = gateway(backend)
    gw.chat(headers=[("Authorization", "Bearer client-secret")])
    for name in ("authorization", "x-api-key", "api-key"):
        assert backend.requests[0].header(name) is None
    assert_at_rest(gw, backend, calls=1)


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_key_in_the_error_of_a_backend_is_masked(gateway, backend, status):
    """Credentials stay apart: providers quote the key they reject."""
    gw = gateway(config(profile(backend, auth="bearer", api_key_env="KEY_1")),
                 env={"KEY_1": "sk-secretsecretsecret1234567890"})
    backend.always(wire.error_response(
        status, "Incorrect API key provided: sk-secretsecretsecret1234567890 at http://10.1.2.3/"))
    answer = gw.chat()
    told = answer.head + answer.body
    gw.wait_lines(1)
    assert b"sk-secretsecretsecret1234567890" not in told + gw.log_file.read_bytes(), told


@pytest.mark.parametrize("suffix,expected", [
    ("/v1", "/v1/chat/completions"), ("/v1/", "/v1/chat/completions"), ("", "/chat/completions"),
    ("/", "/chat/completions"), ("/a/b/v2", "/a/b/v2/chat/completions"),
    ("/openai//v1//", None)])
def test_the_path_prefix_is_joined_without_double_slash(gateway, backend, suffix, expected):
    """HDR-05."""
    gw = gateway(profile(backend.origin + suffix))
    assert gw.chat().status == 200
    target = backend.requests[0].target
    assert target == expected if expected else target.endswith("v1/chat/completions"), target


def test_the_query_of_a_backend_is_added(gateway, backend):
    """HDR-05's kind: api-version beside what the client sent."""
    gw = gateway(profile(backend, query={"api-version": "2024-10-21"}))
    gw.request(wire.chat_body(), path="/v1/chat/completions?x=1")
    assert backend.requests[0].target == "/v1/chat/completions?x=1&api-version=2024-10-21"


def certificate(folder, name):
    """A self-signed certificate for `name`; returns (certificate, key)."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    kind = "IP" if name[0].isdigit() else "DNS"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName={kind}:{name}", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


@pytest.fixture
def tls_backend(tmp_path):
    """Factory: a TLS backend with a certificate for `name`, and the names that clients sent."""
    made = []

    def make(name):
        cert, key = certificate(tmp_path, name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        asked = []
        context.sni_callback = lambda sock, server_name, ctx: asked.append(server_name)
        one = FakeBackend(tls=context)
        made.append(one)
        return one, cert, asked

    yield make
    for one in made:
        one.close()


def test_name_and_certificate_are_those_of_the_target(gateway, tls_backend):
    """HDR-05: SNI and Host from base_url, not from the client."""
    one, cert, asked = tls_backend("localhost")
    gw = gateway(profile(f"https://localhost:{one.port}/v1", tls={"ca_file": str(cert)}))
    answer = gw.chat(headers=[("Host", "evil.test")])
    assert answer.status == 200, answer.body
    assert set(asked) == {"localhost"}
    assert one.requests[0].header("host") == f"localhost:{one.port}"
    assert_at_rest(gw, one, calls=1)


@pytest.mark.parametrize("name,trusted", [("other.test", True), ("localhost", False)],
                         ids=["wrong-host", "unknown-authority"])
def test_a_certificate_that_does_not_fit_is_refused(gateway, tls_backend, name, trusted):
    """HDR-05: nothing is sent, least of all the key."""
    one, cert, _ = tls_backend(name)
    gw = gateway(profile(f"https://localhost:{one.port}/v1", auth="bearer", api_key_env="KEY_1",
                         tls={"ca_file": str(cert)} if trusted else None), env={"KEY_1": "secret"})
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"] == "upstream_tls_error", answer.body
    assert not one.requests and b"secret" not in answer.body
    line, = gw.wait_lines(1)
    assert line["outcome"] == "upstream_error", line

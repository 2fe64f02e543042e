"""Error answers of the backend: whose fault, which shape, and nothing that tells secrets."""
import json

import pytest

from support import wire
from support.gateway import profile
from support.oracle import assert_at_rest


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_rejected_key_of_ours_is_not_the_clients_401(gateway, backend, status, stream):
    """RES-13: 502 upstream_auth_error, asked once, and the backend's text about keys stays here."""
    gw = gateway(profile(backend, auth="bearer", api_key_env="UP_KEY"), attempts=3,
                 env={"UP_KEY": "sk-our-own-secret-key-0123456789"})
    backend.then(wire.error_response(
        status, "Incorrect API key provided: sk-our-own-secret-key-0123456789",
        "invalid_request_error", "invalid_api_key"))
    answer = gw.chat(stream=stream, headers=[("Authorization", "Bearer client-token")])
    assert answer.status == 502 and answer.error()["code"] == "upstream_auth_error", answer.body
    assert b"sk-our" not in answer.body and b"WWW-Authenticate" not in answer.head
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] == "upstream_error" and line["status"] == 502, line
    assert backend.requests[0].header("authorization") == "Bearer sk-our-own-secret-key-0123456789"
    assert "sk-our" not in gw.log_file.read_text() + "\n".join(gw.stderr)


def test_a_rejected_key_moves_to_a_backend_with_another_key(gateway, backends):
    """RES-13."""
    bad, good = backends(), backends()
    gw = gateway(profile(bad, auth="bearer", api_key_env="KEY_A"),
                 fallback=profile(good, model="m2", auth="bearer", api_key_env="KEY_B"),
                 attempts=3, env={"KEY_A": "aaa", "KEY_B": "bbb"})
    bad.then(wire.error_response(401))
    assert gw.chat().status == 200
    assert_at_rest(gw, bad, good, calls=1, attempts=[1, 1], outcome="ok")
    assert good.requests[0].header("authorization") == "Bearer bbb"


def test_a_401_is_never_what_remains_when_all_fail(gateway, backends):
    """RES-13: neither as first nor as last error."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=2)
    for first, second in ((401, 500), (500, 401), (401, 401), (403, 401)):
        one.then(wire.error_response(first))
        two.then(wire.error_response(second))
        answer = gw.chat()
        assert answer.status in (500, 502, 503), (first, second, answer.status)
        assert answer.error()["message"]
    assert_at_rest(gw, one, two, calls=4)


SHAPES = {
    "detail": ({"detail": "the reason"}, "the reason"),
    "detail-array": ({"detail": [{"loc": ["body", "messages"], "msg": "the reason",
                                  "type": "value_error"}]}, "the reason"),
    "vllm": ({"object": "error", "message": "the reason", "type": "BadRequestError",
              "param": None, "code": 400}, "the reason"),
    "string": ({"error": "the reason"}, "the reason"),
    "number-code": ({"error": {"message": "the reason", "code": 400}}, "the reason"),
    "bare-message": ({"message": "the reason"}, "the reason"),
    "array": ([{"error": {"code": 400, "message": "the reason", "status": "INVALID"}}],
              "the reason"),
    "nested": ({"type": "error", "error": {"type": "invalid_request_error",
                                           "message": "the reason"}}, "the reason"),
    "null-message": ({"error": {"message": None, "type": None}}, ""),
    "empty-object": ({}, ""),
    "number": (5, ""),
}


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("status", [400, 422, 500])
def test_other_error_shapes_become_the_openai_one(gateway, backend, shape, status):
    """RES-14: status kept, message found, type and code filled."""
    gw = gateway(backend)
    payload, message = SHAPES[shape]
    backend.then(wire.json_response(status, payload))
    answer = gw.chat()
    assert answer.status == status, answer.body
    assert message in answer.error()["message"], answer.body
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] == ("client_error" if status < 500 else "upstream_error"), line


@pytest.mark.parametrize("kind,body", [
    ("text/html", b"<html><body><h1>502 Bad Gateway</h1>nginx</body></html>"),
    ("text/plain", b"Internal Server Error"), ("application/json", b"{not json"),
    ("application/json", b""), (None, b""), ("application/json", b"\xff\xfe\x00"),
    ("application/json", b"[" * 100_000), ("text/plain", b"x" * 3_000_000)],
    ids=["html", "text", "bad-json", "empty-json", "nothing", "bad-utf8", "deep", "large"])
def test_error_bodies_that_are_no_json_become_the_openai_shape(gateway, backend, kind, body):
    """RES-14: valid JSON and UTF-8, and not megabytes of it."""
    gw = gateway(backend)
    backend.then(wire.response(500, body, {"Content-Type": kind} if kind else {}))
    answer = gw.chat()
    assert answer.status == 500 and answer.error() and len(answer.body) < 65_536
    assert_at_rest(gw, backend, calls=1, outcome="upstream_error")


SECRETS = ["sk-abcdefghijklmnopqrstuvwxyz012345", "sk-proj-AbC_123-xyzAbC_123-xyz0000",
           "http://10.1.2.3:8000/v1/internal", "http://llm-worker-3.cluster.local:9000",
           "192.168.7.9:5432"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("shape", ["openai", "detail", "text"])
def test_secrets_in_error_messages_are_masked(gateway, backend, secret, shape):
    """RES-14: keys and internal addresses; what was wrong stays readable."""
    gw = gateway(backend)
    message = f"cannot use {secret} for this prompt"
    backend.then(wire.error_response(400, message) if shape == "openai" else
                 wire.json_response(400, {"detail": message}) if shape == "detail" else
                 wire.response(400, message, {"Content-Type": "text/plain"}))
    answer = gw.chat()
    text = answer.error()["message"]
    core = secret.split("//")[-1].split("/")[0]
    assert core not in answer.body.decode(), answer.body
    assert "cannot use" in text and "for this prompt" in text, text
    assert_at_rest(gw, backend, calls=1)
    assert core not in gw.log_file.read_text()


def test_our_own_key_is_masked_whatever_it_looks_like(gateway, backend):
    """RES-14: a key without any known prefix, echoed by the backend."""
    gw = gateway(profile(backend, auth="bearer", api_key_env="UP_KEY"),
                 env={"UP_KEY": "plainword-of-the-house-77"})
    backend.then(wire.error_response(400, "key plainword-of-the-house-77 has no access"))
    answer = gw.chat()
    assert b"plainword-of-the-house-77" not in answer.body, answer.body
    assert_at_rest(gw, backend, calls=1)


def test_a_good_error_passes_as_it_is(gateway, backend):
    """RES-14, the control: an OpenAI error with vendor members and a parameter."""
    gw = gateway(backend)
    error = {"message": "'temperature' must be ≤ 2", "type": "invalid_request_error",
             "param": "temperature", "code": "decimal_above_max_value"}
    backend.then(wire.json_response(400, json.dumps({"error": error}, ensure_ascii=False)))
    answer = gw.chat()
    assert answer.status == 400
    assert {k: answer.error()[k] for k in error} == error
    assert_at_rest(gw, backend, calls=1, outcome="client_error")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["elsewhere", "itself", "relative"])
def test_redirects_are_not_followed(gateway, backends, status, target):
    """RES-16: no credential leaves, and POST never becomes GET."""
    backend, other = backends(answer_probes=False), backends(answer_probes=False)
    gw = gateway(profile(backend, auth="bearer", api_key_env="UP_KEY"), env={"UP_KEY": "kkk"},
                 attempts=3)
    place = {"elsewhere": other.origin + "/v1/chat/completions", "relative": "/v1/other",
             "itself": backend.origin + "/v1/chat/completions"}[target]
    backend.then(wire.response(status, b"moved", {"Location": place}))
    answer = gw.chat()
    assert answer.status in (status, 502), answer.status
    assert not other.connections
    assert [r.method for r in backend.requests] == ["POST"]
    if answer.status == 502:
        assert answer.error()["code"]
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] != "ok", line


def test_headers_of_the_backend_leave_by_allow_list(gateway, backend):
    """RES-14: cookies, server names and our provider's account stay inside."""
    gw = gateway(backend)
    backend.then(wire.json_200("x", headers=[
        ("Set-Cookie", "a=b"), ("Server", "uvicorn"), ("X-Internal-Host", "10.0.0.7"),
        ("openai-organization", "our-org"), ("Connection", "X-Hop"), ("X-Hop", "1"),
        ("x-flashgate-profile", "forged"), ("x-request-id", "upstream-id")]))
    answer = gw.chat()
    names = {n.lower() for n, _ in answer.headers}
    assert not names & {"set-cookie", "x-internal-host", "openai-organization", "x-hop"}, names
    assert answer.header("x-flashgate-profile") == "main"
    assert (answer.header("server") or "") != "uvicorn"
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert answer.header("x-request-id") == line["request_id"]

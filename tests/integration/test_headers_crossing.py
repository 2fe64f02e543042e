"""Which header fields cross the gateway, in both directions: hop-by-hop, credentials, identity."""
import pytest

from support import wire
from support.gateway import config, profile
from support.stack import echoed, open_stack

VALID_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CLIENT_SECRET = "client-secret-4711"


def settings(backend):
    return config(profiles={"main": profile(
        backend, auth="bearer", api_key_env="BACKEND_KEY", headers={"X-Backend": "yes"})})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BACKEND_KEY", "backend-secret-0815")
        with open_stack(tmp_path_factory.mktemp("headers"), settings) as one:
            yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def sent(stack, headers, path="/v1/chat/completions", status=200):
    """One chat with these fields; the request that the backend got."""
    answer = stack.gw.request(wire.chat_body(), headers=headers, path=path)
    assert answer.status == status, (answer.status, answer.body)
    stack.gw.wait_lines(1)
    return stack.backend.requests[-1] if status == 200 else answer


HOPS = {
    "keep-alive": [("Connection", "keep-alive, X-Secret"), ("X-Secret", "s"),
                   ("Keep-Alive", "timeout=5")],
    "proxy": [("Proxy-Connection", "keep-alive"), ("Proxy-Authorization", "Basic eDp5"),
              ("Proxy-Authenticate", "Basic")],
    "te": [("Connection", "TE"), ("TE", "trailers"), ("Trailer", "X-Late")],
    "upgrade": [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
                ("HTTP2-Settings", "AAMA")],
    "two-connections": [("Connection", "X-One"), ("connection", "x-two,,X-Three ,"),
                        ("X-One", "1"), ("X-Two", "2"), ("X-Three", "3")],
}


@pytest.mark.parametrize("kind", list(HOPS))
def test_hop_by_hop_fields_of_a_request_stay_here(stack, kind):
    """HDR-01: the fixed ones, and those that Connection names."""
    request = sent(stack, HOPS[kind] + [("X-Kept", "kept")])
    for name, _ in HOPS[kind]:
        got = request.header(name)
        assert got is None or (name.lower() == "connection" and got == "keep-alive"), request.head
    assert request.header("x-kept") == "kept"


@pytest.mark.parametrize("kind", list(HOPS))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_hop_by_hop_fields_of_an_answer_stay_here(stack, kind, stream):
    """HDR-01: the other direction."""
    fields = [f for f in HOPS[kind] if f[1] != "keep-alive, X-Secret"]
    lines = b"".join(f"{n}: {v}\r\n".encode() for n, v in HOPS[kind])
    stack.backend.always(wire.good_stream().replace(b"\r\n", b"\r\n" + lines, 1) if stream
                         else wire.json_200(headers=HOPS[kind]))
    answer = stack.gw.chat(stream=stream)
    assert answer.status == 200 and answer.complete
    for name, _ in fields:
        assert answer.header(name) is None or name.lower() == "connection", answer.head
    assert answer.header("x-secret") is None
    stack.at_rest(calls=1, attempts=1, outcome="ok")


@pytest.mark.parametrize("named", ["content-length", "authorization", "x-request-id", "host",
                                   "content-length, authorization, x-request-id, host, via",
                                   "x-backend", "close, authorization"])
def test_connection_can_not_strip_what_the_gateway_sets(stack, named):
    """HDR-02: framing, our key and our id are set after stripping."""
    request = sent(stack, [("Connection", named), ("Authorization", "Bearer " + CLIENT_SECRET)])
    assert request.header("authorization") == "Bearer backend-secret-0815"
    assert request.header("content-length") == str(len(request.body))
    assert request.header("host") == f"127.0.0.1:{stack.backend.port}"
    assert request.header("x-request-id") and request.header("x-backend") == "yes"
    assert "flashgate" in request.header("via")


CREDENTIALS = {
    "authorization": [("Authorization", "Bearer " + CLIENT_SECRET)],
    "lower-case": [("authorization", "bearer " + CLIENT_SECRET)],
    "basic": [("Authorization", "Basic " + CLIENT_SECRET)],
    "two": [("Authorization", "Bearer a"), ("Authorization", "Bearer " + CLIENT_SECRET)],
    "x-api-key": [("x-api-key", CLIENT_SECRET)],
    "api-key": [("API-Key", CLIENT_SECRET)],
    "google": [("x-goog-api-key", CLIENT_SECRET)],
    "cookie": [("Cookie", "session=" + CLIENT_SECRET)],
    "proxy": [("Proxy-Authorization", "Basic " + CLIENT_SECRET)],
    "organization": [("OpenAI-Organization", CLIENT_SECRET), ("OpenAI-Project", CLIENT_SECRET)],
    "auth-token": [("X-Auth-Token", CLIENT_SECRET)],
}


@pytest.mark.parametrize("kind", list(CREDENTIALS))
def test_the_clients_credential_never_reaches_a_backend(stack, kind):
    """HDR-03."""
    request = sent(stack, CREDENTIALS[kind])
    assert CLIENT_SECRET.encode() not in request.head + request.body, request.head
    assert request.header("authorization") == "Bearer backend-secret-0815"
    assert CLIENT_SECRET not in stack.gw.log_file.read_text()


@pytest.mark.parametrize("query", ["key=", "api_key=", "api-key=", "access_token=", "KEY=",
                                   "x=1&key="])
def test_a_credential_in_the_query_never_reaches_a_backend(stack, query):
    """HDR-03: the rest of the query does."""
    request = sent(stack, [], path=f"/v1/chat/completions?{query}{CLIENT_SECRET}&y=2")
    assert CLIENT_SECRET not in request.target and "y=2" in request.target
    assert CLIENT_SECRET not in stack.gw.log_file.read_text()


@pytest.mark.parametrize("escaped", ["%6bey=", "k%65y=", "api%5Fkey="])
def test_a_credential_with_an_escaped_name_does_not_either(stack, escaped):
    """HDR-03: backends decode names before they compare."""
    request = sent(stack, [], path=f"/v1/chat/completions?{escaped}{CLIENT_SECRET}&y=2")
    assert CLIENT_SECRET not in request.target, request.target


IDENTITY = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-Host", "evil"),
            ("X-Forwarded-Proto", "x"),
            ("Forwarded", "for=6.6.6.6"), ("X-Real-IP", "6.6.6.6"), ("X-Forwarded-Port", "1"),
            ("x-flashgate-profile", "spare"), ("X-FlashGate-Arm", "canary"),
            ("x-flashgate-priority", "9"), ("x-flashgate-shadow", "1"), ("x-flashgate-key", "k"),
            ("x-flashgate-no-log", "1"), ("x-flashgate-conversation", "c")]


def test_claims_of_identity_are_dropped(stack):
    """WIRE-11, HDR-07: forwarding fields of an untrusted peer and our own control fields."""
    request = sent(stack, IDENTITY)
    for name, _ in IDENTITY:
        assert request.header(name) is None, request.head
    line = stack.gw.new_lines()[0]
    assert line["profile"] == "main" and not line["arm"] and line["key"] is None, line


@pytest.mark.parametrize("value", [VALID_TRACE, "00-zz", "", "x" * 300])
def test_traceparent_passes(stack, value):
    """HDR-07: a valid one as it is; a broken one does no harm."""
    request = sent(stack, [("traceparent", value), ("tracestate", "a=b")])
    if value == VALID_TRACE:
        assert request.header("traceparent") == VALID_TRACE
        assert request.header("tracestate") == "a=b"


@pytest.mark.parametrize("via,expected", [
    (["1.1 other"], "1.1 other, 1.1 flashgate"),
    (["1.0 a, 1.1 b (x)"], "1.0 a, 1.1 b (x), 1.1 flashgate"),
    (["1.1 a", "1.1 b"], "1.1 a, 1.1 b, 1.1 flashgate"),
    (["1.1 flashgate-other"], "1.1 flashgate-other, 1.1 flashgate"), ([], "1.1 flashgate")])
def test_via_is_appended_to(stack, via, expected):
    """HDR-07, RFC 9110 §7.6.3."""
    assert sent(stack, [("Via", v) for v in via]).header("via") == expected


@pytest.mark.parametrize("via", ["1.1 flashgate", "1.0 a, 1.1 FlashGate (x)", "1.1\tflashgate",
                                 "HTTP/1.1   flashgate", "1.1 a,1.1 flashgate,1.1 b"])
def test_our_own_via_is_a_loop(stack, via):
    """HDR-07: 508, before any attempt."""
    answer = sent(stack, [("Via", via)], status=508)
    assert answer.error()["code"] == "loop_detected" and not stack.backend.requests


IDS = {"plain": ("my-id_1.2", True), "uuid": ("3f1c8a9e-0000-4000-8000-000000000000", True),
       "long": ("a" * 5000, False), "escaped-crlf": ("a%0d%0aX: y", None),
       "quotes": ('a"b\\c', None), "high": (b"\xff\xfe", False), "space": ("a b", None),
       "empty": ("", False)}


@pytest.mark.parametrize("kind", list(IDS))
def test_a_request_id_is_validated_and_the_same_everywhere(stack, kind):
    """HDR-07, WIRE-11: one id for client, backend and log; a hostile one is replaced."""
    value, kept = IDS[kind]
    answer = stack.gw.chat(headers=[("X-Request-Id", value)])
    request, = stack.backend.requests
    line, = stack.gw.wait_lines(1)
    assert answer.header("x-request-id") == request.header("x-request-id")
    assert answer.header("x-request-id") in (line["request_id"], line["client_request_id"])
    if kept is not None:
        assert (answer.header("x-request-id") == value) == kept, answer.head
    assert len(answer.header("x-request-id")) <= 200
    stack.at_rest(calls=1)


LEAKS = [("Server", "vllm/0.1"), ("Set-Cookie", "a=b"), ("X-Powered-By", "Express"),
         ("x-flashgate-profile", "forged"), ("X-Internal-Host", "10.0.0.7"), ("Via", "1.1 inner"),
         ("Alt-Svc", 'h3=":443"'), ("Access-Control-Allow-Origin", "https://a.test"),
         ("Strict-Transport-Security", "max-age=1"), ("Location", "http://10.0.0.7/"),
         ("x-request-id", "backend-id"), ("openai-organization", "org-secret"),
         ("Refresh", "0; url=http://x"), ("Authorization", "Bearer leaked")]


@pytest.mark.parametrize("status", [200, 400, 500])
def test_fields_of_the_backend_leave_by_an_allow_list(stack, status):
    """HDR-01's kind: nothing of the inner network shows, nor can a backend speak for us."""
    stack.backend.always(wire.json_200(headers=LEAKS) if status == 200 else
                         wire.error_response(status, headers=LEAKS))
    answer = stack.gw.chat()
    assert answer.status == status
    text = answer.head.decode("latin-1").lower()
    for name, value in LEAKS:
        assert value.lower() not in text, answer.head
    assert answer.header("x-flashgate-profile") == "main" or status != 200
    stack.backend.always(wire.json_200())
    stack.at_rest(calls=1)


def test_the_answer_says_who_served_it(stack):
    """Headers out."""
    answer = stack.gw.chat()
    assert answer.header("x-flashgate-profile") == "main" and answer.header("x-request-id")
    assert answer.header("x-flashgate-rule") == "named" and answer.header("x-flashgate-reason")
    assert answer.header("x-flashgate-attempts") == "1"
    assert answer.header("openai-processing-ms").isdigit()
    assert echoed(answer)

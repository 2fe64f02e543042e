"""The framing matrix, accepted half: legal but odd requests, each followed by a marker.

The echo backend proves that one request in is one request out: bodies in order, one framing of the
gateway's own, no field of a trailer.
"""
import json

import pytest

from support import wire
from support.client import FakeClient
from support.stack import echoed, open_stack

BODY = json.dumps(wire.chat_body("first")).encode()
SIZE = str(len(BODY)).encode()
PATH = b"/v1/chat/completions"
JSON = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: " + SIZE + b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
N = b"%x" % len(BODY)
LAST = b"\r\n0\r\n\r\n"
MARKER = wire.chat_body("marker")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("accepted")) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def head(*fields, line=b"POST " + PATH + b" HTTP/1.1", host=b"Host: a.test\r\n"):
    return line + b"\r\n" + host + JSON + b"".join(fields) + b"\r\n"


def one_in_one_out(stack, data, parts=None):
    """Sends `data` (one request) and a marker at once; both answers in order, both bodies exact."""
    with FakeClient(stack.gw.port) as client:
        if parts:
            client.send(*parts)
            client.send_request(MARKER)
        else:
            client.send(data + wire.request(MARKER))
        first, second = client.read_response(), client.read_response()
    assert echoed(first)["body"].encode("latin-1") == BODY
    assert json.loads(echoed(second)["body"])["messages"][0]["content"] == "marker"
    stack.at_rest(calls=2, attempts=2, outcome="ok")
    request = stack.backend.requests[0]
    assert request.framing == "length" and request.header("transfer-encoding") is None
    assert request.header("content-length") == SIZE.decode()
    assert request.header("host") == f"127.0.0.1:{stack.backend.port}"
    return request


CODINGS = {
    "plain": b"chunked",
    "mixed-case": b"cHuNkEd",
    "upper-case": b"CHUNKED",
    "spaces-around": b"  chunked  ",
    "tab-after": b"chunked\t",
    "tab-before": b"\tchunked",
}


@pytest.mark.parametrize("kind", list(CODINGS))
def test_chunked_in_any_case_with_white_space_is_chunked(stack, kind):
    """WIRE-02: white space around a value is no part of it (RFC 9112 §5)."""
    one_in_one_out(stack, head(b"Transfer-Encoding: " + CODINGS[kind] + b"\r\n") +
                   wire.chunked(BODY))


BODIES = {
    "one-chunk": wire.chunked(BODY),
    "byte-by-byte": wire.chunked(*wire.bytes_of(BODY)),
    "upper-case-size": N.upper() + b"\r\n" + BODY + LAST,
    "leading-zeros": b"00000" + N + b"\r\n" + BODY + LAST,
    "many-zeros-at-the-end": N + b"\r\n" + BODY + b"\r\n000000\r\n\r\n",
    "extension": N + b";name=value\r\n" + BODY + LAST,
    "quoted-extension": N + b';n="a;b"\r\n' + BODY + LAST,
    "extension-that-looks-like-a-size": N + b";5\r\n" + BODY + LAST,
    "last-chunk-extension": N + b"\r\n" + BODY + b"\r\n0;x=y\r\n\r\n",
}


@pytest.mark.parametrize("kind", list(BODIES))
def test_legal_chunks_are_decoded(stack, kind):
    """WIRE-02's matrix: RFC 9112 §7.1."""
    one_in_one_out(stack, head(CHUNKED) + BODIES[kind])


TRAILERS = {
    "authorization": b"Authorization: Bearer trailer-secret",
    "length": b"Content-Length: 5",
    "coding": b"Transfer-Encoding: gzip",
    "host": b"Host: evil.test",
    "own": b"x-flashgate-task: code",
    "unknown": b"X-Trailer: trailer-secret",
    "folded": b"X-A: b\r\n trailer-secret",
    "no-colon": b"trailer-secret",
}


@pytest.mark.parametrize("kind", list(TRAILERS))
def test_trailers_never_become_fields(stack, kind):
    """WIRE-02's matrix: dropped, of this request and of the next one."""
    data = head(CHUNKED, b"Trailer: X-Trailer\r\n") + N + b"\r\n" + BODY + b"\r\n0\r\n" + \
        TRAILERS[kind] + b"\r\n\r\n"
    one_in_one_out(stack, data)
    for request in stack.backend.requests:
        assert b"trailer" not in request.head.lower() and b"evil" not in request.head
        assert request.header("authorization") is None


HEADS = {
    "plain": head(LENGTH),
    "lower-case-names": head(LENGTH).replace(b"Content-Length", b"content-length"),
    "no-space-after-colon": head(LENGTH).replace(b": ", b":"),
    "leading-zeros": head(b"Content-Length: 000" + SIZE + b"\r\n"),
    "space-after-length": head(b"Content-Length: " + SIZE + b" \t\r\n"),
    "high-byte-in-a-value": head(b"X-A: caf\xe9\r\n", LENGTH),
    "utf-8-in-a-value": head("X-A: 你好\r\n".encode(), LENGTH),
    "tab-in-a-value": head(b"X-A: a\tb\r\n", LENGTH),
    "empty-value": head(b"X-A:\r\n", LENGTH),
    "strange-token": head(b"!#$%&'*+.^_`|~-: v\r\n", LENGTH),
    "absolute-form": head(LENGTH, line=b"POST http://other.test:9" + PATH + b" HTTP/1.1"),
    "absolute-form-of-another-scheme": head(LENGTH, line=b"POST ftp://other.test" + PATH +
                                            b" HTTP/1.1"),
    "absolute-form-with-user": head(LENGTH, line=b"POST http://u:p@other.test" + PATH +
                                    b" HTTP/1.1"),
    "empty-host": head(LENGTH, host=b"Host:\r\n"),
    "ipv6-host": head(LENGTH, host=b"Host: [::1]:8080\r\n"),
    "host-last": head(LENGTH, b"Host: a.test\r\n", host=b""),
    "close-to-a-coding": head(b"X-Transfer-Encoding: chunked\r\n", LENGTH),
    "underscores": head(b"Transfer_Encoding: chunked\r\n", b"Content_Length: 3\r\n", LENGTH),
    "expect-something": head(b"Expect: the-unexpected\r\n", LENGTH),
}


@pytest.mark.parametrize("kind", list(HEADS))
def test_a_legal_head_is_accepted(stack, kind):
    """WIRE-05's and WIRE-02's matrix, and no client chooses where we connect."""
    one_in_one_out(stack, HEADS[kind] + BODY)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_empty_lines_before_a_request_are_skipped(stack, count):
    """WIRE-09."""
    one_in_one_out(stack, b"\r\n" * count + head(LENGTH) + BODY)


def test_empty_lines_between_requests_are_skipped(stack):
    """WIRE-09: some clients end a body with one."""
    with FakeClient(stack.gw.port) as client:
        for n in range(3):
            client.send(b"\r\n", wire.request(wire.chat_body(f"n{n}")), b"\r\n")
            assert f"n{n}" in echoed(client.read_response())["body"]
    stack.at_rest(calls=3, attempts=3, outcome="ok")


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_request_in_pieces_is_one_request(stack, framing, step):
    """SSE-06's kind for requests: segment borders mean nothing."""
    data = head(LENGTH) + BODY if framing == "length" else head(CHUNKED) + wire.chunked(
        *wire.bytes_of(BODY, 10))
    one_in_one_out(stack, None, parts=wire.bytes_of(data, step))


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_waiting_client_is_told_to_go_on(stack, framing):
    """RFC 9110 §10.1.1: one 100, then the answer."""
    fields = [LENGTH] if framing == "length" else [CHUNKED]
    with FakeClient(stack.gw.port) as client:
        client.send(head(*fields, b"Expect: 100-continue\r\n"))
        assert client.sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(BODY if framing == "length" else wire.chunked(BODY))
        assert echoed(client.read_response())["body"].encode() == BODY
    assert stack.backend.requests[0].header("expect") is None
    stack.at_rest(calls=1, attempts=1, outcome="ok")


def test_a_client_that_does_not_wait_gets_one_answer(stack):
    """RFC 9110 §10.1.1: the body is here already."""
    one_in_one_out(stack, head(LENGTH, b"Expect: 100-continue\r\n") + BODY)


def test_a_too_large_body_is_refused_before_it_is_asked_for(stack):
    """REQ-03: 413 in place of 100."""
    with FakeClient(stack.gw.port) as client:
        client.send(head(b"Content-Length: 99999999999\r\n", b"Expect: 100-continue\r\n"))
        answer = client.read_response()
    assert answer.status == 413 and not answer.interim and answer.closes()
    stack.at_rest(calls=1, attempts=0)


def test_http_1_0_gets_one_answer_and_the_end(stack):
    """WIRE-07, SSE-25: no chunks, no keep-alive unless asked."""
    line = b"POST " + PATH + b" HTTP/1.0"
    answers, end, left = stack.raw(head(LENGTH, line=line, host=b"") + BODY +
                                   wire.request(wire.chat_body("leftover")))
    assert len(answers) == 1 and end in ("eof", "rst") and not left
    assert answers[0].header("transfer-encoding") is None and answers[0].closes()
    assert echoed(answers[0])["body"].encode() == BODY
    stack.at_rest(calls=1, attempts=1, outcome="ok")


def test_http_1_0_keep_alive_is_kept(stack):
    """WIRE-07's good side."""
    line = b"POST " + PATH + b" HTTP/1.0"
    with FakeClient(stack.gw.port) as client:
        for _ in range(2):
            client.send(head(LENGTH, b"Connection: keep-alive\r\n", line=line) + BODY)
            answer = client.read_response()
            assert echoed(answer)["body"].encode() == BODY and not answer.closes()
    stack.at_rest(calls=2, attempts=2, outcome="ok")


def test_close_ends_the_connection_after_the_answer(stack):
    """RFC 9112 §9.6: what follows is discarded."""
    answers, end, _ = stack.raw(head(LENGTH, b"Connection: foo, close\r\n") + BODY +
                                wire.request(wire.chat_body("leftover")))
    assert len(answers) == 1 and end in ("eof", "rst") and answers[0].closes()
    stack.at_rest(calls=1, attempts=1, outcome="ok")


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0, HTTP/1.1"])
def test_an_upgrade_is_not_tunnelled(stack, protocol):
    """HDR-01: an ordinary answer, and the backend does not see the wish."""
    request = one_in_one_out(stack, head(
        b"Connection: Upgrade, HTTP2-Settings\r\n", b"Upgrade: " + protocol.encode() + b"\r\n",
        b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n", LENGTH) + BODY)
    for name in ("upgrade", "http2-settings", "connection"):
        assert (request.header(name) or "keep-alive") == "keep-alive", request.head


UNREAD = [("GET", "/v1/models"), ("GET", "/v1/models/m"), ("GET", "/livez"), ("GET", "/nowhere"),
          ("PUT", "/v1/chat/completions"), ("DELETE", "/v1/models")]


@pytest.mark.parametrize("method,path", UNREAD)
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_that_nobody_reads_is_not_the_next_request(stack, method, path, framing):
    """WIRE-02's kind: a request hidden in the body of a GET or of a refused method."""
    hidden = wire.request(wire.chat_body("smuggled"))
    more = {"path": path, "method": method}
    data = wire.request(hidden, **more) if framing == "length" else wire.request(
        wire.chunked(hidden), headers=[("Transfer-Encoding", "chunked")], **more)
    answers, end, left = stack.raw(data + hidden)
    assert len(answers) == 1 and end in ("eof", "rst") and not left
    stack.at_rest(calls=0 if path == "/livez" else 1, attempts=0)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_a_body_of_any_method_that_passes_through_stays_a_body(stack, method):
    """WIRE-02's kind: the backend gets it framed, not as a request of its own."""
    hidden = json.dumps({"model": "m", "x": "GET / HTTP/1.1\r\n\r\n"}).encode()
    with FakeClient(stack.gw.port) as client:
        client.methods.append(method)
        client.send(wire.request(hidden, method=method, path="/v1/files/f1"),
                    wire.request(MARKER))
        first, second = client.read_response(), client.read_response()
    assert echoed(first) == {"method": method, "target": "/v1/files/f1", "body": hidden.decode()}
    assert "marker" in echoed(second)["body"]
    stack.at_rest(calls=2, attempts=2)

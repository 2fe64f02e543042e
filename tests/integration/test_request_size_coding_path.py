"""Size, content coding, multipart forms and paths of requests."""
import gzip
import json
import time
import zlib

import pytest

from support import wire
from support.client import FakeClient
from support.gateway import config, profile
from support.stack import echoed, open_stack

MIB = 1 << 20
LIMIT = 8 * MIB
CHAT = "/v1/chat/completions"
# A frame made by the zstd tool of the text `{"model":"auto","messages":[]}`.
ZSTD = bytes.fromhex("28b52ffd0458f100007b226d6f64656c223a226175746f222c226d65737361676573223a5b5d"
                     "7d9e337d2a")
PLAIN = b'{"model":"auto","messages":[]}'


def settings(backend):
    return config(profiles={"main": profile(backend, aliases=["m"], model="backend-name")},
                  limits={"body": LIMIT})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("size"), settings) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def sized_body(size):
    """A chat body of exactly `size` bytes with an inline image."""
    frame = json.dumps(wire.chat_body([{"type": "image_url", "image_url": {"url": "data:#"}}],
                                      model="auto")).encode()
    return frame.replace(b"#", b"A" * (size - len(frame) + 1))


def send(stack, body, framing="length", headers=(), path=CHAT):
    if framing == "chunked":
        headers = [("Transfer-Encoding", "chunked"), *headers]
        body = wire.chunked(*wire.bytes_of(body, 65_536))
    return stack.gw.request(body, headers=list(headers), path=path, seconds=20)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("size", [32_769, MIB + 1, 2 * MIB + 1, LIMIT - 1, LIMIT])
def test_a_body_up_to_the_limit_passes_whole(stack, size, framing):
    """REQ-03, REQ-04: no library's own limit stands in the way."""
    body = sized_body(size)
    assert len(body) == size
    assert send(stack, body, framing).status == 200
    assert stack.backend.requests[0].body == body.replace(b'"auto"', b'"backend-name"', 1)
    stack.at_rest(calls=1, attempts=1, outcome="ok")


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("over", [1, 4 * MIB])
def test_a_body_over_the_limit_is_a_413_that_the_client_can_read(stack, over, framing):
    """REQ-03, REQ-04: the client sends everything before it reads; nothing goes upstream."""
    answer = send(stack, sized_body(LIMIT + over), framing)
    assert answer.status == 413 and answer.closes(), answer.body
    error = answer.error()
    assert error["code"] == "request_too_large" and f"{LIMIT:,}" in error["message"], error
    line, = stack.at_rest(calls=1, attempts=0)
    assert line["outcome"] == "client_error", line


CODINGS = {
    "gzip": ("gzip", gzip.compress(PLAIN)),
    "x-gzip": ("x-gzip", gzip.compress(PLAIN)),
    "upper-case": ("GZIP", gzip.compress(PLAIN)),
    "deflate": ("deflate", zlib.compress(PLAIN)),
    "zstd": ("zstd", ZSTD),
    "identity": ("identity", PLAIN),
    "two-members": ("gzip", gzip.compress(PLAIN[:10]) + gzip.compress(PLAIN[10:])),
    "twice": ("gzip, gzip", gzip.compress(gzip.compress(PLAIN))),
    "gzip-of-zstd": ("zstd, gzip", gzip.compress(ZSTD)),
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("kind", list(CODINGS))
def test_a_compressed_body_is_understood_and_sent_on_plain(stack, kind, framing):
    """REQ-16: zstd is what Codex sends."""
    coding, body = CODINGS[kind]
    answer = send(stack, body, framing, [("Content-Encoding", coding)])
    assert answer.status == 200, answer.body
    request = stack.backend.requests[0]
    assert request.body == PLAIN.replace(b"auto", b"backend-name")
    assert request.header("content-encoding") is None
    assert request.header("content-length") == str(len(request.body))
    stack.at_rest(calls=1, attempts=1, outcome="ok")


def bomb(size):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"a" * MIB
    out = packer.compress(b'{"model":"auto","messages":[{"role":"user","content":"')
    for _ in range(size // MIB):
        out += packer.compress(block)
    return out + packer.compress(b'"}]}') + packer.flush()


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_a_bomb_meets_the_cap_of_the_decoded_size(stack, twice):
    """REQ-16: 128 MB behind 130 KB (or 2 KB): 413, and no memory for it."""
    body, coding = bomb(128 * MIB), "gzip"
    if twice:
        body, coding = gzip.compress(body), "gzip, gzip"
    before, started = stack.gw.rss_bytes(), time.monotonic()
    answer = send(stack, body, headers=[("Content-Encoding", coding)])
    assert answer.status == 413 and answer.error()["code"] == "request_too_large"
    assert time.monotonic() - started < 1.0
    assert stack.gw.rss_bytes() - before < 40 * MIB
    stack.at_rest(calls=1, attempts=0)


CORRUPT = {
    "gzip-garbage": ("gzip", b"\x1f\x8b" + b"garbage" * 9), "gzip-cut": (
        "gzip", gzip.compress(PLAIN)[:-4]), "gzip-bad-sum": (
        "gzip", gzip.compress(PLAIN)[:-8] + b"\0" * 8), "plain-as-gzip": ("gzip", PLAIN),
    "zstd-garbage": ("zstd", ZSTD[:6] + b"\xff" * 20), "zstd-cut": ("zstd", ZSTD[:-3]),
    "br-garbage": ("br", b"\xff" * 40), "deflate-cut": ("deflate", zlib.compress(PLAIN)[:-5]),
    "empty-gzip": ("gzip", b"\n"), "tail": ("gzip", gzip.compress(PLAIN) + b"tail"),
    "zstd-undeclared": (None, ZSTD), "gzip-undeclared": (None, gzip.compress(PLAIN)),
}


@pytest.mark.parametrize("kind", list(CORRUPT))
def test_a_body_that_is_not_in_its_coding_is_a_400(stack, kind):
    """REQ-16: corrupt, cut, or compressed without saying so."""
    coding, body = CORRUPT[kind]
    answer = send(stack, body, headers=[("Content-Encoding", coding)] if coding else [])
    assert answer.status == 400, answer.body
    assert answer.error()["type"] == "invalid_request_error"
    stack.at_rest(calls=1, attempts=0)


@pytest.mark.parametrize("coding", ["compress", "snappy", "gzip, what", "gzip,gzip,gzip,gzip,gzip",
                                    "a" * 500, "gz\x80ip"])
def test_a_coding_we_do_not_speak_is_a_415_that_says_what_we_do(stack, coding):
    """REQ-16, RFC 9110 §15.5.16."""
    answer = send(stack, PLAIN, headers=[("Content-Encoding", coding.encode("latin-1"))])
    assert answer.status in ((415,) if "gzip,gzip" not in coding else (400, 415)), answer.body
    if answer.status == 415:
        assert answer.error()["code"] == "unsupported_encoding"
        assert "zstd" in answer.header("accept-encoding") and "gzip" in answer.header(
            "accept-encoding")
    stack.at_rest(calls=1, attempts=0)


BOUNDARY = "----b0undary"


def form(parts, boundary=BOUNDARY, end=True):
    out = b""
    for name, value in parts:
        extra = '; filename="a.wav"\r\nContent-Type: audio/wav' if name == "file" else ""
        out += (f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}'
                "\r\n\r\n").encode() + value + b"\r\n"
    return out + (f"--{boundary}--\r\n".encode() if end else b"")


def send_form(stack, body, boundary=BOUNDARY, path="/v1/audio/transcriptions"):
    kind = f"multipart/form-data; boundary={boundary}"
    return stack.gw.request(body, path=path, headers=[("Content-Type", kind)], seconds=20)


AUDIO = b"RIFF" + bytes(range(256)) * 12_000
FORMS = {
    "model-last": form([("file", AUDIO), ("model", b"auto")]),
    "model-first": form([("model", b"auto"), ("file", AUDIO)]),
    "boundary-like-bytes": form([("file", b"--" + BOUNDARY.encode() + b"x\r\n--" +
                                  BOUNDARY.encode()[:-1] + b"\r\n" + AUDIO), ("model", b"auto")]),
    "a-model-inside-the-audio": form([("file", b'name="model"\r\n\r\nevil\r\n'),
                                      ("model", b"auto")]),
    "more-fields": form([("language", "日本語".encode()), ("model", b"auto"), ("file", AUDIO)]),
    "preamble": b"preamble\r\n" + form([("model", b"auto"), ("file", AUDIO)]),
    "epilogue": form([("model", b"auto"), ("file", AUDIO)]) + b"epilogue",
}


@pytest.mark.parametrize("quoted", [False, True], ids=["bare", "quoted"])
@pytest.mark.parametrize("kind", list(FORMS))
def test_a_form_is_routed_by_its_model_field(stack, kind, quoted):
    """REQ-17: wherever it stands; everything else byte for byte, with the same boundary."""
    boundary = f'"{BOUNDARY}"' if quoted else BOUNDARY
    answer = send_form(stack, FORMS[kind], boundary)
    assert answer.status == 200, answer.body
    request = stack.backend.requests[0]
    before, after = FORMS[kind].split(b"\r\nauto\r\n")
    assert request.body == before + b"\r\nbackend-name\r\n" + after
    assert request.header("content-type") == f"multipart/form-data; boundary={boundary}"
    stack.at_rest(calls=1, attempts=1, outcome="ok")


BAD_FORMS = {
    "no-model": form([("file", AUDIO)]),
    "two-models": form([("model", b"auto"), ("model", b"other")]),
    "never-ended": form([("model", b"auto")], end=False),
    "empty": b"",
    "another-boundary": form([("model", b"auto")], boundary="other"),
    "no-disposition": f"--{BOUNDARY}\r\n\r\nauto\r\n--{BOUNDARY}--\r\n".encode(),
    "endless-part-head": f"--{BOUNDARY}\r\nX: ".encode() + b"a" * 200_000,
    "many-parts-without-a-model": form([("x", b"")] * 20_000),
}


@pytest.mark.parametrize("kind", list(BAD_FORMS))
def test_a_form_without_one_clear_model_is_a_400(stack, kind):
    """REQ-17."""
    started = time.monotonic()
    answer = send_form(stack, BAD_FORMS[kind])
    assert answer.status == 400 and answer.error()["message"], (answer.status, answer.body)
    assert time.monotonic() - started < 1.0
    stack.at_rest(calls=1, attempts=0)


@pytest.mark.parametrize("boundary", ["", '""', '"', "a" * 300, "a b", '"a\\"b'])
def test_a_boundary_that_is_none_is_a_400(stack, boundary):
    """REQ-17: RFC 2046 §5.1.1, 1 to 70 characters."""
    answer = send_form(stack, form([("model", b"auto")]), boundary)
    assert answer.status == 400, answer.body
    stack.at_rest(calls=1, attempts=0)


SAME = {
    "slash-after": CHAT + "/", "two-slashes": "/" + CHAT,
    "slashes-inside": "/v1//chat///completions",
    "dot": "/v1/./chat/completions", "dots": "/v1/x/../chat/completions",
    "escaped-letter": "/v1/%63hat/completions", "escaped-dots": "/v1/x/%2e%2E/chat/completions",
    "above-the-root": "/../../v1/chat/completions",
    "absolute": "http://other.test/v1/chat/completions",
}


@pytest.mark.parametrize("kind", list(SAME))
def test_spellings_of_a_path_are_one_path(stack, kind):
    """REQ-20: normalised once; the backend gets the normalised form."""
    assert send(stack, PLAIN, path=SAME[kind]).status == 200
    assert stack.backend.requests[0].target == CHAT
    line, = stack.at_rest(calls=1, attempts=1, outcome="ok")
    assert line["path"] == CHAT, line


def test_the_query_is_kept(stack):
    """REQ-20: as it came, without keys (HDR-03)."""
    answer = send(stack, PLAIN, path=CHAT + "?api-version=2024-10-21&x=%2F%3f&y&key=sk-1&z=a+b")
    assert echoed(answer)["target"] == CHAT + "?api-version=2024-10-21&x=%2F%3f&y&z=a+b"
    stack.at_rest(calls=1, attempts=1)


ELSEWHERE = ["/v1/../metrics", "/%2e%2e/metrics", "/metrics", "/v1/%2e%2e/%2e%2e/admin", "/admin",
             "/v1", "/", "/v2/chat/completions", "/V1/chat/completions", "/v1/..%2fmetrics",
             "/v1/chat%2fcompletions", "/v1/chat\\completions", "/v1/%5c..%5cmetrics", "/v1/%",
             "/v1/%zz", "/v1/%00", "/v1/%0d%0aX:y", "*", "chat", "http:/v1",
             "/v1/chat/completions%00",
             "/api/status", "//metrics", "http://127.0.0.1/metrics"]


@pytest.mark.parametrize("target", ELSEWHERE)
def test_a_path_outside_the_api_is_a_404(stack, target):
    """REQ-20: no traversal, also not to the admin plane's endpoints."""
    answer = stack.gw.request(PLAIN, path=target)
    assert answer.status in (400, 404), (answer.status, answer.body)
    assert answer.error()["code"] and b"flashgate_" not in answer.body
    stack.at_rest(calls=1, attempts=0)


METHODS = [("GET", CHAT, "POST"), ("PUT", CHAT, "POST"), ("DELETE", "/v1/embeddings", "POST"),
           ("POST", "/v1/models", "GET"), ("OPTIONS", CHAT, "POST"), ("post", CHAT, "POST"),
           ("TRACE", CHAT, "POST"), ("HEAD", CHAT, "POST"), ("BREW", "/v1/files", "GET"),
           ("POST", "/v1/models/m", "GET"), ("TRACE", "/v1/files", "GET"),
           ("CONNECT", "/v1/files", "GET")]


@pytest.mark.parametrize("method,path,allow", METHODS)
def test_a_wrong_method_is_a_405_that_names_the_right_one(stack, method, path, allow):
    """REQ-20, RFC 9110 §15.5.6."""
    answer = stack.gw.request(method=method, path=path)
    assert answer.status == 405 and allow in answer.header("allow"), answer.head
    if method != "HEAD":
        assert answer.error()["code"] == "method_not_allowed"
    stack.at_rest(calls=1, attempts=0)


def test_connect_does_not_make_a_tunnel(stack):
    """No client-chosen upstream: authority-form is nothing here."""
    with FakeClient(stack.gw.port) as client:
        client.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: a\r\n\r\n" % stack.backend.port)
        assert client.read_response().status in (400, 404, 405)
    stack.at_rest(calls=1, attempts=0)

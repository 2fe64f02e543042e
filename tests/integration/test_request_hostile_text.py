"""Hostile text in every place that ends up in a log line, an error or a label."""
import json
import re

import pytest

from support import wire
from support.gateway import config, profile
from support.stack import open_stack

SAMPLE = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*'
                    r'(\{([a-zA-Z_]\w*="([^"\\\n]|\\[\\"n])*"(,(?=[a-z]))?)*\})?'
                    r" (NaN|[+-]?Inf|[-+]?[0-9.]+(e[-+]?[0-9]+)?)")

TEXTS = {
    "line-feed": 'a\n{"outcome":"forged"}', "crlf": "a\r\nX-Injected: 1\r\n\r\n",
    "quote": 'a"b\\c"',
    "ansi": "\x1b[31mred\x1b]0;title\x07", "nul": "a\0b", "separators": "a\u2028b\u2029c\x85",
    "label": 'm",code="200"} 1\nforged_total{x="', "right-to-left": "\u202egnp.exe",
    "bom": "\ufeff",
    "html": "<script>alert(1)</script>", "format": "{} {0} %s %n ${HOME}", "delete": "\x7f",
    "emoji": "🙂" * 50, "long": "x" * 10_000, "surrogate-pair-half": "\ud83d",
}
BYTES = {"high": b"\xff\xfe", "overlong": b"\xc0\xaf", "gbk": "你好".encode("gbk"), "c1": b"\x9b31m"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("hostile"), lambda b: config(profiles={
            "main": profile(b)})) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def check(stack, answer, calls=1):
    """Log lines and metrics parse strictly, and nothing was forged. Returns the lines."""
    lines = stack.at_rest(calls=calls)
    for raw in stack.gw.log_file.read_bytes().splitlines():
        raw.decode("utf-8")
        assert not re.search(rb"[\x00-\x1f\x7f]", raw), raw
        assert json.loads(raw).get("outcome") != "forged"
    text = stack.gw.admin("/metrics").body.decode("utf-8")
    for line in text.split("\n"):
        assert not line or line.startswith("#") or SAMPLE.fullmatch(line), line
    assert "forged" not in text
    assert answer.header("x-injected") is None
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", answer.head), answer.head
    return lines


@pytest.mark.parametrize("kind", list(TEXTS))
def test_hostile_text_as_the_model(stack, kind):
    """OBS-02, OBS-04: escaped in JSON, so it comes whole."""
    raw = json.dumps({"model": TEXTS[kind], "messages": []})
    answer = stack.gw.request(raw)
    assert answer.status in (400, 404), answer.body
    assert answer.error()["message"]
    check(stack, answer)


@pytest.mark.parametrize("kind", list(TEXTS))
def test_hostile_text_as_the_error_of_a_backend(stack, kind):
    """OBS-04: status, message, type, code and parameter all carry it."""
    text = TEXTS[kind]
    body = json.dumps({"error": {"message": text, "type": text, "param": text, "code": text}})
    stack.backend.then(wire.json_response(400, body))
    answer = stack.gw.chat()
    assert answer.status == 400 and answer.error()["message"]
    check(stack, answer)


@pytest.mark.parametrize("kind", list(BYTES))
def test_raw_bytes_as_the_error_of_a_backend(stack, kind):
    """OBS-04: not UTF-8, as JSON and as text."""
    for content_type, body in (("application/json",
                                b'{"error":{"message":"' + BYTES[kind] + b'"}}'),
                               ("text/plain", b"broken: " + BYTES[kind])):
        stack.backend.then(wire.response(500, body, [("Content-Type", content_type)]))
        answer = stack.gw.chat()
        assert answer.status == 500
        json.loads(answer.body.decode("utf-8"))
        check(stack, answer)


@pytest.mark.parametrize("kind", list(TEXTS))
def test_hostile_text_inside_a_stream(stack, kind):
    """OBS-04: an in-band error, a model and a finish reason in the middle of a 200."""
    text = TEXTS[kind]
    stack.backend.then(wire.stream_200(
        wire.event(json.dumps(wire.chunk_object({"content": "a"}, None, model=text))),
        wire.event(json.dumps(wire.chunk_object({}, text))),
        wire.event(json.dumps({"error": {"message": text, "code": text, "type": text}}))))
    answer = stack.gw.chat(stream=True)
    assert answer.status == 200
    check(stack, answer)


PATHS = ["/v1/%0a%0d", "/v1/%1b%5b31m", "/v1/%ff%fe", "/v1/%22%7d%0a", "/v1/a%e2%80%a8b", "/%00",
         "/v1/models/%ff", "/v1/models/%22%5c", "/v1/models/%e2%80%ae", "/v1/" + "%22" * 3000,
         '/v1/"}', "/v1/\u202e".encode().decode("latin-1"), "/v1/<b>", "/v1/\xff\xfe",
         "/v1/{0}%s%n"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_hostile_text_as_the_path(stack, path, method):
    """OBS-04: raw and escaped."""
    line = f"{method} {path} HTTP/1.1\r\nHost: a\r\n".encode("latin-1")
    body = b'{"model":"m"}' if method == "POST" else b""
    answers, _, _ = stack.raw(line + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                              + body)
    assert len(answers) == 1 and answers[0].status in (200, 400, 404, 405), answers
    check(stack, answers[0])


FIELDS = ["User-Agent", "x-flashgate-template", "x-request-id", "Referer", "x-flashgate-task",
          "Content-Type", "x-flashgate-conversation", "Accept", "x-flashgate-timeout", "Origin"]


@pytest.mark.parametrize("name", FIELDS)
def test_hostile_text_as_a_header(stack, name):
    """OBS-04: bytes that a field may carry, but a log may not."""
    values = [b'a"b\\c', b"\xff\xfe", "\u2028".encode(), b"{} %s", b"a\tb", b"x" * 5000, b"\x9b31m",
              b"'\"><script>", "你好".encode("gbk")]
    for value in values:
        answer = stack.gw.chat(headers=[(name, value)])
        assert answer.status in (200, 400, 415), (value, answer.body)
        json.loads(answer.body.decode("utf-8"))
    check(stack, answer, calls=len(values))


def test_a_template_id_is_kept_short_and_whole(stack):
    """The record names the template that a client names, cut on a character's border."""
    answer = stack.gw.chat(headers=[("x-flashgate-template", ("a" + "é" * 200).encode())])
    line, = check(stack, answer)
    assert len(line["template"].encode()) <= 130 and "\ufffd" not in line["template"], line


def test_many_names_make_no_new_series(stack):
    """OBS-02: labels come from the configuration, not from clients."""
    stack.gw.chat(model="unknown-0")
    stack.gw.wait_lines(1)
    before = sum(len(v) for v in stack.gw.metrics().values())
    for n in range(100):
        stack.gw.request({"model": f"unknown-{n}"}, headers=[("x-flashgate-template", f"t{n}"),
                                                             ("x-request-id", f"r{n}")])
        stack.gw.request(method="GET", path=f"/v1/x{n}/y")
    stack.gw.wait_lines(201, 5)
    assert sum(len(v) for v in stack.gw.metrics().values()) - before <= 4
    assert "unknown-" not in stack.gw.admin("/metrics").body.decode()
    stack.at_rest(calls=201)

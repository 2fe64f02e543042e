"""The framing matrix, refused half: heads and bodies whose end two readers could see differently.

Each stimulus hides a second request. The gateway answers once with an error, closes, and nothing
reaches the backend. docs/wire.md is this table for readers.
"""
import json

import pytest

from support import wire
from support.stack import open_stack

HIDDEN = wire.request(wire.chat_body("smuggled"))
BODY = json.dumps(wire.chat_body("first")).encode()
SIZE = str(len(BODY)).encode()
PATH = b"/v1/chat/completions"
JSON = b"Content-Type: application/json\r\n"
CHUNKED_BODY = wire.chunked(BODY)
LENGTH = b"Content-Length: " + SIZE + b"\r\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("refused")) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def head(*fields, line=b"POST " + PATH + b" HTTP/1.1", host=b"Host: a.test\r\n"):
    return line + b"\r\n" + host + JSON + b"".join(fields) + b"\r\n"


def coded(value, body=CHUNKED_BODY, *more):
    """A head with this Transfer-Encoding, and a body."""
    return head(b"Transfer-Encoding: " + value + b"\r\n", *more) + body


def sized(value, body=BODY):
    return head(b"Content-Length: " + value + b"\r\n") + body


def chunks(raw):
    """A chunked request with this raw body."""
    return coded(b"chunked", raw)


def refused(stack, data, statuses):
    """One error answer, the end of the connection, no attempt, one log line."""
    answers, end, left = stack.raw(data + HIDDEN)
    assert end in ("eof", "rst") and not left, (end, left[:100])
    assert len(answers) == 1, [a.head for a in answers]
    answer, = answers
    assert answer.status in statuses, (answer.status, answer.body)
    assert answer.error()["type"] == "invalid_request_error"
    assert answer.closes(), answer.head
    assert b"smuggled" not in answer.body
    stack.at_rest(calls=1, attempts=0)


TWO_FRAMINGS = {
    "length-then-coding": head(LENGTH, b"Transfer-Encoding: chunked\r\n") + CHUNKED_BODY,
    "coding-then-length": head(b"Transfer-Encoding: chunked\r\n", LENGTH) + CHUNKED_BODY,
    "length-zero-and-coding": head(b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n")
    + CHUNKED_BODY,
    "coding-and-length-of-the-frames": head(
        b"Content-Length: %d\r\n" % len(CHUNKED_BODY), b"Transfer-Encoding: chunked\r\n")
    + CHUNKED_BODY,
    "bad-length-and-coding": head(b"Content-Length: x\r\n", b"Transfer-Encoding: chunked\r\n")
    + CHUNKED_BODY,
}


@pytest.mark.parametrize("kind", list(TWO_FRAMINGS))
def test_a_length_beside_a_coding_is_refused(stack, kind):
    """WIRE-01."""
    refused(stack, TWO_FRAMINGS[kind], {400})


CODINGS = {
    "gzip-with-length": head(b"Transfer-Encoding: gzip\r\n", LENGTH) + BODY,
    "xchunked-with-length": head(b"Transfer-Encoding: xchunked\r\n", LENGTH) + BODY,
    "identity-with-length": head(b"Transfer-Encoding: identity\r\n", LENGTH) + BODY,
    "gzip-without-length": coded(b"gzip", BODY),
    "identity": coded(b"identity", BODY),
    "chunked-then-identity": coded(b"chunked, identity"),
    "gzip-then-chunked": coded(b"gzip, chunked"),
    "chunked-twice-in-a-list": coded(b"chunked, chunked"),
    "two-fields": coded(b"chunked", CHUNKED_BODY, b"Transfer-Encoding: chunked\r\n"),
    "two-fields-one-identity": coded(b"chunked", CHUNKED_BODY, b"Transfer-encoding: identity\r\n"),
    "empty": coded(b"", BODY),
    "empty-list-before": coded(b", chunked"),
    "empty-list-after": coded(b"chunked,"),
    "parameter": coded(b"chunked;q=1"),
    "quoted": coded(b'"chunked"'),
    "two-words": coded(b"chunked x"),
    "high-byte": coded(b"chunked\xa0"),
    "long-s": coded("chun\u212aed".encode()),
    "vertical-tab": coded(b"\x0bchunked"),
    "nul": coded(b"chunked\0"),
    "folded": coded(b"\r\n chunked"),
    "bare-lf-before": coded(b"\nchunked"),
    "space-before-colon": head(b"Transfer-Encoding : chunked\r\n") + CHUNKED_BODY,
    "tab-before-colon": head(b"Transfer-Encoding\t: chunked\r\n") + CHUNKED_BODY,
    "nul-in-the-name": head(b"Transfer-Encoding\0: chunked\r\n") + CHUNKED_BODY,
    "space-before-the-name": head(b" Transfer-Encoding: chunked\r\n") + CHUNKED_BODY,
}


@pytest.mark.parametrize("kind", list(CODINGS))
def test_a_transfer_coding_that_is_not_plainly_chunked_is_refused(stack, kind):
    """WIRE-02."""
    refused(stack, CODINGS[kind], {400, 501})


LENGTHS = {
    "equal-twice": head(LENGTH, LENGTH) + BODY,
    "differing-twice": head(LENGTH, b"Content-Length: 0\r\n") + BODY,
    "list-of-equals": sized(SIZE + b", " + SIZE),
    "plus": sized(b"+" + SIZE),
    "minus": sized(b"-" + SIZE),
    "hex": sized(b"0x10"),
    "exponent": sized(b"1e2"),
    "fraction": sized(SIZE + b".0"),
    "semicolon": sized(SIZE + b";"),
    "two-numbers": sized(SIZE + b" " + SIZE),
    "empty": sized(b""),
    "word": sized(b"many"),
    "digits-of-arabic": sized("\u0661\u0662".encode()),
    "overflow-64": sized(b"18446744073709551616"),
    "wraps-to-the-size": sized(str((1 << 64) + len(BODY)).encode()),
    "forty-digits": sized(b"9" * 40),
    "underscore-group": sized(b"1_0"),
    "nul": sized(SIZE + b"\0"),
    "folded": sized(b"\r\n " + SIZE),
    "space-before-colon": head(b"Content-Length : " + SIZE + b"\r\n") + BODY,
}


@pytest.mark.parametrize("kind", list(LENGTHS))
def test_a_length_that_is_not_one_number_is_refused(stack, kind):
    """WIRE-01's kind: every way of writing a length that readers take differently."""
    refused(stack, LENGTHS[kind], {400})


def test_a_length_of_eighteen_digits_is_too_large_and_not_a_crash(stack):
    """WIRE-01, REQ-03: a number, but over every limit."""
    refused(stack, sized(b"999999999999999999"), {413})


HOSTS = {
    "none": head(LENGTH, host=b"") + BODY,
    "two": head(LENGTH, b"Host: b.test\r\n") + BODY,
    "two-equal": head(LENGTH, b"Host: a.test\r\n") + BODY,
    "two-in-absolute-form": head(LENGTH, b"Host: b.test\r\n",
                                 line=b"POST http://a.test" + PATH + b" HTTP/1.1") + BODY,
    "none-in-absolute-form": head(LENGTH, host=b"",
                                  line=b"POST http://a.test" + PATH + b" HTTP/1.1") + BODY,
    "space": head(LENGTH, host=b"Host: a b\r\n") + BODY,
    "path": head(LENGTH, host=b"Host: a.test/x\r\n") + BODY,
    "user": head(LENGTH, host=b"Host: u@a.test\r\n") + BODY,
    "query": head(LENGTH, host=b"Host: a.test?x\r\n") + BODY,
    "fragment": head(LENGTH, host=b"Host: a.test#x\r\n") + BODY,
    "backslash": head(LENGTH, host=b"Host: a.test\\x\r\n") + BODY,
    "high-byte": head(LENGTH, host=b"Host: \xe9.test\r\n") + BODY,
    "folded": head(LENGTH, host=b"Host: a.test\r\n b.test\r\n") + BODY,
}


@pytest.mark.parametrize("kind", list(HOSTS))
def test_anything_but_one_valid_host_is_refused(stack, kind):
    """WIRE-02's matrix: RFC 9112 §3.2."""
    refused(stack, HOSTS[kind], {400})


CRLF_HEAD = head(LENGTH)
FIELDS = {
    "obs-fold-space": head(b"X-A: b\r\n c\r\n", LENGTH) + BODY,
    "obs-fold-tab": head(b"X-A: b\r\n\tc\r\n", LENGTH) + BODY,
    "fold-of-the-first-field": head(LENGTH, host=b" Host: a.test\r\n") + BODY,
    "fold-of-nothing": head(b"X-A: b\r\n \r\n", LENGTH) + BODY,
    "lf-only-head": CRLF_HEAD.replace(b"\r\n", b"\n") + BODY,
    "lf-only-request-line": CRLF_HEAD.replace(b"\r\n", b"\n", 1) + BODY,
    "lf-only-field": head(b"X-A: b\n", LENGTH) + BODY,
    "lf-only-last-line": CRLF_HEAD[:-2] + b"\n" + BODY,
    "cr-in-a-value": head(b"X-A: b\rX-B: c\r\n", LENGTH) + BODY,
    "cr-cr-lf": head(b"X-A: b\r\r\n", LENGTH) + BODY,
    "cr-in-a-name": head(b"X\r-A: b\r\n", LENGTH) + BODY,
    "nul-in-a-value": head(b"X-A: b\0c\r\n", LENGTH) + BODY,
    "nul-in-a-name": head(b"X\0A: b\r\n", LENGTH) + BODY,
    "escape-in-a-value": head(b"X-A: \x1b[31m\r\n", LENGTH) + BODY,
    "delete-in-a-value": head(b"X-A: \x7f\r\n", LENGTH) + BODY,
    "high-byte-in-a-name": head(b"X-\xe9: b\r\n", LENGTH) + BODY,
    "space-in-a-name": head(b"X A: b\r\n", LENGTH) + BODY,
    "space-before-colon": head(b"X-A : b\r\n", LENGTH) + BODY,
    "empty-name": head(b": b\r\n", LENGTH) + BODY,
    "no-colon": head(b"X-A b\r\n", LENGTH) + BODY,
    "quoted-name": head(b'"X-A": b\r\n', LENGTH) + BODY,
}


@pytest.mark.parametrize("kind", list(FIELDS))
def test_a_head_with_odd_line_ends_or_bytes_is_refused(stack, kind):
    """WIRE-05."""
    refused(stack, FIELDS[kind], {400})


LINES = {
    "http-0.9": b"POST " + PATH,
    "http-2": b"POST " + PATH + b" HTTP/2.0",
    "http-1.2": b"POST " + PATH + b" HTTP/1.2",
    "http-1.10": b"POST " + PATH + b" HTTP/1.10",
    "lower-case-version": b"POST " + PATH + b" http/1.1",
    "space-after-version": b"POST " + PATH + b" HTTP/1.1 ",
    "space-in-target": b"POST /v1/chat completions HTTP/1.1",
    "two-spaces": b"POST  " + PATH + b" HTTP/1.1",
    "tabs": b"POST\t" + PATH + b"\tHTTP/1.1",
    "leading-space": b" POST " + PATH + b" HTTP/1.1",
    "control-in-target": b"POST " + PATH + b"\x01 HTTP/1.1",
    "nul-in-target": b"POST " + PATH + b"\0 HTTP/1.1",
    "escape-in-target": b"POST " + PATH + b"\x1b[0m HTTP/1.1",
    "control-in-method": b"PO\x01ST " + PATH + b" HTTP/1.1",
    "bracket-in-method": b"PO{ST " + PATH + b" HTTP/1.1",
    "no-method": PATH + b" HTTP/1.1",
    "a-second-line-in-it": b"POST " + PATH + b" HTTP/1.1\rX: y",
}


@pytest.mark.parametrize("kind", list(LINES))
def test_a_request_line_that_is_not_exact_is_refused(stack, kind):
    """WIRE-05, WIRE-09: RFC 9112 §3."""
    refused(stack, head(LENGTH, line=LINES[kind]) + BODY, {400})


FOREIGN = {
    "http2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls-hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\n" * 40,
    "text": b"hello there\r\n\r\n",
    "proxy-protocol": b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
    "nuls": b"\0" * 64 + b"\r\n\r\n",
    "nine-empty-lines": b"\r\n" * 9,
}


@pytest.mark.parametrize("kind", list(FOREIGN))
def test_another_protocol_is_refused(stack, kind):
    """WIRE-05's kind: a port is found by others too."""
    refused(stack, FOREIGN[kind], {400})


def test_a_coding_in_http_1_0_is_refused(stack):
    """WIRE-07."""
    line = b"POST " + PATH + b" HTTP/1.0"
    refused(stack, head(b"Transfer-Encoding: chunked\r\n", line=line) + CHUNKED_BODY, {400})


@pytest.mark.parametrize("connection", [b"keep-alive", b"Transfer-Encoding, keep-alive"])
def test_a_coding_in_http_1_0_with_keep_alive_is_refused(stack, connection):
    """WIRE-07."""
    line = b"POST " + PATH + b" HTTP/1.0"
    refused(stack, head(b"Transfer-Encoding: chunked\r\n", b"Connection: " + connection + b"\r\n",
                        line=line) + CHUNKED_BODY, {400})


N = b"%x" % len(BODY)
CHUNKS = {
    "no-size": b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "word": b"xyz\r\n" + BODY + b"\r\n0\r\n\r\n",
    "minus": b"-" + N + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "plus": b"+" + N + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "hex-prefix": b"0x" + N + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "space-before": b" " + N + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "space-after": N + b" \r\n" + BODY + b"\r\n0\r\n\r\n",
    "tab-after": N + b"\t\r\n" + BODY + b"\r\n0\r\n\r\n",
    "lf-after-size": N + b"\n" + BODY + b"\r\n0\r\n\r\n",
    "cr-after-size": N + b"\r" + BODY + b"\r\n0\r\n\r\n",
    "lf-after-data": N + b"\r\n" + BODY + b"\n0\r\n\r\n",
    "nothing-after-data": N + b"\r\n" + BODY + b"0\r\n\r\n",
    "data-longer-than-size": b"5\r\n" + BODY + b"\r\n0\r\n\r\n",
    "lf-in-extension": N + b";a\nb\r\n" + BODY + b"\r\n0\r\n\r\n",
    "cr-in-extension": N + b";a\rb\r\n" + BODY + b"\r\n0\r\n\r\n",
    "nul-size": b"\0\r\n" + BODY + b"\r\n0\r\n\r\n",
    "overflow-16-digits": b"1" + b"0" * 16 + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "max-64": b"f" * 16 + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "wraps-to-the-size": b"1" + N.zfill(16) + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "extension-of-17-k": N + b";" + b"x" * 17_000 + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
    "trailer-of-17-k": N + b"\r\n" + BODY + b"\r\n0\r\nX: " + b"x" * 17_000 + b"\r\n\r\n",
    "trailer-with-lf": N + b"\r\n" + BODY + b"\r\n0\r\nX: y\n\r\n",
    "end-with-lf": N + b"\r\n" + BODY + b"\r\n0\r\n\n",
    "framing-outweighs-payload": b"".join(
        b"1;" + b"e" * 400 + b"\r\n" + BODY[i:i + 1] + b"\r\n" for i in range(len(BODY))) * 3
    + b"0\r\n\r\n",
}


@pytest.mark.parametrize("kind", list(CHUNKS))
def test_chunks_that_are_not_exact_are_refused(stack, kind):
    """WIRE-02's matrix: RFC 9112 §7.1, and framing that outweighs what it frames."""
    refused(stack, chunks(CHUNKS[kind]), {400})

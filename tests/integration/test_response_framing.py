"""Answers of the backend whose framing is wrong, odd or large: no user gets another's bytes."""
import gzip
import json
import threading

import pytest

from support import wire
from support.backend import Early, Fin, ReadBody, Rst, Segments, Sleep, Stall
from support.gateway import profile
from support.oracle import assert_at_rest

FORGED = wire.json_200("forged")
GZIP = [("Content-Encoding", "gzip")]


def content(answer):
    return answer.json()["choices"][0]["message"]["content"]


def decoded(answer):
    """The body after the coding that its headers declare."""
    coding = answer.header("content-encoding")
    assert coding in (None, "identity", "gzip"), answer.head
    return gzip.decompress(answer.body) if coding == "gzip" else answer.body


@pytest.mark.parametrize("accepts", [None, "gzip", "identity", "gzip;q=0"])
@pytest.mark.parametrize("kind", ["json", "error", "stream"])
def test_a_gzip_answer_reaches_only_clients_that_accept_it(gateway, backend, accepts, kind):
    """RES-01: bytes and headers belong together; usage and errors are seen behind the coding."""
    gw = gateway(backend)
    if kind == "stream":
        plain = b"".join([wire.ROLE, wire.delta("zipped"), wire.FIN(), wire.USAGE, wire.DONE])
        backend.then(wire.H200[:-2] + b"Content-Encoding: gzip\r\n\r\n" +
                     wire.chunked(*wire.bytes_of(gzip.compress(plain), 40)))
    else:
        status, thing = (200, wire.completion("zipped")) if kind == "json" else (
            422, {"error": {"message": "zipped", "type": "t", "param": None, "code": None}})
        plain = json.dumps(thing).encode()
        backend.then(wire.json_response(status, gzip.compress(plain),
                                        GZIP + [("ETag", '"e1"')]))
    headers = [("Accept-Encoding", accepts)] if accepts else []
    answer = gw.chat(stream=kind == "stream", headers=headers,
                     **({"stream_options": {"include_usage": True}} if kind == "stream" else {}))
    assert answer.complete
    if accepts != "gzip":
        assert answer.header("content-encoding") in (None, "identity"), answer.head
    got = decoded(answer)
    if kind == "error":
        assert answer.status == 422 and json.loads(got)["error"]["message"] == "zipped"
    else:
        assert answer.status == 200 and got == plain, got[:300]
    line, = assert_at_rest(gw, backend, calls=1)
    asked = backend.requests[0].header("accept-encoding")
    assert asked in (None, "identity"), asked
    if kind != "error":
        assert line["outcome"] == "ok" and line["output_tokens"] == 3, line
        assert line["token_source"] == "usage", line


@pytest.mark.parametrize("coding,body", [("gzip", b"this is not gzip"), ("gzip", b""),
                                         ("gzip", gzip.compress(b"x" * 10_000)[:-9]),
                                         ("rot13", b"{}")],
                         ids=["garbage", "empty", "cut", "unknown"])
def test_an_answer_whose_coding_is_broken_is_not_a_success(gateway, backend, coding, body):
    """RES-01: to a client that accepts no coding."""
    gw = gateway(backend)
    backend.then(wire.json_response(200, body, [("Content-Encoding", coding)]))
    answer = gw.chat()
    assert answer.status == 502 or not answer.complete, (answer.status, answer.body[:200])
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] != "ok", line


def test_a_gzip_bomb_in_an_answer_costs_no_memory(gateway, backend):
    """RES-01: 200 MB of zeros."""
    gw = gateway(backend)
    packer = __import__("zlib").compressobj(9, 8, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    gw.chat()
    before = gw.rss_bytes()
    backend.then(wire.json_response(200, bomb, GZIP))
    with gw.client() as client:
        client.send_chat()
        answer = client.read_head()
        for _ in client.iterate(answer):
            if len(answer.pieces) > 400:
                break
        assert gw.rss_bytes() - before < 64 << 20
    assert_at_rest(gw, backend, calls=2)


@pytest.mark.parametrize("end", [Fin(), Rst()], ids=["fin", "rst"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_short_body_is_never_padded_or_passed_as_whole(gateway, backend, end, framing):
    """RES-04: 502, or a response that is visibly incomplete."""
    gw = gateway(backend)
    body = json.dumps(wire.completion("x" * 400)).encode()
    backend.then((wire.response(200, body[:200], {"Content-Type": "application/json"},
                                length=len(body)) if framing == "length" else
                  b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n" + wire.chunk(body[:200])),
                 Sleep(0.02), end)
    answer = gw.chat()
    if answer.status == 200:
        assert not answer.complete and body.startswith(answer.body), answer
    else:
        assert answer.status == 502 and answer.error()["code"], answer.body
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] in ("upstream_reset", "truncated"), line


def test_a_short_body_falls_back_if_nothing_was_relayed(gateway, backends):
    """RES-04: whichever way it goes, half an answer is never joined with another one."""
    bad, good = backends(), backends()
    gw = gateway(bad, fallback=good, attempts=2)
    bad.then(wire.json_200("bad").replace(b"Content-Length: ", b"Content-Length: 9"), Fin())
    good.then(wire.json_200("good"))
    answer = gw.chat()
    if answer.complete:
        assert content(answer) == "good"
    else:
        assert b"good" not in answer.body
    assert_at_rest(gw, bad, good, calls=1)


@pytest.mark.parametrize("late", [0, 0.03], ids=["same-segment", "later"])
@pytest.mark.parametrize("framing", ["length", "chunked", "stream"])
def test_bytes_after_an_answer_never_reach_the_next_user(gateway, backend, late, framing):
    """RES-05 (and CONN-04): the connection is closed, not pooled."""
    gw = gateway(backend)
    if framing == "length":
        good = wire.json_200("mine")
    elif framing == "chunked":
        good = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n" +
                wire.chunked(json.dumps(wire.completion("mine")).encode()))
    else:
        good = wire.good_stream("mine")
    backend.then(*([good + FORGED] if not late else [good, Sleep(late), FORGED]))
    answer = gw.chat(stream=framing == "stream")
    assert answer.complete and b"mine" in answer.body and b"forged" not in answer.body
    if late:
        backend.wait_closed(backend.connections[0], 2)
    for _ in range(3):
        backend.then(wire.json_200("next"))
        assert content(gw.chat()) == "next"
    assert_at_rest(gw, backend, calls=4, outcome="ok")
    assert backend.requests[1].connection.number != 0
    assert len(backend.connections[0].requests) == 1


INTERIM = {
    "100": b"HTTP/1.1 100 Continue\r\n\r\n",
    "102": b"HTTP/1.1 102 Processing\r\n\r\n",
    "103": b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n",
    "two": b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    "length": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 168\r\n\r\n",
    "chunked": b"HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("kind", list(INTERIM))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("joined", [True, False], ids=["one-segment", "apart"])
def test_interim_responses_are_never_final(gateway, backend, kind, stream, joined):
    """RES-06: and the pooled connection stays in step."""
    gw = gateway(backend)
    for word in ("one", "two"):
        final = wire.good_stream(word) if stream else wire.json_200(word)
        backend.then(*([INTERIM[kind] + final] if joined else
                       [Segments(wire.bytes_of(INTERIM[kind], 11)), Sleep(0.02), final]))
    with gw.client() as client:
        for word in ("one", "two"):
            answer = client.chat(stream=stream)
            assert answer.status == 200 and answer.complete, answer
            assert (answer.sse().text() if stream else content(answer)) == word
            assert answer.header("link") is None
    assert_at_rest(gw, backend, calls=2, attempts=2, outcome="ok")


def test_endless_interim_responses_are_a_protocol_error(gateway, backend):
    """RES-06: a cap, then 502."""
    gw = gateway(backend)
    backend.then(INTERIM["103"] * 1000, wire.json_200("too late"))
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"], answer.body
    backend.wait_closed(backend.connections[0], 2)
    assert_at_rest(gw, backend, calls=1, outcome="upstream_protocol_error")


def test_an_upgrade_nobody_asked_for_is_refused(gateway, backend):
    """RES-06: 101 is final for HTTP/1.1, and no tunnel is opened."""
    gw = gateway(backend)
    backend.then(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                 b"tunnel", Stall(2))
    assert gw.chat().status == 502
    assert_at_rest(gw, backend, calls=1, outcome="upstream_protocol_error")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_body_has_none(gateway, backend, status):
    """RES-07: stray bytes are dropped with their connection."""
    gw = gateway(backend)
    backend.then(wire.response(status, b"hello"))
    backend.then(wire.json_200("next"))
    with gw.client() as client:
        first = client.chat()
        assert first.status in (status, 502) and b"hello" not in first.body
        if first.status == 204:
            assert first.header("content-length") is None, first.head
        if first.closes():
            client = gw.client()
        again = client.chat()
        assert again.status == 200 and content(again) == "next"
    assert_at_rest(gw, backend, calls=2)
    assert len(backend.connections[0].requests) == 1


def test_head_gets_no_body_and_keeps_the_connection_in_step(gateway, backend):
    """RES-07."""
    gw = gateway(backend)
    with gw.client() as client:
        answer = client.exchange(method="HEAD", path="/v1/models")
        assert answer.status in (200, 405) and answer.body == b""
        assert client.is_silent(0.1), client.buffer
        if not answer.closes():
            assert client.chat().status == 200


@pytest.mark.parametrize("size", [9_000, 33_000, 60_000])
def test_large_header_blocks_pass_in_both_directions(gateway, backend, size):
    """RES-09."""
    gw = gateway(backend)
    big = [(f"x-cdn-{n}", "v" * 900) for n in range(size // 920)]
    backend.then(wire.json_200("x", headers=big))
    answer = gw.chat(headers=[("Authorization", "Bearer " + "t" * (size // 2)),
                              ("Cookie", "c" * (size // 2 - 500))])
    assert answer.status == 200 and content(answer) == "x"
    assert "ttttt" not in str(backend.requests[0].headers)
    assert_at_rest(gw, backend, calls=1, outcome="ok")


@pytest.mark.parametrize("shape", ["one-field", "many-fields", "many-small"])
def test_a_header_block_over_the_cap_of_the_backend_is_502(gateway, backend, shape):
    """RES-09."""
    gw = gateway(backend)
    fields = {"one-field": [("x-a", "v" * 300_000)],
              "many-fields": [(f"x-{n}", "v" * 900) for n in range(330)],
              "many-small": [(f"x-{n}", "v") for n in range(5000)]}[shape]
    backend.then(wire.json_200("x", headers=fields))
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"], answer.head[:300]
    assert_at_rest(gw, backend, calls=1, outcome="upstream_protocol_error")


@pytest.mark.parametrize("shape", ["one-field", "many-fields"])
def test_a_header_block_over_the_cap_of_the_client_is_431(gateway, backend, shape):
    """RES-09: answered, not reset."""
    gw = gateway(backend)
    fields = {"one-field": [("x-a", "v" * 300_000)],
              "many-fields": [(f"x-{n}", "v" * 900) for n in range(330)]}[shape]
    with gw.client() as client:
        sender = threading.Thread(target=quietly, args=(client.send_chat,),
                                  kwargs={"headers": fields})
        sender.start()
        answer = client.read_response()
        sender.join()
    assert answer.status == 431 and answer.closes() and answer.error(), answer.head
    assert not backend.requests
    assert_at_rest(gw, backend)


def quietly(send, *args, **more):
    """Send although the other side may close first."""
    try:
        send(*args, **more)
    except OSError:
        pass


def test_a_long_stream_meets_no_body_limit(gateway, backend):
    """RES-10: 9 MB in chunks of 64 KB, and 20 MB."""
    gw = gateway(backend)
    for blocks in (9 * 16, 20 * 16):
        events = [wire.delta("x" * 65_300) for _ in range(blocks)]
        whole = b"".join(events) + wire.FIN() + wire.USAGE + wire.DONE
        backend.then(wire.H200, Segments([wire.chunk(p) for p in wire.bytes_of(whole, 65_536)], 0),
                     wire.EOC)
        answer = gw.chat(stream=True, seconds=30, stream_options={"include_usage": True})
        assert answer.complete and answer.body == whole
    assert_at_rest(gw, backend, calls=2, outcome="ok")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_large_json_answer_meets_no_body_limit(gateway, backend, framing):
    """RES-10: 20 MB of embeddings."""
    gw = gateway(backend)
    vector = ",".join(["0.0123456"] * 1000)
    body = ('{"object":"list","data":[' + ",".join(
        f'{{"object":"embedding","index":{n},"embedding":[{vector}]}}' for n in range(2048)) +
        '],"model":"m","usage":{"prompt_tokens":2048,"total_tokens":2048}}').encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    backend.then(wire.json_response(200, body) if framing == "length" else
                 head + b"Transfer-Encoding: chunked\r\n\r\n" +
                 wire.chunked(*wire.bytes_of(body, 100_000)))
    answer = gw.request({"model": "m", "input": ["x"] * 2048}, path="/v1/embeddings", seconds=30)
    assert answer.complete and answer.body == body
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert line["input_tokens"] == 2048, line


def read_on(connection):
    """Reads until the peer leaves."""
    while connection.recv(5):
        pass


@pytest.mark.parametrize("status", [413, 429, 400])
@pytest.mark.parametrize("end", [Fin(), Rst(), read_on], ids=["fin", "rst", "reads-on"])
def test_an_early_answer_beats_the_unfinished_upload(gateway, backend, status, end):
    """RES-15: the client gets that status, not 502 'write failed'."""
    gw = gateway(backend)
    backend.then(Early([Sleep(0.05), wire.error_response(status, "early", "t", "c",
                                                         [("Connection", "close")]),
                        Sleep(0.1, watch=False), end]))
    with gw.client(seconds=20) as client:
        sender = threading.Thread(target=quietly, args=(client.send_chat, "x" * (20 << 20)))
        sender.start()
        answer = client.read_response()
        sender.join()
    assert answer.status == status and answer.error()["message"], answer.body
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert len(backend.connections[0].requests) == 1
    assert line["status"] == status, line


def test_an_early_success_is_delivered_too(gateway, backend):
    """RES-15: a backend that answers 200 before it has read everything; the rest is sent on."""
    gw = gateway(backend)
    backend.then(Early([ReadBody(1000), wire.json_200("early"), Fin()]))
    answer = gw.chat("x" * 5_000_000, seconds=20)
    assert answer.status in (200, 502)
    if answer.status == 200:
        assert content(answer) == "early"
    assert_at_rest(gw, backend, calls=1)


GARBAGE = {
    "text": b"Hello, this is not HTTP at all\r\n\r\n",
    "empty-lines": b"\r\n" * 40 + b"x\r\n\r\n",
    "http2": b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\r\n\r\n",
    "version": b"HTTP/3.7 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status": b"HTTP/1.1 99999 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status-word": b"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\n{}",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length-and-chunked": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                          b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "negative": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
    "overflow": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
    "space-colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
    "nul": b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("kind", list(GARBAGE))
def test_an_answer_that_is_not_http_is_a_protocol_error(gateway, backend, kind):
    """RES-05, RES-06 and TMO-06: 502 with a code of its own, connection closed."""
    gw = gateway(profile(backend, timeouts={"first_byte": "1s"}))
    backend.then(GARBAGE[kind], Sleep(0.3), Fin())
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"], answer.body
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] == "upstream_protocol_error", line
    assert len(backend.connections[0].requests) == 1


def test_trailers_of_an_answer_do_not_become_headers(gateway, backend):
    """RES-05: of this answer or of the next one."""
    gw = gateway(backend)
    body = json.dumps(wire.completion("t")).encode()
    backend.then(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                 b"Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n" + wire.chunk(body) +
                 b"0\r\nX-Late: 1\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\n")
    backend.then(wire.json_200("u"))
    with gw.client() as client:
        first, second = client.chat(), client.chat()
    assert content(first) == "t" and content(second) == "u"
    assert b"X-Late" not in first.head + second.head
    assert b"set-cookie" not in (first.head + second.head).lower()
    assert_at_rest(gw, backend, calls=2, outcome="ok")

"""Pipelining, slow and greedy clients.

The slow ones run beside the other tests of this module."""
import contextlib
import json
import socket
import threading
import time

import pytest

from support import wire
from support.backend import Sleep, WaitFor
from support.client import FakeClient
from support.gateway import config, wait_until
from support.stack import echoed, open_stack

HEADER_SECONDS = 30  # fixed: the time to send one head
STALL_SECONDS = 2
JSON = b"Host: a.test\r\nContent-Type: application/json\r\n"


def settings(backend):
    return config(backend, limits={"client_stall": f"{STALL_SECONDS}s"})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("clients"), settings) as one:
        yield one


@pytest.fixture(scope="module")
def slow_heads(shared, tmp_path_factory):
    """Clients that send a head byte by byte, started first and looked at last."""
    with open_stack(tmp_path_factory.mktemp("slow")) as own:
        yield own, [_drip(own, kind) for kind in ("silent", "bytes", "fields")]
        for client in own.gw.clients:  # close() alone would not wake their readers
            with contextlib.suppress(OSError):
                client.sock.shutdown(socket.SHUT_RDWR)


def _drip(stack, kind):
    client = stack.gw.client(seconds=HEADER_SECONDS + 10)
    started = time.monotonic()
    client.send(b"POST /v1/chat/completions HTTP/1.1\r\n")

    def drip():
        n = 0
        while time.monotonic() < started + HEADER_SECONDS + 5:
            n += 1
            try:
                if kind != "silent":
                    client.send(b"X" if kind == "bytes" else b"X-%d: a\r\n" % n)
            except OSError:
                return
            time.sleep(0.5)

    found = {"started": started, "ended": 0.0, "answer": None}

    def read():
        head = client.read_head(HEADER_SECONDS + 10)
        found["answer"] = head and client.read_body(head, 2)
        found["ended"] = time.monotonic()

    for work in (drip, read):
        threading.Thread(target=work, daemon=True).start()
    return found


@pytest.fixture
def stack(shared, slow_heads):
    return shared.fresh()


def post(body, *fields):
    return wire.request(body, headers=list(fields))


def test_pipelined_requests_are_answered_in_order_one_at_a_time(stack):
    """WIRE-08: the first is slow and streams."""
    go = threading.Event()
    slow = [wire.H200 + wire.chunk(wire.delta("one")), WaitFor(go),
            wire.chunked(wire.delta("two"), wire.FIN(), wire.DONE)]
    stack.backend.then(slow)
    with FakeClient(stack.gw.port) as client:
        client.send(post(wire.chat_body("a", stream=True)) + post(wire.chat_body("b")) +
                    post(wire.chat_body("c")))
        first = client.read_head()
        client.read_event(first)
        time.sleep(0.1)
        assert len(stack.backend.requests) == 1, "the second was started before the first ended"
        go.set()
        client.read_body(first)
        assert first.complete and b"two" in first.body
        for text in "bc":
            answer = echoed(client.read_response())
            assert json.loads(answer["body"])["messages"][0]["content"] == text
    lines = stack.at_rest(calls=3, attempts=3, outcome="ok")
    assert len({line["request_id"] for line in lines}) == 3


def test_leaving_after_the_first_answer_discards_what_was_pipelined(stack):
    """WIRE-08: the second, which began, is cancelled; the third never begins."""
    stack.backend.then(wire.json_200("first"))
    stack.backend.then(Sleep(5), wire.json_200("second"))
    client = stack.gw.client()
    client.send(post(wire.chat_body("a")) + post(wire.chat_body("b")) + post(wire.chat_body("c")))
    assert client.read_response().status == 200
    stack.backend.wait_requests(2)
    client.reset()
    stack.gw.wait_lines(2)
    lines = stack.at_rest(calls=2, attempts=2)
    assert lines[1]["outcome"] == "client_closed", lines[1]


def test_each_pipelined_request_is_judged_by_itself(stack):
    """WIRE-08: a 400 between two good ones keeps the connection when the framing was sound."""
    with FakeClient(stack.gw.port) as client:
        client.send(post(wire.chat_body("a")) + post(b'{"model": }') + post(wire.chat_body("c")))
        assert [client.read_response().status for _ in range(3)] == [200, 400, 200]
    lines = stack.at_rest(calls=3, attempts=2)
    assert [line["status"] for line in lines] == [200, 400, 200]


def test_pipelined_after_a_chunked_body(stack):
    """WIRE-08: what was read past the last chunk is the next request."""
    body = json.dumps(wire.chat_body("a")).encode()
    one = wire.request(wire.chunked(*wire.bytes_of(body, 9)),
                       headers=[("Transfer-Encoding", "chunked")])
    with FakeClient(stack.gw.port) as client:
        client.send(one * 5 + post(wire.chat_body("b")))
        got = [echoed(client.read_response())["body"] for _ in range(6)]
    assert got[:5] == [body.decode()] * 5 and '"b"' in got[5]
    stack.at_rest(calls=6, attempts=6, outcome="ok")


def test_two_hundred_pipelined_requests_are_served_in_order(stack):
    """WIRE-08: more than any buffer holds."""
    bodies = [wire.chat_body(f"n{n} " + "x" * 2000) for n in range(200)]
    with FakeClient(stack.gw.port, seconds=20) as client:
        sender = threading.Thread(target=client.send, args=[post(b) for b in bodies])
        sender.start()
        for body in bodies:
            assert json.loads(echoed(client.read_response())["body"]) == body
        sender.join()
    stack.at_rest(calls=200, attempts=200, outcome="ok")


FIELDS = b"".join(b"X-%d: a\r\n" % n for n in range(10_000))


@pytest.mark.parametrize("kind,status", [
    ("fields", 431), ("one-huge-field", 431), ("many-big-fields", 431), ("target", 414),
    ("endless-line", 414), ("query", 414), ("method", 414), ("host", 431)])
def test_an_oversized_head_is_refused_and_can_be_read(stack, kind, status):
    """WIRE-10: 10,000 fields, 100 KB of target; the client reads its answer, not a reset."""
    line = b"POST /v1/chat/completions HTTP/1.1\r\n"
    data = {
        "fields": line + JSON + FIELDS + b"\r\n",
        "one-huge-field": line + JSON + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        "many-big-fields": line + JSON + (b"X: " + b"a" * 900 + b"\r\n") * 100 + b"\r\n",
        "target": b"POST /v1/" + b"a" * 100_000 + b" HTTP/1.1\r\n" + JSON + b"\r\n",
        "endless-line": b"P" * 1_000_000,
        "query": b"POST /v1/chat/completions?" + b"a=b&" * 25_000 + b" HTTP/1.1\r\n" + JSON +
                 b"\r\n",
        "method": b"M" * 100_000 + b" /v1/models HTTP/1.1\r\n" + JSON + b"\r\n",
        "host": line + b"Host: " + b"a" * 100_000 + b"\r\n\r\n",
    }[kind]
    answers, end, left = stack.raw(data)
    assert len(answers) == 1 and end == "eof" and not left, (end, left[:100])
    assert answers[0].status in {status, 400} if kind == "method" else \
        answers[0].status == status, answers[0].body
    assert answers[0].error()["code"] and answers[0].closes()
    stack.at_rest(calls=1, attempts=0)


@pytest.mark.parametrize("fields,size", [(180, 10), (100, 500)])
def test_a_head_below_the_limits_passes(stack, fields, size):
    """WIRE-10's border: 64 KiB and 200 fields are allowed."""
    more = [(f"X-{n}", "a" * size) for n in range(fields)]
    answer = stack.gw.request(wire.chat_body(), headers=more)
    assert echoed(answer)
    request = stack.backend.requests[0]
    assert all(request.header(name) == value for name, value in more)
    stack.at_rest(calls=1, attempts=1, outcome="ok")


def unfinished(framing, sent):
    """A request that announces 1,000 bytes of body and sends fewer."""
    field, begin = (b"Content-Length: 1000", b"") if framing == "length" else (
        b"Transfer-Encoding: chunked", b"3e8\r\n")
    return b"POST /v1/chat/completions HTTP/1.1\r\n" + JSON + field + b"\r\n\r\n" + (
        begin + b" " * sent if sent is not None else b"")


def test_a_body_that_stops_is_a_time_out(stack):
    """REQ-18 (a): 408 after the stall time, no attempt, no slot."""
    started = time.monotonic()
    clients = [stack.gw.client() for _ in range(6)]
    for n, client in enumerate(clients):
        client.send(unfinished(("length", "chunked")[n % 2], (None, 0, 500)[n // 2]))
    for client in clients:
        answer = client.read_response(STALL_SECONDS + 3)
        assert answer.status == 408 and answer.closes()
        assert answer.error()["code"] == "request_timeout"
        assert client.wait_end() == "eof"
    assert STALL_SECONDS - 0.2 < time.monotonic() - started < STALL_SECONDS + 3
    stack.at_rest(calls=6, attempts=0)


@pytest.mark.parametrize("end", ["fin", "rst"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_that_is_cut_makes_no_attempt(stack, framing, end):
    """REQ-18 (b): dropped."""
    with FakeClient(stack.gw.port) as client:
        client.send(unfinished(framing, 500))
        if end == "fin":
            client.half_close()
            assert client.wait_end(3) in ("eof", "rst")
        else:
            client.reset()
    line, = stack.at_rest(calls=1, attempts=0)
    assert line["outcome"] in ("client_closed", "client_error"), line


@pytest.mark.parametrize("sent", [b"", b"POS", b"POST /v1/models HTTP/1.1\r\nHost: a"])
def test_a_client_that_leaves_inside_a_head_is_forgotten(stack, sent):
    """REQ-18's kind: nothing to answer, nothing left open."""
    before = stack.gw.open_fds()
    for _ in range(20):
        with FakeClient(stack.gw.port) as client:
            client.send(sent)
    wait_until(lambda: stack.gw.open_fds() <= before + 2)
    stack.at_rest(attempts=0)


def test_others_are_served_while_many_upload_slowly(stack):
    """Slow and greedy clients: 100 stalled uploads, and nobody waits for them."""
    rss = stack.gw.rss_bytes()
    slow = []
    for _ in range(100):
        client = stack.gw.client()
        client.send(b"POST /v1/chat/completions HTTP/1.1\r\n" + JSON +
                    b"Content-Length: 30000000\r\n\r\n" + b" " * 1000)
        slow.append(client)
    worst = 0.0
    for _ in range(30):
        started = time.monotonic()
        assert stack.gw.chat().status == 200
        worst = max(worst, time.monotonic() - started)
    assert worst < 0.5, worst
    assert stack.gw.rss_bytes() - rss < 64 << 20, "memory for bytes that never came"
    for client in slow:
        client.reset()
    stack.gw.wait_lines(130)
    stack.at_rest(attempts=30)


def test_a_body_dripped_byte_by_byte_does_not_hold_a_connection_for_ever(stack):
    """Slow and greedy clients: progress that never ends is a stall too."""
    started = time.monotonic()
    with FakeClient(stack.gw.port) as client:
        client.send(unfinished("length", None).replace(b" 1000", b" 30000000"))
        while client.is_silent(0.2) and time.monotonic() < started + 4 * STALL_SECONDS:
            client.send(b" ")
        assert client.read_response(1).status == 408
    assert time.monotonic() - started < 2 * STALL_SECONDS
    stack.at_rest(calls=1, attempts=0)


@pytest.mark.parametrize("index", [0, 1, 2], ids=["silent", "bytes", "fields"])
def test_a_head_that_takes_too_long_is_a_time_out(slow_heads, index):
    """WIRE-10: 408 and close after the header time, however much trickles in."""
    own, all_found = slow_heads
    found = all_found[index]
    wait_until(lambda: found["ended"], HEADER_SECONDS + 8)
    took = found["ended"] - found["started"]
    assert found["answer"] is not None, "closed without a word"
    assert found["answer"].status == 408 and found["answer"].closes()
    assert HEADER_SECONDS - 1 < took < HEADER_SECONDS + 5, took
    assert own.gw.chat().status == 200

"""The client leaves: upstream is cancelled within 500 ms, everything is released, once."""
import random
import threading
import time

import pytest

from support import wire
from support.backend import BlackHole, Segments, Sleep, Stall, WaitFor
from support.client import FakeClient
from support.gateway import profile, wait_until
from support.oracle import assert_at_rest

LIMIT = 0.5
LEAVE = ["close", "reset"]


def slow_stream(step=0.2, count=100):
    """One delta per `step` seconds."""
    steps = [wire.H200 + wire.chunk(wire.ROLE)]
    for n in range(count):
        steps += [wire.chunk(wire.delta(f"word{n} ")), Sleep(step)]
    return [*steps, wire.chunked(wire.FIN(), wire.DONE)]


def check_cancelled(gw, backend, left, **more):
    """The backend saw the close in time; one line says client_closed with 499."""
    connection = backend.requests[0].connection
    took = backend.wait_closed(connection, 3) - left
    assert took < LIMIT, f"upstream open for {took:.3f} s after the client left"
    assert connection.closed_how in ("fin", "rst")
    line, = assert_at_rest(gw, backend, calls=1, attempts=1, **more)
    assert line["outcome"] == "client_closed" and line["status"] == 499, line
    return line


@pytest.mark.parametrize("leave", LEAVE)
def test_leaving_in_mid_stream_cancels_upstream(gateway, backend, leave):
    """CXL-01: and partial tokens are recorded, the breaker is not told."""
    gw = gateway(profile(backend, breaker={"consecutive_failures": 1, "cooldown": "30s"},
                         max_concurrency=1))
    backend.then(*slow_stream())
    client = gw.client()
    client.send_chat(stream=True)
    client.read_body(client.read_head(), limit=400)
    time.sleep(0.25)
    getattr(client, leave)()
    line = check_cancelled(gw, backend, time.monotonic())
    assert line["output_tokens"] > 0 and line["ttft_ms"] is not None, line


@pytest.mark.parametrize("leave", LEAVE)
def test_leaving_before_the_first_token_cancels_upstream(gateway, backend, leave):
    """CXL-02: the backend is silent."""
    gw = gateway(profile(backend, breaker={"consecutive_failures": 1, "cooldown": "30s"},
                         max_concurrency=1))
    backend.then(Stall(20))
    client = gw.client()
    client.send_chat(stream=True)
    backend.wait_requests(1)
    time.sleep(0.3)
    getattr(client, leave)()
    check_cancelled(gw, backend, time.monotonic())


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("first", [b"", wire.chunk(wire.ROLE), wire.chunk(b": ping\n\n"),
                                   wire.chunk(wire.delta("x")[:20])],
                         ids=["headers", "role", "comment", "half-event"])
def test_leaving_while_the_gateway_holds_the_first_chunks_back(gateway, backend, leave, first):
    """CXL-02: also while the gateway peeks at the first chunk."""
    gw = gateway(backend)
    backend.then(wire.H200 + first, Stall(20))
    client = gw.client()
    client.send_chat(stream=True)
    backend.wait_requests(1)
    time.sleep(0.1)
    getattr(client, leave)()
    check_cancelled(gw, backend, time.monotonic())


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_leaving_a_call_that_is_not_streamed_cancels_upstream(gateway, backend, leave, path):
    """CXL-03."""
    gw = gateway(profile(backend, max_concurrency=1))
    backend.then(Stall(20))
    client = gw.client()
    client.send_request({**wire.chat_body(), "input": "x"}, path=path)
    backend.wait_requests(1)
    time.sleep(0.2)
    getattr(client, leave)()
    check_cancelled(gw, backend, time.monotonic())


@pytest.mark.parametrize("leave", LEAVE)
def test_leaving_in_the_middle_of_a_whole_answer_cancels_upstream(gateway, backend, leave):
    """CXL-03: headers and half the JSON have come."""
    gw = gateway(backend)
    answer = wire.json_200("x" * 1000)
    backend.then(answer[:-500], Stall(20))
    client = gw.client()
    client.send_chat()
    backend.wait_requests(1)
    time.sleep(0.1)
    getattr(client, leave)()
    check_cancelled(gw, backend, time.monotonic())


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_leaving_the_queue_reaches_no_backend(gateway, backend, leave, stream):
    """CXL-02 in the queue: the entry goes at once, and its turn is not wasted."""
    gw = gateway(profile(backend, max_concurrency=1, queue={"max_entries": 8, "max_wait": "20s"}))
    go = threading.Event()
    backend.then(WaitFor(go), wire.json_200("first"))
    first = gw.client()
    first.send_chat()
    backend.wait_requests(1)
    waiter = gw.client()
    waiter.send_chat(stream=stream)
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 1)
    left = time.monotonic()
    getattr(waiter, leave)()
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 0, LIMIT)
    assert time.monotonic() - left < LIMIT
    go.set()
    assert first.read_response().status == 200
    lines = assert_at_rest(gw, backend, calls=2, attempts=1)
    assert sorted(line["outcome"] for line in lines) == ["client_closed", "ok"], lines


@pytest.mark.parametrize("leave", LEAVE)
def test_leaving_during_back_off_makes_no_further_attempt(gateway, backend, leave):
    """CXL-03 between two attempts."""
    gw = gateway(backend, attempts=3)
    backend.always(wire.error_response(503, headers=[("Retry-After", "1")]))
    client = gw.client()
    client.send_chat()
    backend.wait_requests(1)
    time.sleep(0.1)
    getattr(client, leave)()
    gw.wait_lines(1, LIMIT + 0.2)
    time.sleep(1.2)
    line, = assert_at_rest(gw, backend, calls=1, attempts=1, plain=False)
    assert line["outcome"] == "client_closed", line


def test_leaving_during_connect_cancels_it(gateway):
    """CXL-02 before there is a connection."""
    hole = BlackHole()
    try:
        gw = gateway(profile(hole.url, timeouts={"connect": "20s"}))
        client = gw.client()
        client.send_chat()
        time.sleep(0.2)
        client.reset()
        line, = gw.wait_lines(1, 1)
        assert line["outcome"] == "client_closed", line
        assert_at_rest(gw, calls=1)
    finally:
        hole.close()


def test_leaving_in_the_middle_of_the_upload_reaches_no_backend(gateway, backend):
    """CXL-03 with REQ-18."""
    gw = gateway(profile(backend, max_concurrency=1))
    for leave in LEAVE:
        client = gw.client()
        client.send(wire.request(b'{"model":"m","mess', headers=[("Content-Length", "1000")]))
        time.sleep(0.1)
        getattr(client, leave)()
    time.sleep(0.2)
    assert not backend.requests
    assert gw.chat().status == 200
    wait_until(lambda: [line for line in gw.new_lines() if line["outcome"] == "ok"])
    assert len(backend.requests) == 1
    gw.mark()
    assert_at_rest(gw, backend)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("delay", [0, 0.4], ids=["at-once", "late"])
def test_a_half_close_is_not_a_disconnect(gateway, backend, stream, delay):
    """CXL-04: the full answer is delivered."""
    gw = gateway(backend)
    backend.then(Sleep(0.9), *(slow_stream(0.05, 8) if stream else [wire.json_200("whole")]))
    client = gw.client()
    client.send_chat(stream=stream)
    time.sleep(delay)
    client.half_close()
    answer = client.read_response()
    assert answer.status == 200 and answer.complete
    if stream:
        assert answer.sse().text() == "".join(f"word{n} " for n in range(8))
        assert answer.sse().done() == 1
    else:
        assert b"whole" in answer.body
    assert_at_rest(gw, backend, calls=1, attempts=1, outcome="ok")


def test_a_half_close_in_mid_stream_is_not_a_disconnect(gateway, backend):
    """CXL-04."""
    gw = gateway(backend)
    backend.then(*slow_stream(0.1, 10))
    client = gw.client()
    client.send_chat(stream=True)
    answer = client.read_head()
    client.read_event(answer)
    client.half_close()
    for _ in client.iterate(answer):
        pass
    assert answer.complete and answer.sse().done() == 1 and "word9" in answer.sse().text()
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_a_half_close_in_the_queue_keeps_its_place(gateway, backend):
    """CXL-04."""
    gw = gateway(profile(backend, max_concurrency=1, queue={"max_wait": "20s"}))
    go = threading.Event()
    backend.then(WaitFor(go), wire.json_200("first"))
    backend.then(wire.json_200("second"))
    first, second = gw.client(), gw.client()
    first.send_chat()
    backend.wait_requests(1)
    second.send_chat()
    second.half_close()
    time.sleep(0.8)
    go.set()
    assert b"first" in first.read_response().body
    assert b"second" in second.read_response().body
    assert_at_rest(gw, backend, calls=2, outcome="ok")


def test_a_reset_after_a_half_close_is_a_disconnect(gateway, backend):
    """CXL-04: a later write error or RST is the abort signal."""
    gw = gateway(backend)
    backend.then(*slow_stream())
    client = gw.client()
    client.send_chat(stream=True)
    client.read_body(client.read_head(), limit=300)
    client.half_close()
    time.sleep(0.3)
    client.reset()
    check_cancelled(gw, backend, time.monotonic())


def test_aborts_at_any_moment_lose_no_slot(gateway, backend):
    """CXL-06: 300 calls cut at random times, two slots; afterwards both are there."""
    dice = random.Random(20)
    gw = gateway(profile(backend, max_concurrency=2,
                         queue={"max_entries": 500, "max_wait": "5s"}))
    backend.always(wire.H200 + wire.chunk(wire.ROLE) + wire.chunk(wire.delta("a")), Sleep(0.004),
                   wire.chunked(wire.delta("b"), wire.FIN(), wire.USAGE, wire.DONE))
    fds = gw.open_fds()
    total = 300
    for n in range(total // 6):
        batch = [FakeClient(gw.port) for _ in range(6)]
        for one in batch:
            one.send_chat(stream=True)
        time.sleep(dice.uniform(0, 0.02))
        for one in batch:
            (one.reset if dice.random() < 0.5 else one.close)()
    wait_until(lambda: not gw.metric("flashgate_in_flight"), 8)
    lines = gw.wait_lines(total, 8)
    assert len(lines) == total
    assert {line["outcome"] for line in lines} <= {"ok", "client_closed"}, lines
    go = threading.Event()
    backend.always(WaitFor(go), wire.json_200("both"))
    seen = len(backend.requests)
    pair = [gw.client(), gw.client()]
    for one in pair:
        one.send_chat()
    backend.wait_requests(seen + 2)
    go.set()
    assert [one.read_response().status for one in pair] == [200, 200]
    wait_until(lambda: gw.open_fds() <= fds + 12)
    assert_at_rest(gw, backend, calls=total + 2)


@pytest.mark.parametrize("gap", [0, 0.005], ids=["together", "last-chunk-later"])
def test_leaving_after_done_is_success(gateway, backend, gap):
    """CXL-08: 300 clients that close as soon as they have [DONE]."""
    gw = gateway(backend)
    backend.always(wire.H200 + wire.chunk(wire.delta("a")) + wire.chunk(wire.FIN()) +
                   wire.chunk(wire.USAGE) + wire.chunk(wire.DONE),
                   *([Sleep(gap)] if gap else []), wire.EOC)
    total = 300
    for n in range(total):
        with FakeClient(gw.port) as client:
            client.send_chat(stream=True)
            while b"[DONE]\n\n" not in client.buffer:
                client.buffer += client.sock.recv(65_536)
            if n % 2:
                client.reset()
    backend.always(wire.json_200())
    lines = assert_at_rest(gw, backend, calls=total)
    wrong = [line for line in lines if line["outcome"] != "ok"]
    assert not wrong, f"{len(wrong)} of {total}: {wrong[0]}"


def test_leaving_right_after_a_whole_answer_is_success(gateway, backend):
    """CXL-08 without streaming."""
    gw = gateway(backend)
    for n in range(100):
        client = FakeClient(gw.port)
        client.send_chat()
        while not client.buffer.endswith(b"}"):
            client.buffer += client.sock.recv(65_536)
        (client.reset if n % 2 else client.close)()
    assert_at_rest(gw, backend, calls=100, outcome="ok")


def test_a_half_read_stream_is_not_pooled(gateway, backend):
    """CXL-01 with CONN-06: a connection whose exchange was cut serves nobody else."""
    gw = gateway(backend)
    backend.then(wire.H200 + wire.chunk(wire.delta("a")),
                 Segments([wire.chunk(wire.delta("b"))] * 20, 0.02), wire.chunked(wire.DONE))
    client = gw.client()
    client.send_chat(stream=True)
    client.read_body(client.read_head(), limit=1)
    client.reset()
    backend.then(wire.good_stream("clean"))
    assert gw.chat(stream=True).sse().text() == "clean"
    backend.wait_closed(backend.connections[0], LIMIT)
    assert backend.requests[1].connection is not backend.requests[0].connection
    assert_at_rest(gw, backend, calls=2)

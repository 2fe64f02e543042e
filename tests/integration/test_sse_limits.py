"""Long lines, endless lines and slow readers: memory stays bounded, nothing legitimate is cut."""
import time

import pytest

from support import wire
from support.backend import Segments, Sleep
from support.client import FakeClient
from support.gateway import profile, wait_until
from support.oracle import assert_at_rest

MB = 1 << 20
ASK = {"stream_options": {"include_usage": True}}


def drain(client, seconds=30.0):
    """Read and forget everything until the end; returns (bytes, last 300 bytes)."""
    total, last, end = len(client.buffer), client.buffer, time.monotonic() + seconds
    while time.monotonic() < end:
        client.sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            data = client.sock.recv(MB)
        except OSError:
            break
        if not data:
            break
        total += len(data)
        last = (last + data)[-300:]
        if last.endswith(wire.EOC):
            break
    return total, last


@pytest.mark.parametrize("size", [65_537, 262_145, 1_500_000, 6_000_000])
def test_a_long_line_is_relayed_whole(gateway, backend, size):
    """SSE-09."""
    gw = gateway(backend)
    big = wire.event(wire.chunk_object({"tool_calls": [
        {"index": 0, "function": {"arguments": "x" * size}}]}))
    events = [wire.ROLE, big, wire.FIN("tool_calls"), wire.USAGE, wire.DONE]
    backend.then(wire.H200, Segments([wire.chunk(p) for p in wire.bytes_of(b"".join(events),
                                                                          50_000)], 0), wire.EOC)
    answer = gw.chat(stream=True, **ASK)
    assert answer.complete and answer.body == b"".join(events)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert line["finish_reason"] == "tool_calls" and line["output_tokens"] == 3


def test_a_long_line_in_the_middle_of_a_stream_is_relayed_whole(gateway, backend):
    """SSE-09: also after the commit, and without being asked for usage."""
    gw = gateway(backend)
    big = wire.delta("y" * 3_000_000)
    backend.then(wire.stream_200(wire.ROLE, wire.delta("a"), big, wire.delta("b"), wire.FIN(),
                                 wire.USAGE, wire.DONE))
    answer = gw.chat(stream=True)
    assert answer.complete and big in answer.body
    assert answer.sse().text()[-1] == "b" and answer.sse().done() == 1
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def endless(first, piece, total=192 * MB):
    """A script that sends `first`, then `piece` again and again."""
    def send(connection):
        connection.send(first)
        for _ in range(total // len(piece)):
            connection.send(wire.chunk(piece))
        connection.send(wire.EOC)
    return [wire.H200, send]


@pytest.mark.parametrize("kind", ["line", "line-after-content", "data-lines", "comments", "roles",
                                  "blank-lines"])
def test_a_backend_that_never_ends_its_event_costs_no_memory(gateway, backend, kind):
    """SSE-10: bounded memory and linear time, at the start of a stream and in its middle."""
    gw = gateway(backend)
    first = wire.chunk(wire.delta("a")) if kind == "line-after-content" else b""
    piece = {"line": b"x" * 65_536, "line-after-content": b"x" * 65_536,
             "data-lines": b"data: x\n" * 8192, "comments": b": ping\n\n" * 8192,
             "roles": wire.ROLE * 400, "blank-lines": b"\n" * 65_536}[kind]
    size = 192 * MB if kind.startswith("line") else 48 * MB
    gw.chat()
    backend.then(endless(first, piece, size))
    before = gw.rss_bytes()
    with gw.client() as client:
        client.send_chat(stream=True)
        started, peak = time.monotonic(), 0
        client.sock.settimeout(20)
        while True:
            got = client.sock.recv(4 * MB)
            peak = max(peak, gw.rss_bytes())
            client.buffer = (client.buffer + got)[-300:]
            if not got or client.buffer.endswith(wire.EOC) or b"Content-Length" in client.buffer:
                break
        took = time.monotonic() - started
    assert took < 15, took
    assert peak - before < 32 * MB, f"grew by {(peak - before) / MB:.0f} MiB"
    lines = assert_at_rest(gw, backend, calls=2)
    assert lines[-1]["outcome"] in ("upstream_protocol_error", "truncated", "in_band_error"), lines


def flood(total):
    """Streams `total` bytes of deltas as fast as the peer takes them."""
    block = wire.chunk(wire.delta("z" * 1000) * 32)

    def send(connection):
        connection.send(wire.H200)
        for _ in range(total // len(block)):
            connection.send(block)
        connection.send(wire.chunked(wire.FIN(), wire.DONE))
    return [send]


def test_clients_that_read_nothing_are_dropped_and_cost_little(gateway, backend):
    """SSE-24: back-pressure, then the write stall time-out; the backend is not blamed."""
    gw = gateway(profile(backend, breaker={"consecutive_failures": 2, "cooldown": "30s"}),
                 limits={"client_stall": "1s", "stream_buffer": "256KiB"})
    backend.always(flood(200 * MB))
    before = gw.rss_bytes()
    clients = [FakeClient(gw.port, receive_buffer=4096) for _ in range(20)]
    for one in clients:
        one.send_chat(stream=True)
    backend.wait_requests(20)
    time.sleep(0.6)
    assert gw.rss_bytes() - before < 48 * MB, (gw.rss_bytes() - before) / MB
    sent = [c.bytes_sent for c in backend.connections]
    assert max(sent) < 24 * MB, sent
    lines = gw.wait_lines(20, seconds=8)
    assert {line["outcome"] for line in lines} == {"client_stalled"}, lines[0]
    wait_until(lambda: not backend.busy_connections())
    assert all(c.closed_how in ("fin", "rst") for c in backend.connections)
    for one in clients:
        one.close()
    assert_at_rest(gw, backend, calls=20)


def test_a_slow_reader_is_not_a_stalled_one_and_the_backend_is_not_idle(gateway, backend):
    """SSE-24: progress keeps a client; the idle timer pauses while we do not read."""
    gw = gateway(profile(backend, timeouts={"idle": "400ms"}),
                 limits={"client_stall": "1500ms", "stream_buffer": "64KiB"})
    backend.always(flood(24 * MB))
    with FakeClient(gw.port, receive_buffer=65_536) as client:
        client.send_chat(stream=True)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert client.sock.recv(65_536)
            time.sleep(0.1)
        assert not gw.new_lines(), gw.new_lines()
        total, last = drain(client)
    assert total > 10 * MB and b"[DONE]" in last
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_one_stalled_client_does_not_hold_up_others(gateway, backend):
    """SSE-24."""
    gw = gateway(backend)
    backend.then(flood(100 * MB))
    with FakeClient(gw.port, receive_buffer=4096) as stalled:
        stalled.send_chat(stream=True)
        backend.wait_requests(1)
        time.sleep(0.2)
        started = time.monotonic()
        for _ in range(20):
            assert gw.chat().status == 200
        assert time.monotonic() - started < 2
    assert_at_rest(gw, backend, calls=21)


def test_a_pause_within_back_pressure_loses_no_byte(gateway, backend):
    """SSE-24: stop and go many times; the bytes are those that were sent."""
    gw = gateway(backend, limits={"stream_buffer": "64KiB"})
    events = [wire.delta(f"{n}:" + "w" * 5000) for n in range(2000)]
    whole = b"".join(events) + wire.FIN() + wire.USAGE + wire.DONE
    backend.then(wire.H200, Segments([wire.chunk(p) for p in wire.bytes_of(whole, 32_768)], 0),
                 Sleep(0.01), wire.EOC)
    with FakeClient(gw.port, receive_buffer=8192, seconds=20) as client:
        client.send_chat(stream=True, **ASK)
        answer = client.read_head()
        for number, _ in enumerate(client.iterate(answer, 20)):
            if number % 50 == 0:
                time.sleep(0.005)
        assert b"".join(p for _, p in answer.pieces) == whole and answer.complete
    assert_at_rest(gw, backend, calls=1, outcome="ok")

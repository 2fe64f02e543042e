"""The harness itself: fake client against fake backend, without a gateway between them."""
import threading
import time

import pytest

from support import sse, wire
from support.backend import BlackHole, Early, ReadBody, Rst, Sleep, Stall, WaitFor
from support.client import BadFraming, FakeClient


def test_client_reads_length_chunked_and_close_delimited_bodies(backend):
    backend.then(wire.json_200("a"))
    backend.then(wire.good_stream("b", "c"))
    backend.then(wire.response(103, length=False) + wire.response(200, "to the end", length=False),
                 lambda c: c.close("fin"))
    with FakeClient(backend.port) as client:
        assert client.chat().json()["choices"][0]["message"]["content"] == "a"
        streamed = client.chat(stream=True)
        assert streamed.complete and streamed.sse().text() == "bc" and streamed.sse().done() == 1
        last = client.chat()
        assert last.interim == [103] and last.body == b"to the end" and last.complete
    assert [r.json()["messages"][0]["content"] for r in backend.requests] == ["hi"] * 3
    assert {r.connection.number for r in backend.requests} == {0}


def test_client_refuses_bad_framing(backend):
    for answer in (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                   b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                   b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", b"ICY 200 OK\r\n\r\n"):
        backend.then(answer)
        with FakeClient(backend.port) as client, pytest.raises(BadFraming):
            client.chat()


def test_client_tells_a_cut_body_from_a_whole_one(backend):
    backend.then(wire.H200 + wire.chunk(wire.delta("x")), lambda c: c.close("fin"))
    with FakeClient(backend.port) as client:
        answer = client.chat(stream=True)
        assert not answer.complete and answer.ended == "eof" and answer.sse().text() == "x"
    backend.then(wire.H200, Sleep(0.05), Rst())
    with FakeClient(backend.port) as client:
        assert client.chat(stream=True).ended == "rst"


def test_backend_sees_the_peer_leave(backend):
    backend.always(wire.H200, Stall())
    for leave, how in (("close", "fin"), ("reset", "rst")):
        with FakeClient(backend.port) as client:
            client.send_chat(stream=True)
            assert client.read_head().status == 200
            left = time.monotonic()
            getattr(client, leave)()
        connection = backend.connections[-1]
        assert backend.wait_closed(connection) - left < 0.2
        assert connection.closed_how == how
    assert not backend.busy_connections()


def test_backend_can_answer_before_the_body(backend):
    backend.then(Early([ReadBody(3), wire.error_response(413), Rst()]))
    with FakeClient(backend.port) as client:
        client.send(wire.request(b"x" * 3 + b"", headers=[("Content-Length", "10")]))
        assert client.read_response().status == 413
    assert backend.requests[0].body == b"xxx" and not backend.requests[0].complete


def test_backend_waits_for_the_test(backend):
    go = threading.Event()
    backend.then(WaitFor(go), wire.json_200())
    with FakeClient(backend.port) as client:
        client.send_chat()
        assert client.is_silent(0.05)
        go.set()
        assert client.read_response().status == 200


def test_black_hole_never_accepts():
    hole = BlackHole()
    try:
        with pytest.raises(TimeoutError):
            FakeClient(hole.port, seconds=0.3)
    finally:
        hole.close()


def test_decoder_follows_the_event_stream_text():
    body = (b"\xef\xbb\xbfdata:a\r\ndata:  b\r\n\r\n: note\n\nevent: x\rid: 7\rdata\r\r"
            b"retry: 10\n\ndata: tail\n")
    got = sse.decode(body)
    assert [(e.data, e.type, e.id) for e in got.events] == [("a\n b", "message", ""),
                                                            ("", "x", "7")]
    assert got.comments == [" note"] and got.retries == [10] and got.tail == b"data: tail\n"

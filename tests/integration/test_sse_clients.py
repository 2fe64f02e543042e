"""HTTP/1.0 clients, and streams that share a client connection."""
import pytest

from support import wire
from support.backend import Rst, Sleep, Stall
from support.gateway import profile
from support.oracle import assert_at_rest


@pytest.mark.parametrize("keep", [False, True], ids=["plain", "asks-keep-alive"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_an_http_10_client_gets_no_chunks(gateway, backend, keep, stream):
    """SSE-25."""
    gw = gateway(backend)
    body = wire.chunked(wire.json_200("hello").split(b"\r\n\r\n", 1)[1])
    backend.then(wire.good_stream("hello") if stream else
                 b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n" + body)
    with gw.client() as client:
        client.send_request(wire.chat_body(stream=stream), version="1.0",
                            headers=[("Connection", "keep-alive")] if keep else [])
        answer = client.read_response()
        assert answer.header("transfer-encoding") is None, answer.head
        assert answer.complete
        if stream:
            assert answer.framing == "close" and answer.closes(), answer.head
            assert answer.sse().text() == "hello" and answer.sse().done() == 1
            assert client.wait_end() == "eof"
        else:
            assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_a_broken_stream_to_an_http_10_client_ends_with_an_error_event(gateway, backend):
    """SSE-25 with P1."""
    gw = gateway(backend)
    backend.then(wire.H200 + wire.chunk(wire.delta("a")), Sleep(0.02), Rst())
    with gw.client() as client:
        client.send_request(wire.chat_body(stream=True), version="1.0")
        answer = client.read_response()
        assert answer.sse().text() == "a" and answer.sse().errors() and not answer.sse().done()
    assert_at_rest(gw, backend, calls=1, outcome="upstream_reset")


def test_many_streams_and_calls_share_one_client_connection(gateway, backend):
    """SSE-26: in order, each whole."""
    gw = gateway(backend)
    with gw.client() as client:
        for n in range(30):
            backend.then(wire.good_stream(f"s{n}") if n % 2 else wire.json_200(f"j{n}"))
            answer = client.chat(stream=bool(n % 2))
            if n % 2:
                assert answer.sse().text() == f"s{n}"
            else:
                assert answer.json()["choices"][0]["message"]["content"] == f"j{n}"
    assert_at_rest(gw, backend, calls=30, outcome="ok")


def by_content(**scripts):
    """A backend function: the first message says which script serves the request."""
    return lambda request: scripts[request.json()["messages"][0]["content"]]


def reuse(gw, client, answer):
    """The same connection if it may be used again, else a new one."""
    return client if not answer.closes() and client.is_silent(0.001) else gw.client()


@pytest.mark.parametrize("shift", [-0.004, -0.002, -0.001, 0.0, 0.001, 0.002, 0.004])
def test_no_byte_of_a_timed_out_stream_reaches_the_next_answer(gateway, backend, shift):
    """SSE-26: the idle deadline fires while the backend sends."""
    gw = gateway(profile(backend, timeouts={"idle": "100ms"}))
    rounds = 6
    backend.always(by_content(second=[wire.good_stream("second")], first=[
        wire.H200 + wire.chunk(wire.delta("first")), Sleep(0.1 + shift),
        wire.chunked(wire.delta("late first"), wire.FIN(), wire.DONE)]))
    client = gw.client()
    for _ in range(rounds):
        answer = client.chat("first", stream=True)
        assert answer.complete and answer.sse().text() in ("first", "firstlate first")
        assert bool(answer.sse().errors()) != bool(answer.sse().done()), answer.body
        client = reuse(gw, client, answer)
        again = client.chat("second", stream=True)
        assert again.sse().text() == "second" and b"first" not in again.body
        client = reuse(gw, client, again)
    backend.always(wire.json_200())
    assert_at_rest(gw, backend, calls=2 * rounds)


@pytest.mark.parametrize("shift", [-0.003, 0.0, 0.003])
def test_no_byte_of_a_timed_out_call_reaches_the_next_answer(gateway, backend, shift):
    """SSE-26: the first-byte deadline, and an answer that comes with it."""
    gw = gateway(profile(backend, timeouts={"first_byte": "60ms"}))
    rounds = 10
    backend.always(by_content(second=[wire.json_200("second")], first=[
        Sleep(0.06 + shift, watch=False), wire.json_200("first")]))
    client = gw.client()
    for _ in range(rounds):
        answer = client.chat("first")
        assert answer.status == 504 or b"first" in answer.body
        client = reuse(gw, client, answer)
        again = client.chat("second")
        assert again.status == 200 and b"second" in again.body, again.body
        client = reuse(gw, client, again)
    backend.always(wire.json_200())
    assert_at_rest(gw, backend, calls=2 * rounds)


def test_a_cut_stream_is_not_continued_by_the_next_one(gateway, backend):
    """SSE-26 with CONN-06: another client takes over at once after an abort."""
    gw = gateway(backend)
    for _ in range(10):
        backend.then(wire.H200 + wire.chunk(wire.delta("secret")), Sleep(0.01),
                     wire.chunk(wire.delta("secret")), Stall(5))
        backend.then(wire.good_stream("mine"))
        with gw.client() as leaver:
            leaver.send_chat(stream=True)
            leaver.read_body(leaver.read_head(), limit=1)
        answer = gw.chat(stream=True)
        assert answer.sse().text() == "mine" and b"secret" not in answer.body
    assert_at_rest(gw, backend, calls=20)

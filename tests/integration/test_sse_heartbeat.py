"""Comments that keep a silent stream alive: where they may stand and what they may not break."""
import json
import time

import pytest

from support import wire
from support.backend import Rst, Sleep
from support.oracle import assert_at_rest

BEAT = {"interval": "150ms", "before_first_token": False}
EARLY = {"interval": "150ms", "before_first_token": True}
ASK = {"stream_options": {"include_usage": True}}
REST = [wire.FIN(), wire.USAGE, wire.DONE]


def old_decoder(body):
    """A decoder as in early SDKs: every blank line dispatches if any field was seen, and `id`
    stays seen for ever; yields the data of each dispatch."""
    data, seen, last_id = [], False, None
    for line in body.decode().splitlines():
        if not line:
            if seen or last_id is not None:
                yield "\n".join(data)
            data, seen = [], False
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            seen = True
            if name == "data":
                data.append(value)
            elif name == "id":
                last_id = value


def test_a_heartbeat_is_a_comment(gateway, backend):
    """SSE-04: no invented data, and the client's events are the backend's."""
    gw = gateway(backend, heartbeat=BEAT)
    events = [wire.ROLE, wire.delta("a"), wire.delta("b"), *REST]
    backend.then(wire.H200 + wire.chunk(events[0] + events[1]), Sleep(0.8),
                 wire.chunked(*events[2:]))
    answer = gw.chat(stream=True, **ASK)
    got = answer.sse()
    assert answer.complete and 3 <= len(got.comments) <= 6, answer.body
    assert [e.data for e in got.events] == [e[6:-2].decode() for e in events]
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_no_heartbeat_while_events_flow(gateway, backend):
    """SSE-04: only after a silence."""
    gw = gateway(backend, heartbeat={"interval": "300ms"})
    steps = [wire.H200]
    for n in range(12):
        steps += [wire.chunk(wire.delta(str(n))), Sleep(0.06)]
    backend.then(*steps, wire.chunked(*REST))
    assert not gw.chat(stream=True).sse().comments
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_a_heartbeat_after_an_id_does_not_make_old_decoders_dispatch(gateway, backend):
    """SSE-04: one LF, no blank line, in a stream that carries ids."""
    gw = gateway(backend, heartbeat=BEAT)
    backend.then(wire.H200 + wire.chunk(b"id: 7\n" + wire.delta("a")), Sleep(0.5),
                 wire.chunked(b"id: 8\n" + wire.delta("b"), *REST))
    answer = gw.chat(stream=True, **ASK)
    assert answer.sse().comments and answer.sse().text() == "ab", answer.body
    for data in old_decoder(answer.body):
        assert data == "[DONE]" or json.loads(data), answer.body
    assert_at_rest(gw, backend, calls=1, outcome="ok")


@pytest.mark.parametrize("cut", [8, 30, -2, -1])
@pytest.mark.parametrize("first", [True, False], ids=["first-event", "later-event"])
def test_no_heartbeat_inside_an_event(gateway, backend, cut, first):
    """SSE-05."""
    gw = gateway(backend, heartbeat=BEAT if not first else EARLY)
    slow = wire.delta("slow")
    before = b"" if first else wire.chunk(wire.delta("a"))
    backend.then(wire.H200 + before + wire.chunk(slow[:cut]), Sleep(0.5),
                 wire.chunked(slow[cut:], *REST))
    answer = gw.chat(stream=True, **ASK)
    assert answer.complete and slow in answer.body, answer.body
    assert answer.sse().text() == ("slow" if first else "aslow")
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_no_heartbeat_inside_a_line_that_is_too_long_to_hold(gateway, backend):
    """SSE-05 with SSE-09: a long line is passed on in parts."""
    gw = gateway(backend, heartbeat=BEAT)
    slow = wire.delta("s" * 2_000_000)
    backend.then(wire.H200 + wire.chunk(wire.delta("a")) + wire.chunk(slow[:1_500_000]), Sleep(0.5),
                 wire.chunked(slow[1_500_000:], *REST))
    answer = gw.chat(stream=True, **ASK)
    assert answer.complete and slow in answer.body
    assert_at_rest(gw, backend, calls=1, outcome="ok")


@pytest.mark.parametrize("last", [wire.DONE, wire.FIN()], ids=["done", "finish"])
def test_no_heartbeat_after_the_end(gateway, backend, last):
    """SSE-05: nothing follows [DONE]; after a finish_reason alone, nothing that is no comment."""
    gw = gateway(backend, heartbeat=BEAT)
    backend.then(wire.H200 + wire.chunk(wire.delta("a") + wire.FIN()) + wire.chunk(last),
                 Sleep(0.5), wire.EOC)
    answer = gw.chat(stream=True)
    assert answer.complete
    if last == wire.DONE:
        assert answer.body.endswith(wire.DONE), answer.body
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_a_heartbeat_due_together_with_done_never_follows_it(gateway, backend):
    """SSE-05: the same millisecond, many times."""
    gw = gateway(backend, heartbeat={"interval": "20ms"})
    for n in range(40):
        backend.then(wire.H200 + wire.chunk(wire.delta("a") + wire.FIN()),
                     Sleep(0.0185 + n * 0.0001), wire.chunk(wire.DONE), Sleep(0.03), wire.EOC)
    with gw.client() as client:
        for _ in range(40):
            answer = client.chat(stream=True)
            assert answer.complete and answer.body.endswith(wire.DONE), answer.body[-200:]
            assert answer.sse().text() == "a"
    assert_at_rest(gw, backend, calls=40, outcome="ok")


def silent_client(gw, seconds, **more):
    """A chat client that asserts nothing came for `seconds`."""
    client = gw.client()
    client.send_chat(stream=True, **more)
    assert client.is_silent(seconds), client.buffer
    return client


def test_nothing_is_sent_before_the_first_token_by_default(gateway, backend):
    """SSE-20: early commit off, a first token that is very late."""
    gw = gateway(backend, heartbeat=BEAT)
    backend.then(Sleep(1.05), wire.good_stream("late"))
    answer = silent_client(gw, 0.9).read_response()
    assert answer.status == 200 and answer.sse().text() == "late"
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert line["ttft_ms"] >= 1000, line


@pytest.mark.parametrize("fails,status,outcome", [
    ([wire.error_response(500)], 500, "upstream_error"),
    ([wire.error_response(400, "bad")], 400, "client_error"),
    ([Rst()], 502, "upstream_reset")], ids=["500", "400", "reset"])
def test_a_late_failure_keeps_its_status_by_default(gateway, backend, fails, status, outcome):
    """SSE-20."""
    gw = gateway(backend, heartbeat=BEAT)
    backend.then(Sleep(0.5), *fails)
    answer = silent_client(gw, 0.4).read_response()
    assert answer.status == status and answer.error(), answer.body
    assert_at_rest(gw, backend, calls=1, outcome=outcome)


def test_silence_after_headers_and_role_sends_nothing_by_default(gateway, backend):
    """SSE-20: headers and a role chunk do not commit."""
    gw = gateway(backend, heartbeat=BEAT)
    backend.then(wire.H200 + wire.chunk(wire.ROLE), Sleep(0.6),
                 wire.chunked(wire.delta("x"), *REST))
    answer = silent_client(gw, 0.5).read_response()
    assert answer.status == 200 and answer.sse().text() == "x"
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_early_commit_sends_comments_before_the_first_token(gateway, backend):
    """SSE-20: early commit on."""
    gw = gateway(backend, heartbeat=EARLY)
    backend.then(Sleep(1.05), wire.good_stream("late"))
    client = gw.client()
    started = time.monotonic()
    client.send_chat(stream=True)
    answer = client.read_head()
    assert answer.status == 200 and 0.1 <= answer.head_at - started < 0.6
    assert answer.header("content-type").startswith("text/event-stream")
    client.read_body(answer)
    got = answer.sse()
    assert answer.complete and got.text() == "late" and 4 <= len(got.comments) <= 8, answer.body
    assert got.events[0].json()["choices"], answer.body
    assert_at_rest(gw, backend, calls=1, outcome="ok")


@pytest.mark.parametrize("fails", [[wire.error_response(500)], [Rst()],
                                   [wire.error_response(400, "bad")]], ids=["500", "reset", "400"])
def test_after_an_early_commit_a_late_failure_is_in_band(gateway, backend, fails):
    """SSE-20."""
    gw = gateway(backend, heartbeat=EARLY)
    backend.then(Sleep(0.5), *fails)
    answer = gw.chat(stream=True)
    got = answer.sse()
    assert answer.status == 200 and answer.complete and got.comments, answer.body
    assert len(got.errors()) == 1 and got.done() == 0 and len(got.events) == 1, answer.body
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] != "ok", line


def test_after_an_early_commit_a_late_failure_may_be_hidden_by_fallback(gateway, backends):
    """SSE-20: comments are not content, so the next candidate may still answer."""
    bad, good = backends(), backends()
    gw = gateway(bad, fallback=good, attempts=2, heartbeat=EARLY)
    bad.then(Sleep(0.5), wire.error_response(500))
    good.then(wire.good_stream("fine"))
    answer = gw.chat(stream=True)
    assert answer.complete and answer.sse().text() == "fine" and not answer.sse().errors()
    assert_at_rest(gw, bad, good, calls=1, attempts=[1, 1], outcome="ok")


def test_a_request_that_is_not_a_stream_gets_no_comments(gateway, backend):
    """SSE-20."""
    gw = gateway(backend, heartbeat=EARLY)
    backend.then(Sleep(0.5), wire.json_200("x"))
    answer = gw.chat()
    assert answer.json()["choices"][0]["message"]["content"] == "x"
    assert_at_rest(gw, backend, calls=1, outcome="ok")

"""Deadlines: one for each stage, none that kills a healthy stream, each with its own code."""
import time

import pytest

from support import wire
from support.backend import BlackHole, Fin, Rst, Segments, Sleep, Stall, refused_port
from support.gateway import profile
from support.oracle import assert_at_rest


def timed(call):
    """(answer, seconds)"""
    started = time.monotonic()
    return call(), time.monotonic() - started


def drip(pause, count):
    steps = [wire.H200]
    for n in range(count):
        steps += [wire.chunk(wire.delta(f"{n} ")), Sleep(pause)]
    return [*steps, wire.chunked(wire.FIN(), wire.DONE)]


@pytest.mark.parametrize("times", [{"timeout": "500ms"}, {"timeouts": {"first_byte": "300ms"}},
                                   {"timeout": "400ms", "timeouts": {"idle": "400ms"}}],
                         ids=["timeout", "first-byte", "timeout-and-idle"])
def test_a_healthy_stream_outlives_the_request_time_out(gateway, backend, times):
    """TMO-01: once a stream flows only the idle timer and a large cap apply."""
    gw = gateway(profile(backend, **times))
    backend.then(*drip(0.15, 12))
    answer, took = timed(lambda: gw.chat(stream=True))
    assert answer.complete and answer.sse().done() == 1 and not answer.sse().errors(), answer.body
    assert answer.sse().text().split() == [str(n) for n in range(12)] and took > 1.6
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_the_absolute_cap_of_a_stream_ends_it_in_band(gateway, backend):
    """TMO-01, the other side: `timeouts.total` is that cap."""
    gw = gateway(profile(backend, timeouts={"total": "800ms"}))
    backend.then(*drip(0.1, 100))
    answer, took = timed(lambda: gw.chat(stream=True))
    assert answer.complete and len(answer.sse().errors()) == 1 and answer.sse().done() == 0
    assert 0.6 < took < 1.6
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] == "upstream_timeout", line


def test_an_idle_backend_in_mid_stream_ends_it_in_band(gateway, backend):
    """TMO-03, the idle timer: outcome of its own, upstream closed."""
    gw = gateway(profile(backend, timeouts={"idle": "300ms"}))
    backend.then(wire.H200 + wire.chunk(wire.delta("a")), Stall(10))
    answer, took = timed(lambda: gw.chat(stream=True))
    got = answer.sse()
    assert answer.complete and got.text() == "a" and len(got.errors()) == 1 and not got.done()
    assert 0.25 < took < 1
    backend.wait_closed(backend.requests[0].connection, 1)
    assert_at_rest(gw, backend, calls=1, outcome="upstream_idle")


def test_half_events_and_comments_do_not_hide_an_idle_backend(gateway, backend):
    """TMO-03: bytes keep the idle timer from firing, silence behind half an event does not."""
    gw = gateway(profile(backend, timeouts={"idle": "300ms"}))
    backend.then(wire.H200 + wire.chunk(wire.delta("a")) + wire.chunk(wire.delta("b")[:30]),
                 Stall(10))
    answer = gw.chat(stream=True)
    assert answer.complete and answer.sse().text() == "a" and answer.sse().tail == b""
    assert_at_rest(gw, backend, calls=1, outcome="upstream_idle")


STAGES = ["connect", "first-byte", "headers-then-nothing"]


def stage_profile(stage, backend, hole):
    times = {"connect": "300ms", "first_byte": "400ms", "idle": "500ms"}
    backend.always(*{"connect": [Stall(5)], "first-byte": [Stall(5)],
                     "headers-then-nothing": [wire.H200, Stall(5)]}[stage])
    return profile(hole.url if stage == "connect" else backend, timeouts=times)


@pytest.fixture
def hole():
    one = BlackHole()
    yield one
    one.close()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_each_stage_that_hangs_is_504_in_its_own_time(gateway, backend, hole, stage, stream):
    """TMO-03."""
    gw = gateway(stage_profile(stage, backend, hole))
    answer, took = timed(lambda: gw.chat(stream=stream))
    assert answer.status == 504 and answer.error()["code"], answer.body
    assert 0.2 < took < 1.2, took
    line, = assert_at_rest(gw, backend, calls=1, plain=False)
    assert line["outcome"] in ("upstream_timeout", "upstream_idle"), line
    assert line["status"] == 504


def test_connect_and_first_byte_time_outs_have_different_codes(gateway, backend, hole):
    """TMO-03, TMO-06: the stages can be told apart."""
    codes = [gateway(stage_profile(stage, backend, hole)).chat(stream=True).error()["code"]
             for stage in STAGES[:2]]
    assert len(set(codes)) == 2, codes


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_each_stage_that_hangs_falls_back(gateway, backends, hole, stage, stream):
    """TMO-03: nothing was relayed, so the next candidate answers."""
    bad, good = backends(), backends()
    gw = gateway(stage_profile(stage, bad, hole), fallback=good, attempts=2)
    good.always(wire.good_stream("fine") if stream else wire.json_200("fine"))
    answer, took = timed(lambda: gw.chat(stream=stream))
    assert answer.status == 200 and b"fine" in answer.body and took < 1.5
    line, = assert_at_rest(gw, bad, good, calls=1, plain=False)
    assert line["outcome"] == "ok" and line["attempts"] == 2, line


def test_the_first_content_not_the_role_chunk_ends_the_wait(gateway, backend):
    """TMO-03: headers and a role chunk, then silence."""
    gw = gateway(profile(backend, timeouts={"first_byte": "300ms", "idle": "400ms"}))
    backend.then(wire.H200 + wire.chunk(wire.ROLE), Stall(5))
    answer, took = timed(lambda: gw.chat(stream=True))
    assert answer.status == 504 and took < 1.2
    assert_at_rest(gw, backend, calls=1)


def test_a_whole_answer_that_drips_meets_the_total_time_out(gateway, backend):
    """TMO-01: for calls that are not streamed `timeout` is the total."""
    gw = gateway(profile(backend, timeout="500ms"))
    backend.then(Segments(wire.bytes_of(wire.json_200("x" * 300), 10), 0.1))
    answer, took = timed(lambda: gw.chat())
    assert took < 1.2
    assert answer.status == 504 or not answer.complete, answer
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] == "upstream_timeout", line


@pytest.mark.parametrize("value,limit", [("0.4", 1.0), ("1", 1.6)])
def test_a_client_may_ask_for_a_shorter_deadline(gateway, backend, value, limit):
    """TMO-03: x-flashgate-timeout covers all attempts and their back-off."""
    gw = gateway(backend, attempts=3)
    backend.always(Stall(10))
    answer, took = timed(lambda: gw.chat(headers=[("x-flashgate-timeout", value)]))
    assert answer.status == 504 and float(value) - 0.1 < took < limit, took
    assert_at_rest(gw, backend, calls=1, plain=False)


@pytest.mark.parametrize("value", ["-1", "abc", "", "1e99", "99999999999999999999", "nan"])
def test_nonsense_in_the_deadline_header_does_no_harm(gateway, backend, value):
    """TMO-03."""
    gw = gateway(backend)
    answer = gw.chat(headers=[("x-flashgate-timeout", value)])
    assert answer.status in (200, 400), answer.body
    assert_at_rest(gw, backend, calls=1)


def error_of(answer):
    return answer.status, answer.error()["code"]


def test_every_kind_of_failure_has_its_status_and_code(gateway, backends, hole):
    """TMO-06: 502, 502, 502, 504, 504, each with a code of its own."""
    seen = {}
    for name, steps in {"reset": [Rst()], "closed": [Fin()],
                        "protocol": [b"garbage\r\n\r\n", Fin()], "first-byte": [Stall(5)]}.items():
        one = backends()
        one.always(*steps)
        gw = gateway(profile(one, timeouts={"first_byte": "300ms"}))
        seen[name] = error_of(gw.chat())
        line, = assert_at_rest(gw, one, calls=1, plain=False)
        seen[name] += (line["outcome"],)
    for name, url in {"refused": f"http://127.0.0.1:{refused_port()}/v1",
                      "connect": hole.url}.items():
        gw = gateway(profile(url, timeouts={"connect": "300ms"}))
        seen[name] = error_of(gw.chat())
        line, = assert_at_rest(gw, calls=1, plain=False)
        seen[name] += (line["outcome"],)
    assert {k: v[0] for k, v in seen.items()} == {
        "refused": 502, "reset": 502, "closed": 502, "protocol": 502, "first-byte": 504,
        "connect": 504}, seen
    codes = [seen[k][1] for k in ("refused", "reset", "protocol", "first-byte", "connect")]
    assert len(set(codes)) == 5, seen
    assert seen["reset"][2] == "upstream_reset" and seen["closed"][2] == "upstream_reset", seen
    assert seen["protocol"][2] == "upstream_protocol_error", seen
    assert seen["first-byte"][2] == seen["connect"][2] == "upstream_timeout", seen
    assert seen["refused"][2] in ("upstream_error", "upstream_reset"), seen


def test_a_full_queue_and_an_open_breaker_are_503(gateway, backend):
    """TMO-06: each with its code and a Retry-After."""
    gw = gateway(profile(backend, max_concurrency=1, queue={"max_entries": 1, "max_wait": "5s"}))
    backend.always(Stall(5))
    held = [gw.client(), gw.client()]
    for one in held:
        one.send_chat()
        time.sleep(0.1)
    answer = gw.chat()
    assert error_of(answer) == (503, "overloaded") and int(answer.header("retry-after")) >= 1
    for one in held:
        one.reset()
    lines = assert_at_rest(gw, backend, calls=3, plain=False)
    assert sorted(line["outcome"] for line in lines) == ["client_closed"] * 2 + ["overloaded"]

    gw = gateway(profile(backend, breaker={"consecutive_failures": 2, "cooldown": "20s"}))
    backend.always(wire.error_response(500))
    for _ in range(2):
        gw.chat()
    answer = gw.chat()
    assert error_of(answer) == (503, "no_backend_available"), answer.body
    assert int(answer.header("retry-after")) >= 1
    assert gw.wait_lines(3)[-1]["outcome"] == "no_backend"


def test_a_client_that_is_too_slow_is_408(gateway, backend):
    """TMO-06: half a body, then silence; no attempt and no slot."""
    gw = gateway(profile(backend, max_concurrency=1), limits={"client_stall": "600ms"})
    with gw.client() as client:
        client.send(wire.request(b'{"model":', headers=[("Content-Length", "500")]))
        answer, took = timed(lambda: client.read_response(seconds=5))
        assert error_of(answer) == (408, "request_timeout") and answer.closes() and took < 3
    line, = assert_at_rest(gw, backend, calls=1, attempts=0)
    assert line["outcome"] == "client_error" and line["status"] == 408, line


def test_slow_but_steady_is_not_too_slow(gateway, backend):
    """TMO-06, the control: an upload that makes progress."""
    gw = gateway(backend, limits={"client_stall": "600ms"})
    whole = wire.request(wire.chat_body("steady"))
    with gw.client() as client:
        client.send(*wire.bytes_of(whole, 30), pause=0.15)
        assert client.read_response().status == 200
    assert_at_rest(gw, backend, calls=1, outcome="ok")

"""Retry and fallback: when, how often, with what, and what the client learns of it."""
import threading
import time

import pytest

from support import wire
from support.backend import Early, Fin, ReadBody, Rst, Segments, Sleep, Stall
from support.client import FakeClient
from support.gateway import config, profile
from support.oracle import assert_at_rest


def timed(call):
    started = time.monotonic()
    return call(), time.monotonic() - started


CONTENT = {
    "content": wire.delta("a"),
    "tool-call": wire.event(wire.chunk_object({"tool_calls": [
        {"index": 0, "id": "t", "type": "function", "function": {"name": "f",
                                                                 "arguments": ""}}]})),
    "reasoning": wire.event(wire.chunk_object({"reasoning_content": "hm"})),
    "refusal": wire.event(wire.chunk_object({"refusal": "I cannot"})),
}


@pytest.mark.parametrize("kind", list(CONTENT))
@pytest.mark.parametrize("end", [[Rst()], [Fin()], [wire.EOC], [Stall(5)]],
                         ids=["reset", "close", "clean-end", "idle"])
def test_after_content_was_relayed_nothing_is_asked_again(gateway, backends, kind, end):
    """RTY-01: zero requests to the second backend, P1."""
    bad, spare = backends(), backends()
    gw = gateway(profile(bad, timeouts={"idle": "300ms"}), fallback=spare, attempts=3)
    bad.then(wire.H200 + wire.chunk(wire.ROLE) + wire.chunk(CONTENT[kind]) * 3, Sleep(0.03), *end)
    answer = gw.chat(stream=True)
    got = answer.sse()
    assert answer.complete and len(got.errors()) == 1 and got.done() == 0, answer.body
    assert answer.body.count(CONTENT[kind]) == 3
    line, = assert_at_rest(gw, bad, spare, calls=1, attempts=[1, 0])
    assert line["attempts"] == 1 and line["outcome"] != "ok", line


HELD = {
    "nothing": [], "role": [wire.ROLE], "role-twice": [wire.ROLE, wire.ROLE],
    "comments": [b": ping\n\n", wire.ROLE, b": ping\n\n"],
    "empty-content": [wire.ROLE, wire.delta("")],
    "preamble": [wire.event({"choices": [], "prompt_filter_results": []}), wire.ROLE],
    "null-content": [wire.event(wire.chunk_object({"role": "assistant", "content": None}))],
}


@pytest.mark.parametrize("kind", list(HELD))
@pytest.mark.parametrize("end", [Rst(), Fin()], ids=["reset", "close"])
def test_a_stream_that_dies_before_content_moves(gateway, backends, kind, end):
    """RTY-02: one role chunk and one id at the client."""
    bad, good = backends(), backends()
    gw = gateway(bad, fallback=good, attempts=2)
    bad.then(wire.H200 + b"".join(wire.chunk(e.replace(b'"c1"', b'"dead"')) for e in HELD[kind]),
             Sleep(0.05), end)
    good.then(wire.good_stream("fine"))
    answer = gw.chat(stream=True)
    got = answer.sse()
    assert answer.status == 200 and got.text() == "fine" and got.done() == 1, answer.body
    assert b"dead" not in answer.body and answer.body.count(b'"role"') == 1
    line, = assert_at_rest(gw, bad, good, calls=1, attempts=[1, 1])
    assert line["attempts"] == 2 and line["retried"] and line["profile"] == "spare", line
    assert answer.header("x-flashgate-attempts") == "2"
    assert answer.header("x-flashgate-profile") == "spare"


def test_a_stream_that_dies_after_its_role_may_be_retried_on_the_same_backend(gateway, backend):
    """RTY-02 with one candidate: an answer had begun, so the status is 502 if it is not."""
    gw = gateway(backend, attempts=3)
    backend.then(wire.H200 + wire.chunk(wire.ROLE), Sleep(0.03), Rst())
    backend.then(wire.good_stream("again"))
    answer = gw.chat(stream=True)
    assert answer.status in (200, 502), answer.body
    if answer.status == 200:
        assert answer.sse().text() == "again" and answer.body.count(b'"role"') == 1
    backend.scripts.clear()
    assert_at_rest(gw, backend, calls=1)


def test_a_retry_budget_bounds_a_storm(gateway, backends):
    """RTY-06: 200 requests, everything answers 503; extra attempts stay within 20 %."""
    one, two = backends(), backends()
    for backend in (one, two):
        backend.always(wire.error_response(503))
    gw = gateway(one, fallback=two, attempts=3)
    answers, lock = [], threading.Lock()

    def worker():
        with FakeClient(gw.port, seconds=20) as client:
            for _ in range(10):
                answer = client.chat()
                with lock:
                    answers.append(answer)
                if answer.closes():
                    return

    threads = [threading.Thread(target=worker) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status for a in answers} == {503}
    assert {a.header("x-should-retry") for a in answers} == {"false"}
    total = len(answers)
    made = len(one.requests) + len(two.requests)
    assert total + 5 <= made <= total * 1.2 + 12, (total, made)
    assert_at_rest(gw, one, two, calls=total, plain=False)


def test_a_few_failures_may_all_be_retried(gateway, backend):
    """RTY-06: never fewer than ten extra attempts in ten seconds."""
    gw = gateway(backend, attempts=2)
    for _ in range(8):
        backend.then(wire.error_response(500))
        backend.then(wire.json_200("x"))
        assert gw.chat().status == 200
    assert_at_rest(gw, backend, calls=8, attempts=16, outcome="ok")


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_attempts_counts_all_candidates(gateway, backends, attempts):
    """RTY-06: `retry.attempts` is the most that one request makes in all."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=attempts)
    for backend in (one, two):
        backend.always(wire.error_response(500))
    answer = gw.chat()
    assert answer.status == 500
    line, = assert_at_rest(gw, one, two, calls=1, plain=False)
    assert len(one.requests) + len(two.requests) == attempts == line["attempts"], line
    if attempts > 1:
        assert one.requests and two.requests


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415, 422])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_clients_fault_is_returned_at_once(gateway, backends, status, stream):
    """RTY-10: one attempt, the backend's status and message."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=3)
    one.always(wire.error_response(status, "your fault", "invalid_request_error", "why"))
    answer = gw.chat(stream=stream)
    assert answer.status == status and answer.error()["message"] == "your fault"
    assert answer.error()["code"] == "why"
    line, = assert_at_rest(gw, one, two, calls=1, attempts=[1, 0])
    assert line["outcome"] == "client_error" and not line["retried"], line


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_a_passing_fault_is_retried(gateway, backend, status):
    """RTY-10."""
    gw = gateway(backend, attempts=3)
    backend.then(wire.error_response(status))
    answer = gw.chat()
    assert answer.status == 200, answer.body
    line, = assert_at_rest(gw, backend, calls=1, attempts=2, outcome="ok")
    assert line["retried"] and line["attempts"] == 2, line


def test_a_prompt_that_is_too_long_moves_only_to_a_larger_window(gateway, backends):
    """RTY-10: context length is the client fault that another backend can cure."""
    too_long = wire.error_response(400, "This model's maximum context length is 8192 tokens",
                                   "invalid_request_error", "context_length_exceeded")
    for window, expected in ((100_000, [1, 1]), (8_000, [1, 0])):
        one, two = backends(), backends()
        one.always(too_long)
        gw = gateway(profile(one, context_length=8192),
                     fallback=profile(two, model="m2", context_length=window), attempts=3)
        answer = gw.chat()
        assert answer.status == (200 if expected[1] else 400), (window, answer.body)
        if not expected[1]:
            assert answer.error()["code"] == "context_length_exceeded"
        assert_at_rest(gw, one, two, calls=1, attempts=expected, plain=False)


QUOTA = {
    "insufficient_quota": wire.error_response(429, "You exceeded your current quota",
                                              "insufficient_quota", "insufficient_quota"),
    "402": wire.error_response(402, "Insufficient Balance", "unknown_error",
                               "invalid_request_error"),
    "usage-limit": wire.error_response(400, "You have reached your specified API usage limits. "
                                       "You will regain access on 2099-01-01 at 00:00 UTC.",
                                       "invalid_request_error"),
}


@pytest.mark.parametrize("kind", list(QUOTA))
def test_a_used_up_quota_falls_back_and_cools_down(gateway, backends, kind):
    """RTY-11: no retry on that credential, and it is left alone for long."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=3)
    one.always(QUOTA[kind])
    for _ in range(3):
        assert gw.chat().status == 200
    assert_at_rest(gw, one, two, calls=3, attempts=[1, 3], plain=False, outcome="ok")


@pytest.mark.parametrize("kind", list(QUOTA))
def test_a_used_up_quota_without_another_backend_is_503(gateway, backend, kind):
    """RTY-11: not the client's rate limit, never 401."""
    gw = gateway(backend, attempts=3)
    backend.always(QUOTA[kind])
    answer = gw.chat()
    assert answer.status == 503 and answer.error()["code"] == "upstream_quota", answer.body
    assert_at_rest(gw, backend, calls=1, attempts=1, plain=False)


@pytest.mark.parametrize("first", ["head", "half", "whole", "half-fin"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_second_attempt_carries_the_whole_body(gateway, backends, first, framing):
    """RTY-13: right length, own model name, own credentials."""
    one, two = backends(), backends()
    gw = gateway(profile(one, auth="bearer", api_key_env="KEY_A"),
                 fallback=profile(two, model="other-model", auth="bearer", api_key_env="KEY_B"),
                 attempts=3, env={"KEY_A": "aaa", "KEY_B": "bbb"})
    text = "".join(chr(0x4E00 + n % 2000) for n in range(100_000))
    one.always(Early({"head": [Rst()], "half": [ReadBody(100_000), Rst()],
                      "half-fin": [ReadBody(100_000), Fin()],
                      "whole": [ReadBody(), Rst()]}[first]))
    body = wire.chat_body(text, seed=18446744073709551616, z="ü")
    raw = wire.request(body).split(b"\r\n\r\n", 1)[1]
    with gw.client() as client:
        if framing == "length":
            client.send(wire.request(raw))
        else:
            client.send(wire.request(b"", headers=[("Transfer-Encoding", "chunked")]),
                        wire.chunked(*wire.bytes_of(raw, 50_000)))
        answer = client.read_response()
    assert answer.status == 200, answer.body[:300]
    line, = assert_at_rest(gw, one, two, calls=1, plain=False, outcome="ok")
    got, = two.requests
    assert got.body == raw.replace(b'"model": "m"', b'"model": "other-model"')
    assert got.framing == "length" and int(got.header("content-length")) == len(got.body)
    assert got.header("authorization") == "Bearer bbb"
    if first == "whole":
        assert len(one.requests) == 1 and line["possible_duplicate"], line


def test_a_backend_that_read_everything_and_reset_is_not_asked_again(gateway, backend):
    """RTY-13: billable, so with one candidate the client is told."""
    gw = gateway(backend, attempts=3)
    backend.then(Rst())
    answer = gw.chat()
    assert answer.status == 502 and answer.error()["code"]
    assert_at_rest(gw, backend, calls=1, attempts=1, outcome="upstream_reset")


def test_each_attempt_is_built_from_its_own_profile(gateway, backends):
    """RTY-14: auth scheme, path prefix, query, headers, model."""
    one, two = backends(), backends()
    gw = gateway(profile(one, auth="bearer", api_key_env="KEY_A", headers={"X-Org": "one"}),
                 fallback=profile(two.origin + "/openai/deep/v2", model="m2", auth="api-key",
                                  api_key_env="KEY_B", headers={"X-Team": "two"},
                                  query={"api-version": "2024-10-21"}),
                 attempts=2, env={"KEY_A": "aaa", "KEY_B": "bbb"})
    one.always(wire.error_response(500))
    for stream in (False, True):
        two.then(wire.good_stream("x") if stream else wire.json_200())
        assert gw.chat(stream=stream, headers=[("Authorization", "Bearer client")]).status == 200
    for first, second in zip(one.requests, two.requests):
        assert first.target == "/v1/chat/completions"
        assert first.header("authorization") == "Bearer aaa" and first.header("x-org") == "one"
        assert second.target == "/openai/deep/v2/chat/completions?api-version=2024-10-21"
        assert second.header("api-key") == "bbb" and second.header("authorization") is None
        assert second.header("x-team") == "two" and second.header("x-org") is None
        assert first.header("host") == f"127.0.0.1:{one.port}"
        assert second.header("host") == f"127.0.0.1:{two.port}"
        assert second.json()["model"] == "m2"
    assert_at_rest(gw, one, two, calls=2, attempts=[2, 2], plain=False, outcome="ok")


def test_each_attempt_has_the_time_outs_of_its_profile(gateway, backends):
    """RTY-14."""
    one, two = backends(), backends()
    gw = gateway(profile(one, timeouts={"first_byte": "200ms"}),
                 fallback=profile(two, model="m2", timeouts={"first_byte": "5s"}), attempts=2)
    one.always(Stall(5))
    two.always(Sleep(0.7), wire.json_200())
    answer, took = timed(lambda: gw.chat())
    assert answer.status == 200 and 0.8 < took < 2, took
    assert_at_rest(gw, one, two, calls=1, attempts=[1, 1], plain=False, outcome="ok")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("fails", ["500", "reset", "role", "slow", "refused", "429"])
def test_no_fallback_holds_on_every_path(gateway, backends, stream, fails):
    """RTY-14: the flag of the request."""
    one, two = backends(), backends()
    gw = gateway(profile(one, timeouts={"first_byte": "300ms", "idle": "300ms"}), fallback=two,
                 attempts=2)
    one.always(*{"500": [wire.error_response(500)], "reset": [Rst()],
                 "role": [wire.H200 + wire.chunk(wire.ROLE), Sleep(0.02), Rst()],
                 "slow": [Stall(5)], "refused": [Rst()],
                 "429": [wire.error_response(429, headers=[("Retry-After", "60")])]}[fails])
    if fails == "refused":
        one.refuse()
    answer = gw.chat(stream=stream, headers=[("x-flashgate-no-fallback", "1")])
    assert answer.status >= 429, answer.status
    assert not two.requests
    assert_at_rest(gw, calls=1)


def test_headers_of_a_failed_attempt_do_not_leak(gateway, backends):
    """RTY-15."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=2)
    one.always(wire.error_response(503, headers=[
        ("Retry-After", "30"), ("x-ratelimit-remaining-requests", "0"), ("Set-Cookie", "a=1"),
        ("x-should-retry", "true"), ("openai-processing-ms", "987654"), ("X-Which", "one")]))
    for stream in (False, True):
        two.then(wire.good_stream("x") if stream else wire.json_200())
        answer = gw.chat(stream=stream)
        assert answer.status == 200
        for name in ("retry-after", "set-cookie", "x-should-retry", "x-which"):
            assert answer.header(name) is None, answer.head
        assert answer.header("x-ratelimit-remaining-requests") != "0", answer.head
        assert answer.header("openai-processing-ms") != "987654"
        assert answer.header("x-flashgate-profile") == "spare"
    assert_at_rest(gw, one, two, calls=2, plain=False, outcome="ok")


def test_replicas_of_one_profile_are_tried_before_giving_up(gateway, backends):
    """RTY-10: another replica has the same model, so even embeddings may move."""
    one, two = backends(), backends()
    both = profile(one, base_url=None, replicas=[one.url, two.url])
    gw = gateway(config(profiles={"main": both}, attempts=2))
    one.always(wire.error_response(500))
    two.always(wire.json_200())
    for _ in range(6):
        answer = gw.request({"model": "m", "input": "x"}, path="/v1/embeddings")
        assert answer.status == 200, answer.body
    assert len(two.requests) == 6
    assert_at_rest(gw, one, two, calls=6, plain=False, outcome="ok")


def test_embeddings_never_move_to_another_model(gateway, backends):
    """RTY-10: another model's vectors corrupt an index."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=3)
    one.always(wire.error_response(500))
    answer = gw.request({"model": "m", "input": "x"}, path="/v1/embeddings")
    assert answer.status == 500 and not two.requests
    assert_at_rest(gw, one, two, calls=1, plain=False)


def test_a_refused_connect_falls_back_fast(gateway, backends):
    """RTY-10: the flash backend was killed and the cloud answers."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=3)
    assert gw.chat().status == 200
    one.refuse()
    for stream in (True, False):
        two.then(wire.good_stream("cloud") if stream else wire.json_200("cloud"))
        answer, took = timed(lambda: gw.chat(stream=stream))
        assert answer.status == 200 and b"cloud" in answer.body and took < 1, (took, answer.body)
    assert_at_rest(gw, calls=3, outcome="ok")


def test_back_off_does_not_come_before_its_time_or_much_later(gateway, backend):
    """RTY-06: full jitter below the exponential bound; total within it."""
    gw = gateway(config(backend, attempts=3, routing={"retry": {"attempts": 3,
                                                                "backoff": "100ms"}}))
    for _ in range(5):
        backend.then(wire.error_response(500))
        backend.then(wire.error_response(500))
        backend.then(wire.json_200())
        answer, took = timed(lambda: gw.chat())
        assert answer.status == 200 and took < 0.1 + 0.2 + 0.3, took
    assert_at_rest(gw, backend, calls=5, attempts=15, outcome="ok")


def test_a_segmented_error_answer_is_read_before_it_is_judged(gateway, backends):
    """RTY-10: a 500 whose body drips is retried when it is known, not when it is complete."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=2)
    one.always(Segments(wire.bytes_of(wire.error_response(500), 25), 0.005))
    assert gw.chat().status == 200
    assert_at_rest(gw, one, two, calls=1, attempts=[1, 1], plain=False, outcome="ok")

"""Buckets of a profile: burst, shape of the refusal, waiting, fallback, tokens."""
import threading
import time

import pytest

from support import wire
from support.backend import Stall
from support.gateway import profile
from support.oracle import assert_at_rest

NO_WAIT = {"max_wait": "1ms"}


def limited(backend, requests="60/min", burst=5, **more):
    return profile(backend, rate_limit={"requests": requests, "burst": burst},
                   queue=more.pop("queue", NO_WAIT), **more)


def at_once(gw, count, **members):
    """`count` chats in parallel; their answers."""
    answers, barrier = [], threading.Barrier(count)

    def one():
        with gw.client() as client:
            barrier.wait()
            answers.append(client.chat(**members))

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("idle", [0, 1.5], ids=["fresh", "after-idling"])
def test_a_burst_admits_exactly_the_capacity(gateway, backend, idle):
    """RL-08: idling at full is not credit, also not for parallel requests."""
    gw = gateway(limited(backend, "12/min", 5))
    time.sleep(idle)
    answers = at_once(gw, 12)
    assert sorted(a.status for a in answers) == [200] * 5 + [429] * 7
    lines = assert_at_rest(gw, backend, calls=12, attempts=5, plain=False)
    assert sorted(line["outcome"] for line in lines) == ["ok"] * 5 + ["rate_limited"] * 7
    assert gw.metric("flashgate_rate_limited_total") == 7


def test_the_bucket_refills_at_its_rate(gateway, backend):
    """RL-08, RL-10: fractions are kept, and one hit is no lock-out."""
    gw = gateway(limited(backend, "600/min", 1))
    seen = []
    end = time.monotonic() + 1.55
    while time.monotonic() < end:
        seen.append(gw.chat().status)
        time.sleep(0.01)
    assert 14 <= seen.count(200) <= 17, seen.count(200)
    assert_at_rest(gw, backend, calls=len(seen), plain=False)


def check_429(answer, word=None):
    """The shape of a refusal; returns Retry-After."""
    error = answer.error()
    assert answer.status == 429 and error["code"] == "rate_limit_exceeded", answer.body
    assert "rate_limit" in error["type"] or error["type"] in ("requests", "tokens"), error
    assert answer.header("content-type").startswith("application/json")
    value = answer.header("retry-after")
    assert value.isdigit() and int(value) >= 1, value
    if word:
        assert word in error["message"], error
    return int(value)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_refusal_names_the_limit_and_its_time(gateway, backend, stream):
    """RL-11: before any 200, for streams too."""
    gw = gateway(limited(backend, "60/min", 1))
    assert gw.chat().status == 200
    answer = gw.chat(stream=stream)
    wait = check_429(answer, "main")
    assert wait <= 2
    time.sleep(wait + 0.05)
    assert gw.chat().status == 200, "Retry-After was not true"
    assert_at_rest(gw, backend, calls=3, attempts=2, plain=False)


def test_retry_after_of_a_slow_bucket_is_its_refill_time(gateway, backend):
    """RL-11: 2 a minute is 30 s."""
    gw = gateway(limited(backend, "2/min", 1))
    gw.chat()
    assert 28 <= check_429(gw.chat()) <= 30
    assert_at_rest(gw, backend, calls=2, attempts=1, plain=False)


def test_a_refusal_keeps_the_connection(gateway, backend):
    """RL-11."""
    gw = gateway(limited(backend, "2/min", 1))
    with gw.client() as client:
        assert [client.chat().status for _ in range(4)] == [200, 429, 429, 429]
    assert_at_rest(gw, backend, calls=4, attempts=1, plain=False)


def test_an_empty_bucket_falls_back(gateway, backends):
    """RL-11: when the refill does not come within max_wait."""
    one, two = backends(), backends()
    gw = gateway(limited(one, "2/min", 2), fallback=two, attempts=1)
    answers = [gw.chat() for _ in range(5)]
    assert [a.status for a in answers] == [200] * 5
    assert [a.header("x-flashgate-profile") for a in answers] == ["main"] * 2 + ["spare"] * 3
    assert_at_rest(gw, one, two, calls=5, attempts=[2, 3], plain=False, outcome="ok")


def test_a_short_wait_is_waited_out(gateway, backend):
    """RL-11: the refill comes within max_wait."""
    gw = gateway(limited(backend, "120/min", 1, queue={"max_wait": "3s"}))
    gw.chat()
    started = time.monotonic()
    assert gw.chat().status == 200
    assert 0.35 < time.monotonic() - started < 1.2
    lines = assert_at_rest(gw, backend, calls=2, attempts=2, plain=False, outcome="ok")
    assert lines[1]["queue_ms"] >= 300, lines[1]


def test_leaving_while_waiting_for_the_bucket_gives_the_turn_back(gateway, backend):
    """RL-03 with CXL-02."""
    gw = gateway(limited(backend, "60/min", 1, queue={"max_wait": "10s"}))
    gw.chat()
    leavers = [gw.client() for _ in range(3)]
    for one in leavers:
        one.send_chat()
    time.sleep(0.2)
    for one in leavers:
        one.reset()
    time.sleep(1.0)
    started = time.monotonic()
    assert gw.chat().status == 200
    assert time.monotonic() - started < 1.2
    assert_at_rest(gw, backend, calls=5, attempts=2, plain=False)


def tokens(backend, amount, **more):
    return profile(backend, rate_limit={"tokens": f"{amount}/min"}, queue=NO_WAIT, **more)


def test_tokens_are_reserved_together_not_checked_apart(gateway, backend):
    """RL-01 for a profile: the first reserves nearly all, a second what is left, no more."""
    gw = gateway(tokens(backend, 100))
    backend.always(wire.json_200(prompt=10, tokens=80))
    answers = at_once(gw, 5, max_tokens=80)
    passed = [a.status for a in answers].count(200)
    assert passed in (1, 2) and len(answers) == 5, [a.status for a in answers]
    refused = [a for a in answers if a.status == 429][0]
    check_429(refused, "main")
    assert "token" in refused.error()["message"].lower()
    assert_at_rest(gw, backend, calls=5, attempts=passed, plain=False)


def test_a_reservation_is_settled_from_usage(gateway, backend):
    """RL-03: 900 reserved, 20 used."""
    gw = gateway(tokens(backend, 1000))
    backend.always(wire.json_200(prompt=10, tokens=10))
    for n in range(40):
        answer = gw.chat(max_tokens=900)
        assert answer.status == 200, f"call {n}: not settled when the answer had ended"
    assert_at_rest(gw, backend, calls=40, plain=False, outcome="ok")


def test_usage_beyond_the_reservation_is_charged(gateway, backend):
    """RL-03: the bucket goes below zero and recovers by its refill."""
    gw = gateway(tokens(backend, 1000))
    backend.always(wire.json_200(prompt=10, tokens=5000))
    assert gw.chat(max_tokens=10).status == 200
    gw.wait_lines(1)
    assert check_429(gw.chat(max_tokens=10)) > 5
    assert_at_rest(gw, backend, calls=2, attempts=1, plain=False)


@pytest.mark.parametrize("failure", [500, 400, 429])
def test_a_failure_gives_the_tokens_back(gateway, backend, failure):
    """RL-03."""
    gw = gateway(tokens(backend, 1000))
    backend.always(wire.error_response(failure))
    for _ in range(10):
        assert gw.chat(max_tokens=900).status == failure
    backend.always(wire.json_200())
    assert gw.chat(max_tokens=900).status == 200
    assert_at_rest(gw, backend, calls=11, attempts=11, plain=False)


def test_a_client_that_left_gives_the_tokens_back(gateway, backend):
    """RL-03: before any token came."""
    gw = gateway(tokens(backend, 1000))
    backend.then(Stall(10))
    client = gw.client()
    client.send_chat(max_tokens=900)
    backend.wait_requests(1)
    client.reset()
    gw.wait_lines(1)
    assert gw.chat(max_tokens=900).status == 200
    assert_at_rest(gw, backend, calls=2, plain=False)


def test_an_unknown_output_size_does_not_lock_a_fresh_bucket(gateway, backend):
    """RL-02: the reservation is capped by what is left."""
    gw = gateway(tokens(backend, 100))
    assert gw.chat().status == 200
    assert_at_rest(gw, backend, calls=1, attempts=1, plain=False)


def test_a_prompt_larger_than_the_bucket_is_not_an_eternal_429(gateway, backend):
    """RL-02: it can never fit, so the error says so."""
    gw = gateway(tokens(backend, 100))
    answer = gw.chat("word " * 2000)
    assert answer.status in (400, 413), (answer.status, answer.body)
    assert_at_rest(gw, backend, calls=1, attempts=0, plain=False)


def test_rate_limit_headers_are_in_the_style_of_the_api(gateway, backend):
    """RL-11: limit, remaining and reset."""
    gw = gateway(limited(backend, "60/min", 5))
    backend.always(wire.json_200(headers=[("x-ratelimit-limit-requests", "999999")]))
    answer = gw.chat()
    limit = answer.header("x-ratelimit-limit-requests")
    if limit is not None:
        assert limit != "999999", "the backend's own limit leaked"
    assert_at_rest(gw, backend, calls=1, attempts=1, plain=False)


def test_fallback_attempts_are_charged_to_the_profile_they_use(gateway, backends):
    """RL-03: a failed attempt on `main` and a good one on `spare`."""
    one, two = backends(), backends()
    one.always(wire.error_response(500))
    gw = gateway(one, fallback=limited(two, "2/min", 2, model="m2"), attempts=2)
    assert [gw.chat().status for _ in range(2)] == [200, 200]
    assert gw.chat().status in (429, 500)
    assert_at_rest(gw, one, two, calls=3, plain=False)
    assert len(two.requests) == 2

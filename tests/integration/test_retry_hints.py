"""Retry-After: what is understood, how long it is obeyed, and what wins when all have failed."""
import email.utils
import time

import pytest

from support import wire
from support.gateway import profile
from support.oracle import assert_at_rest


def timed(call):
    started = time.monotonic()
    return call(), time.monotonic() - started


def http_date(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


# value -> (least, most) seconds until the second attempt; own back-off is 10 ms.
HINTS = {
    "0": (0, 0.6), "1": (0.95, 1.8), "-5": (0, 1.2), "": (0, 1.2), "NaN": (0, 1.2),
    "inf": (0, 1.2), "soon": (0, 1.2), "1 1": (0, 1.2), "0x10": (0, 1.2), "+1": (0, 1.8),
    "past": (0, 0.6), "Tue, 99 Foo 2026 00:00:00 GMT": (0, 1.2), "  1  ": (0.95, 1.8),
    "1.5": (0, 2.2),
}


@pytest.mark.parametrize("value", list(HINTS))
def test_retry_after_is_a_floor_and_garbage_is_not(gateway, backend, value):
    """RTY-04: integers and dates parsed, past means now, garbage means our own back-off."""
    gw = gateway(backend, attempts=2)
    least, most = HINTS[value]
    sent = http_date(-3600) if value == "past" else value
    backend.then(wire.error_response(429, headers=[("Retry-After", sent)]))
    answer, took = timed(lambda: gw.chat())
    assert answer.status == 200, answer.body
    assert least <= took <= most, took
    assert_at_rest(gw, backend, calls=1, attempts=2, outcome="ok")


def test_a_future_date_is_waited_for(gateway, backend):
    """RTY-04: IMF-fixdate."""
    gw = gateway(backend, attempts=2)
    backend.then(wire.error_response(503, headers=[("Retry-After", http_date(2))]))
    answer, took = timed(lambda: gw.chat())
    assert answer.status == 200 and 0.8 < took < 3.0, took
    assert_at_rest(gw, backend, calls=1, attempts=2, outcome="ok")


@pytest.mark.parametrize("headers,least,most", [
    ([("retry-after-ms", "300")], 0.28, 0.9),
    ([("retry-after-ms", "300"), ("Retry-After", "1")], 0.28, 1.8),
    ([("retry-after-ms", "-300")], 0, 0.9), ([("retry-after-ms", "x")], 0, 0.9),
    ([("Retry-After", "1"), ("Retry-After", "0")], 0, 1.8),
], ids=["ms", "ms-and-seconds", "ms-negative", "ms-garbage", "two-fields"])
def test_milliseconds_and_two_fields(gateway, backend, headers, least, most):
    """RTY-04."""
    gw = gateway(backend, attempts=2)
    backend.then(wire.error_response(429, headers=headers))
    answer, took = timed(lambda: gw.chat())
    assert answer.status == 200 and least <= took <= most, took
    assert_at_rest(gw, backend, calls=1, attempts=2, outcome="ok")


@pytest.mark.parametrize("value", ["1e9", "9223372037", "9" * 30, "18446744073709551616",
                                   "600", "far-date"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_hint_beyond_the_deadline_never_holds_the_client(gateway, backend, value, status):
    """RTY-04, RTY-05: returned at once, or taken for garbage; never an endless sleep."""
    gw = gateway(profile(backend, timeout="5s"), attempts=2)
    sent = http_date(86_400) if value == "far-date" else value
    backend.then(wire.error_response(status, headers=[("Retry-After", sent)]))
    answer, took = timed(lambda: gw.chat())
    assert took < 1.5 and answer.status in (status, 200), (took, answer.status)
    if value == "600":
        assert answer.status == status
        assert 590 <= int(answer.header("retry-after")) <= 600, answer.head
    assert_at_rest(gw, backend, calls=1, plain=False)


def test_a_long_hint_falls_back_at_once(gateway, backends):
    """RTY-05: and the next request does not ask the cooling backend."""
    busy, good = backends(), backends()
    gw = gateway(busy, fallback=good, attempts=3)
    busy.always(wire.error_response(429, headers=[("Retry-After", "600")]))
    for _ in range(2):
        answer, took = timed(lambda: gw.chat())
        assert answer.status == 200 and took < 0.5
        assert answer.header("retry-after") is None
    lines = assert_at_rest(gw, busy, good, calls=2, attempts=[1, 2], plain=False, outcome="ok")
    assert lines[0]["retried"] and not lines[1]["retried"], lines


def test_when_all_fail_a_429_with_a_hint_wins(gateway, backends):
    """RTY-05."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=2)
    one.always(wire.error_response(500))
    two.always(wire.error_response(429, "slow down", headers=[("Retry-After", "77")]))
    answer = gw.chat()
    assert answer.status == 429 and 70 <= int(answer.header("retry-after")) <= 77, answer.head
    assert_at_rest(gw, one, two, calls=1, attempts=[1, 1], plain=False)


def test_when_all_fail_the_first_error_is_told(gateway, backends):
    """RTY-05: without a hint, the first candidate's."""
    one, two = backends(), backends()
    gw = gateway(one, fallback=two, attempts=2)
    one.always(wire.error_response(503, "first"))
    two.always(wire.error_response(500, "second"))
    answer = gw.chat()
    assert answer.status == 503 and answer.error()["message"] == "first", answer.body
    assert answer.header("x-should-retry") == "false"
    assert_at_rest(gw, one, two, calls=1, attempts=[1, 1], plain=False)

"""The queue of a backend: no ghosts, bounded by entries and bytes, in order, within deadlines."""
import threading
import time

import pytest

from support import wire
from support.backend import Rst, Stall, WaitFor
from support.client import FakeClient
from support.gateway import profile, wait_until
from support.oracle import assert_at_rest


def gated(backend, slots=1, **queue):
    return profile(backend, max_concurrency=slots, queue={"max_entries": 200, **queue})


def hold(gw, backend, count=1):
    """Fill the slots with requests that wait; returns (event that lets them go, clients)."""
    go = threading.Event()
    backend.always(WaitFor(go), wire.json_200("held"))
    clients = []
    for _ in range(count):
        clients.append(gw.client())
        clients[-1].send_chat()
    backend.wait_requests(count)
    return go, clients


def test_expired_waiters_leave_no_ghosts(gateway, backend):
    """Q-01: 100 waiters whose time is over; none reaches the backend."""
    gw = gateway(gated(backend, max_wait="500ms"))
    go, (first,) = hold(gw, backend)
    waiters = [FakeClient(gw.port) for _ in range(100)]
    started = time.monotonic()
    for one in waiters:
        one.send_chat("wait" * 1000)
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 100)
    assert gw.metric("flashgate_queue_bytes") >= 400_000
    for one in waiters:
        answer = one.read_response()
        assert answer.status == 503 and answer.error()["code"] == "overloaded", answer.body
        assert int(answer.header("retry-after")) >= 1
        one.close()
    assert 0.4 < time.monotonic() - started < 1.5
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 0)
    assert gw.metric("flashgate_queue_bytes") == 0
    go.set()
    assert first.read_response().status == 200
    started = time.monotonic()
    assert gw.chat().status == 200
    assert time.monotonic() - started < 0.2
    lines = assert_at_rest(gw, backend, calls=102, attempts=2)
    assert sum(line["outcome"] == "overloaded" for line in lines) == 100
    waited = [line["queue_ms"] for line in lines if line["outcome"] == "overloaded"]
    assert 400 < min(waited) and max(waited) < 1500, (min(waited), max(waited))


def test_waiters_are_served_in_order(gateway, backend):
    """Q-01: first come, first served for one caller."""
    gw = gateway(gated(backend, max_wait="10s"))
    go, _ = hold(gw, backend)
    waiters = []
    for n in range(10):
        waiters.append(gw.client())
        waiters[-1].send_chat(f"turn {n}")
        wait_until(lambda n=n: gw.metric("flashgate_queue_entries") == n + 1)
    go.set()
    for one in waiters:
        assert one.read_response().status == 200
    turns = [r.json()["messages"][0]["content"] for r in backend.requests[1:]]
    assert turns == [f"turn {n}" for n in range(10)]
    lines = assert_at_rest(gw, backend, calls=11, outcome="ok")
    assert max(line["queue_ms"] for line in lines) > 5


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_a_limit_means_that_many_in_the_process(gateway, backend, slots):
    """Q-01: over all threads; never one more, and all slots are used."""
    gw = gateway(gated(backend, slots, max_wait="10s"))
    lock, now, most = threading.Lock(), [0], [0]

    def enter(_):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1

    backend.always(lambda request: [enter, wire.json_200()])
    clients = [FakeClient(gw.port) for _ in range(60)]
    for one in clients:
        one.send_chat()
    for one in clients:
        assert one.read_response().status == 200
        one.close()
    assert most[0] == slots, most
    assert_at_rest(gw, backend, calls=60, outcome="ok")


def test_a_full_queue_refuses_at_once(gateway, backend):
    """Q-06: entries."""
    gw = gateway(gated(backend, max_entries=3, max_wait="10s"))
    go, (first,) = hold(gw, backend)
    waiters = [gw.client() for _ in range(3)]
    for one in waiters:
        one.send_chat()
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 3)
    for stream in (False, True, False):
        started = time.monotonic()
        answer = gw.chat(stream=stream)
        assert time.monotonic() - started < 0.2
        assert answer.status == 503 and answer.error()["code"] == "overloaded"
        assert int(answer.header("retry-after")) >= 1
    go.set()
    assert [one.read_response().status for one in [first, *waiters]] == [200] * 4
    lines = assert_at_rest(gw, backend, calls=7, attempts=4)
    assert sum(line["outcome"] == "overloaded" for line in lines) == 3


def test_a_queue_is_bounded_by_bytes_too(gateway, backend):
    """Q-06: two bodies of 400 KB fit into 1 MiB, the third does not."""
    gw = gateway(gated(backend, max_entries=100, max_bytes="1MiB", max_wait="10s"))
    go, (first,) = hold(gw, backend)
    big = "x" * 400_000
    waiters = [gw.client() for _ in range(2)]
    for one in waiters:
        one.send_chat(big)
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 2)
    assert gw.metric("flashgate_queue_bytes") >= 800_000
    started = time.monotonic()
    answer = gw.chat(big)
    assert answer.status == 503 and answer.error()["code"] == "overloaded", answer.body
    assert int(answer.header("retry-after")) >= 1 and time.monotonic() - started < 0.5
    small = gw.client()
    small.send_chat("small")
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 3)
    go.set()
    assert [one.read_response().status for one in [first, *waiters, small]] == [200] * 4
    assert_at_rest(gw, backend, calls=5, attempts=4)


def test_memory_of_a_queue_is_given_back(gateway, backend):
    """Q-06: 20 bodies of 2 MB wait and expire; the next round does not add to them."""
    gw = gateway(gated(backend, max_bytes="64MiB", max_wait="400ms"))
    go, (first,) = hold(gw, backend)

    def round_of_waiters():
        waiters = [FakeClient(gw.port) for _ in range(20)]
        for one in waiters:
            one.send_chat("x" * 2_000_000)
        for one in waiters:
            assert one.read_response().status == 503
            one.close()
        return gw.rss_bytes()

    sizes = [round_of_waiters() for _ in range(4)]
    assert sizes[-1] - sizes[0] < 24 << 20, sizes
    go.set()
    assert first.read_response().status == 200
    assert_at_rest(gw, backend, calls=81, attempts=1)


def test_a_full_queue_falls_back(gateway, backends):
    """Q-06: another candidate that has room answers at once."""
    one, two = backends(), backends()
    gw = gateway(gated(one, max_entries=1, max_wait="10s"), fallback=two, attempts=2)
    go, (first,) = hold(gw, one)
    waiter = gw.client()
    waiter.send_chat()
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 1)
    answer = gw.chat()
    assert answer.status == 200 and answer.header("x-flashgate-profile") == "spare"
    go.set()
    assert [c.read_response().status for c in (first, waiter)] == [200, 200]
    assert_at_rest(gw, one, two, calls=3, attempts=[2, 1], outcome="ok")


def test_the_deadline_of_a_request_holds_in_the_queue(gateway, backend):
    """Q-01: expired work is never sent, whatever max_wait says."""
    gw = gateway(gated(backend, max_wait="10s"))
    go, (first,) = hold(gw, backend)
    started = time.monotonic()
    answer = gw.chat(headers=[("x-flashgate-timeout", "0.3")])
    assert answer.status in (503, 504) and 0.2 < time.monotonic() - started < 1
    go.set()
    assert first.read_response().status == 200
    assert_at_rest(gw, backend, calls=2, attempts=1)


@pytest.mark.parametrize("end", ["500", "reset", "timeout", "abort", "in-band", "garbage"])
def test_every_end_of_a_call_gives_its_slot_back(gateway, backend, end):
    """Q-01 with RL-05: limit 1, then the next request gets 200."""
    gw = gateway(profile(backend, max_concurrency=1, timeouts={"first_byte": "200ms"},
                         queue={"max_wait": "2s"}))
    backend.then(*{"500": [wire.error_response(500)], "reset": [Rst()], "timeout": [Stall(5)],
                   "abort": [Stall(5)], "garbage": [b"\0\0\0\r\n\r\n", Rst()],
                   "in-band": [wire.stream_200(wire.delta("a"), wire.event(
                       {"error": {"message": "x"}}))]}[end])
    if end == "abort":
        client = gw.client()
        client.send_chat()
        backend.wait_requests(1)
        client.reset()
    else:
        gw.chat(stream=end == "in-band")
    started = time.monotonic()
    assert gw.chat().status == 200
    assert time.monotonic() - started < 1
    assert_at_rest(gw, backend, calls=2, attempts=2)


def test_waiting_for_one_backend_does_not_hold_up_another(gateway, backends):
    """Q-01 with Q-07."""
    one, two = backends(), backends()
    gw = gateway({"version": 1, "default": "a", "routing": {"retry": {"attempts": 1}},
                  "profiles": {"a": gated(one, max_wait="10s"), "b": profile(two, model="m2")}})
    go, (first,) = hold(gw, one)
    waiters = [gw.client() for _ in range(20)]
    for client in waiters:
        client.send_chat(model="a")
    wait_until(lambda: gw.metric("flashgate_queue_entries") == 20)
    started = time.monotonic()
    for _ in range(10):
        assert gw.chat(model="b").status == 200
    assert time.monotonic() - started < 1
    go.set()
    assert [c.read_response().status for c in [first, *waiters]] == [200] * 21
    assert_at_rest(gw, one, two, calls=31, outcome="ok")

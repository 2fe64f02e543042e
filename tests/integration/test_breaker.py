"""The breaker: what counts, one probe when half-open, recovery, and never a stampede."""
import threading
import time

import pytest

from support import wire
from support.backend import Rst, Sleep, Stall, WaitFor, refused_port
from support.client import FakeClient
from support.gateway import profile, wait_until
from support.oracle import assert_at_rest

COOL = 0.4
FAIL = wire.error_response(500)


def guarded(backend, failures=3, cooldown="400ms", **more):
    return profile(backend, breaker={"consecutive_failures": failures, "cooldown": cooldown,
                                     "failure_ratio": "100%", "min_samples": 100000}, **more)


def is_open(answer):
    return answer.status == 503 and answer.error()["code"] == "no_backend_available"


def open_breaker(gw, backend, failures=3):
    """Fail until the breaker is open; the backend then answers 200 again."""
    backend.always(FAIL)
    for _ in range(failures):
        assert gw.chat().status == 500
    backend.always(wire.json_200())
    assert is_open(gw.chat())
    backend.forget()


def wait_for_probe(gw, seconds=3.0):
    """Ask until the breaker lets a request through; returns that answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = gw.chat()
        if not is_open(answer):
            return answer
        time.sleep(0.02)
    raise AssertionError("the breaker stayed open")


def test_half_open_admits_exactly_one_probe(gateway, backend):
    """CB-01: 100 requests at the end of the cool-down, the backend hangs."""
    gw = gateway(guarded(backend))
    open_breaker(gw, backend)
    go = threading.Event()
    backend.always(WaitFor(go), wire.json_200("probe"))
    time.sleep(2 * COOL + 0.1)
    answers, lock = [], threading.Lock()
    barrier = threading.Barrier(100)

    def one():
        with FakeClient(gw.port) as client:
            barrier.wait()
            answer = client.chat()
            with lock:
                answers.append(answer)

    threads = [threading.Thread(target=one) for _ in range(100)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(answers) >= 99, 5)
    time.sleep(0.1)
    assert len(backend.requests) == 1 and all(map(is_open, answers)), len(backend.requests)
    go.set()
    for thread in threads:
        thread.join()
    assert sorted(a.status for a in answers) == [200] + [503] * 99
    assert gw.chat().status == 200, "a good probe must close the breaker"
    lines = gw.wait_lines(105)
    assert len(lines) == 105
    gw.mark()
    assert_at_rest(gw, backend)


@pytest.mark.parametrize("status", [400, 401, 404, 422, 413])
def test_faults_of_clients_do_not_open_the_breaker(gateway, backend, status):
    """CB-02."""
    gw = gateway(guarded(backend))
    backend.always(wire.error_response(status, "too long"))
    for _ in range(20):
        assert not is_open(gw.chat())
    assert len(backend.requests) == 20
    backend.always(wire.json_200())
    assert_at_rest(gw, backend, calls=20)


def test_a_clients_fault_is_no_result_of_a_probe(gateway, backend):
    """CB-03: half-open keeps waiting for a real result."""
    gw = gateway(guarded(backend))
    open_breaker(gw, backend)
    backend.always(wire.error_response(400))
    assert wait_for_probe(gw).status == 400
    assert wait_for_probe(gw).status == 400
    backend.always(FAIL)
    assert wait_for_probe(gw).status == 500
    assert is_open(gw.chat()), "400 had closed the breaker"
    backend.always(wire.json_200())
    assert wait_for_probe(gw).status == 200
    assert gw.chat().status == 200
    gw.mark()
    assert_at_rest(gw, backend)


def test_a_clients_fault_does_not_reset_the_count(gateway, backend):
    """CB-03: 500, 400, 500, 400, 500."""
    gw = gateway(guarded(backend))
    for status in (500, 400, 500, 400, 500):
        backend.then(wire.error_response(status))
        assert gw.chat().status == status
    assert is_open(gw.chat())
    assert_at_rest(gw, backend, calls=6, attempts=5, plain=False)


def test_a_success_resets_the_count(gateway, backend):
    """CB-03, the control."""
    gw = gateway(guarded(backend))
    for status in (500, 500, 200, 500, 500, 200):
        backend.then(wire.error_response(500) if status == 500 else wire.json_200())
        assert gw.chat().status == status
    assert_at_rest(gw, backend, calls=6, attempts=6)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_aborts_of_clients_are_neutral(gateway, backend, stream):
    """CB-04: 20 before the first byte."""
    gw = gateway(guarded(backend, failures=2))
    backend.always(Stall(10))
    for n in range(20):
        client = FakeClient(gw.port)
        client.send_chat(stream=stream)
        backend.wait_requests(n + 1)
        client.reset()
    lines = gw.wait_lines(20)
    assert {line["outcome"] for line in lines} == {"client_closed"}, lines
    backend.always(wire.json_200())
    assert_at_rest(gw, backend, calls=20)


def test_our_own_deadline_is_neutral(gateway, backend):
    """CB-04: the client asked for less time than the backend may take."""
    gw = gateway(guarded(backend, failures=2))
    backend.always(Stall(10))
    for _ in range(4):
        assert gw.chat(headers=[("x-flashgate-timeout", "0.15")]).status == 504
    backend.always(wire.json_200())
    assert_at_rest(gw, backend, calls=4, attempts=4)


@pytest.mark.parametrize("kind", ["first-byte", "reset", "refused", "garbage"])
def test_faults_of_the_backend_open_the_breaker(gateway, backend, kind):
    """CB-04, the control: these count."""
    steps = {"first-byte": [Stall(5)], "reset": [Rst()], "refused": [],
             "garbage": [b"nonsense\r\n\r\n", Rst()]}[kind]
    target = f"http://127.0.0.1:{refused_port()}/v1" if kind == "refused" else backend
    gw = gateway(guarded(target, cooldown="20s", timeouts={"first_byte": "150ms"}))
    backend.always(*steps)
    assert [gw.chat().status for _ in range(3)] == [504 if kind == "first-byte" else 502] * 3
    assert is_open(gw.chat())
    assert gw.metric("flashgate_breaker_state") > 0
    assert_at_rest(gw, calls=4)


def test_a_probe_that_the_client_aborts_frees_its_slot(gateway, backend):
    """CB-05."""
    gw = gateway(guarded(backend))
    open_breaker(gw, backend)
    backend.always(Stall(10))
    time.sleep(2 * COOL + 0.1)
    client = gw.client()
    client.send_chat()
    backend.wait_requests(1)
    client.reset()
    backend.always(wire.json_200())
    assert wait_for_probe(gw, 2).status == 200
    gw.mark()
    assert_at_rest(gw, backend)


def test_a_probe_that_never_returns_is_a_failure_and_not_the_end(gateway, backend):
    """CB-05: it ends by its time-out, and the next cool-down has its own probe."""
    gw = gateway(guarded(backend, timeouts={"first_byte": "300ms"}))
    open_breaker(gw, backend)
    backend.always(Stall(10))
    assert wait_for_probe(gw).status == 504
    assert is_open(gw.chat())
    backend.always(wire.json_200())
    assert wait_for_probe(gw).status == 200
    gw.mark()
    assert_at_rest(gw, backend)


@pytest.mark.parametrize("late", [200, 500])
def test_results_from_before_the_opening_do_not_count(gateway, backend, late):
    """CB-05: epochs; a late result decides nothing while the probe is out."""
    gw = gateway(guarded(backend))
    old_go, probe_go = threading.Event(), threading.Event()
    backend.then(WaitFor(old_go), wire.json_200("old") if late == 200 else FAIL)
    old = gw.client()
    old.send_chat()
    backend.wait_requests(1)
    open_breaker(gw, backend)
    backend.always(WaitFor(probe_go), wire.json_200("probe"))
    time.sleep(2 * COOL + 0.1)
    probe = gw.client()
    probe.send_chat()
    backend.wait_requests(1)
    old_go.set()
    assert old.read_response().status == late
    assert is_open(gw.chat()), "the late result changed a half-open breaker"
    probe_go.set()
    assert probe.read_response().status == 200
    backend.always(wire.json_200())
    assert gw.chat().status == 200
    gw.mark()
    assert_at_rest(gw, backend)


def test_all_backends_open_fails_fast_and_recovers(gateway, backends):
    """CB-06: 503 with Retry-After, no busy loop, recovery within a cool-down."""
    one, two = backends(), backends()
    gw = gateway(guarded(one, cooldown="700ms"),
                 fallback=guarded(two, cooldown="700ms", model="m2"), attempts=2)
    for backend in (one, two):
        backend.always(FAIL)
    wait_until(lambda: is_open(gw.chat()), 3)
    seen = len(one.requests) + len(two.requests)
    cpu = gw.cpu_seconds()
    for _ in range(5):
        started = time.monotonic()
        answer = gw.chat()
        assert is_open(answer) and time.monotonic() - started < 0.2
        assert 1 <= int(answer.header("retry-after")) <= 2
    assert len(one.requests) + len(two.requests) == seen
    assert gw.cpu_seconds() - cpu < 0.2
    for backend in (one, two):
        backend.always(wire.json_200())
    assert wait_for_probe(gw, 2.5).status == 200
    lines = gw.new_lines()
    assert "no_backend" in {line["outcome"] for line in lines}, lines
    gw.mark()
    assert_at_rest(gw, one, two)


def test_an_open_breaker_sends_requests_to_the_fallback(gateway, backends):
    """CB-06: as long as one candidate is closed nobody is refused, and no attempt is wasted."""
    one, two = backends(), backends()
    gw = gateway(guarded(one, cooldown="20s"), fallback=two, attempts=2)
    one.always(FAIL)
    for _ in range(8):
        assert gw.chat().status == 200
    assert len(one.requests) == 3 and len(two.requests) == 8
    lines = assert_at_rest(gw, one, two, calls=8, plain=False, outcome="ok")
    assert lines[-1]["attempts"] == 1, lines[-1]


IN_200 = {
    "in-band-error": ([wire.stream_200(wire.delta("a"), wire.event({"error": {"message": "x"}}))],
                      True),
    "error-first": ([wire.stream_200(wire.event({"error": {"message": "x", "code": 500}}))], True),
    "truncated": ([wire.stream_200(wire.delta("a"))], True),
    "cut": ([wire.H200 + wire.chunk(wire.delta("a")), Sleep(0.01), Rst()], True),
    "empty-stream": ([wire.stream_200()], True),
    "empty-whole": ([wire.json_response(200, b"")], False),
    "short-whole": ([wire.json_200().replace(b"Content-Length: ", b"Content-Length: 9"), Rst()],
                    False),
    "error-in-whole": ([wire.json_response(200, {"error": {"message": "x", "code": 500}})], False),
}


@pytest.mark.parametrize("kind", list(IN_200))
def test_a_failure_inside_a_200_counts(gateway, backend, kind):
    """CB-10: at the end of the stream, and nothing counts as success at header time."""
    steps, stream = IN_200[kind]
    gw = gateway(guarded(backend, cooldown="20s"))
    backend.always(*steps)
    for _ in range(3):
        assert not (gw.chat(stream=stream).status == 503 and len(backend.requests) < 3)
    gw.wait_lines(3)
    assert is_open(gw.chat()), f"{len(backend.requests)} requests and still closed"
    lines = assert_at_rest(gw, backend, calls=4, attempts=3, plain=False)
    assert all(line["outcome"] != "ok" for line in lines), lines


def test_rate_limits_of_the_backend_do_not_open_the_breaker(gateway, backend):
    """CB-11: 20 × 429 without a hint."""
    gw = gateway(guarded(backend))
    backend.always(wire.error_response(429))
    for _ in range(20):
        answer = gw.chat()
        assert answer.status in (429, 503) and not is_open(answer)
    backend.always(wire.json_200())
    time.sleep(0.3)
    gw.mark()
    answer = wait_for_probe(gw, 3)
    assert answer.status in (200, 429)


def test_a_hint_of_the_backend_is_a_cool_down(gateway, backend):
    """CB-11: asked again when the hint is over, not before, and not by the breaker's rules."""
    gw = gateway(guarded(backend, cooldown="20s"))
    backend.then(wire.error_response(429, headers=[("Retry-After", "1")]))
    assert gw.chat().status == 429
    answer = gw.chat()
    assert answer.status in (429, 503) and answer.header("retry-after") == "1", answer.head
    assert len(backend.requests) == 1
    time.sleep(1.1)
    assert gw.chat().status == 200
    gw.mark()
    assert_at_rest(gw, backend)


def test_slow_successes_are_not_failures(gateway, backend):
    """CB-11."""
    gw = gateway(guarded(backend, failures=2))
    backend.always(Sleep(0.1), wire.json_200())
    for _ in range(6):
        assert gw.chat().status == 200
    assert_at_rest(gw, backend, calls=6, outcome="ok")


def test_a_failure_ratio_opens_with_enough_samples_only(gateway, backend):
    """CB-02 and CB-10: 50 % of at least ten."""
    gw = gateway(profile(backend, breaker={"consecutive_failures": 1000, "failure_ratio": "50%",
                                           "min_samples": 10, "cooldown": "20s"}))
    opened_at = None
    for n in range(30):
        backend.always(FAIL if n % 3 else wire.json_200())
        if is_open(gw.chat()):
            opened_at = n
            break
    assert opened_at is not None and 10 <= opened_at <= 12, opened_at


def test_the_breaker_of_one_profile_leaves_others_alone(gateway, backends):
    """CB-02: per backend and model."""
    one, two = backends(), backends()
    gw = gateway({"version": 1, "default": "a", "profiles": {
        "a": guarded(one, cooldown="20s"), "b": guarded(two, model="m2")},
        "routing": {"retry": {"attempts": 1}}})
    one.always(FAIL)
    for _ in range(4):
        gw.chat(model="a")
    assert is_open(gw.chat(model="a"))
    assert gw.chat(model="b").status == 200
    assert gw.metric("flashgate_breaker_state") > 0

"""What must hold after every test, whatever was done to the gateway."""
import time

from . import wire


def settle(check, seconds=3.0):
    """Poll `check` (which returns None when all is well, else a complaint)."""
    end = time.monotonic() + seconds
    complaint = check()
    while complaint and time.monotonic() < end:
        time.sleep(0.01)
        complaint = check()
    return complaint


def assert_at_rest(gw, *backends, calls=None, attempts=None, plain=True, outcome=None):
    """The common oracle. Returns the call-log lines since the last mark, and marks again.

    calls     how many client requests were made since the mark: exactly so many log lines
    attempts  requests that reached the backends (sum, or one number per backend)
    plain     also serve a plain request through the first backend, which must be healthy
    outcome   expected `outcome` of every line
    """
    assert gw.alive(), "the gateway died: " + "\n".join(gw.stderr[-20:])

    def gauges():
        found = gw.metrics()
        for name in ("flashgate_in_flight", "flashgate_queue_entries", "flashgate_queue_bytes"):
            total = sum(value for _, value in found.get(name, []))
            if total:
                return f"{name} is {total}"
        busy = [c.number for b in backends for c in b.busy_connections()]
        return f"upstream connections {busy} still busy" if busy else None

    complaint = settle(gauges)
    assert not complaint, complaint
    faults = [f for b in backends for f in b.faults]
    assert not faults, f"fake backend: {faults}"
    if attempts is not None:
        if isinstance(attempts, int):
            got = sum(len(b.requests) for b in backends)
        else:
            got, attempts = [len(b.requests) for b in backends], list(attempts)
        assert got == attempts, f"attempts: {got}, expected {attempts}"
    lines = gw.new_lines()
    if calls is not None:
        settle(lambda: None if len(gw.new_lines()) >= calls else "few")
        lines = gw.new_lines()
        assert len(lines) == calls, f"{len(lines)} log lines for {calls} calls: {lines}"
    for line in lines:
        assert isinstance(line["outcome"], str) and line["outcome"], line
        assert line["request_id"], line
        if outcome is not None:
            assert line["outcome"] == outcome, line
    if plain and backends:
        one = backends[0]
        with one.lock:
            held, one.scripts = one.scripts, [[wire.json_200("plain")]]
        answer = gw.chat()
        assert answer.status == 200 and answer.complete, (answer.status, answer.body[:300])
        gw.wait_lines(len(lines) + 1)
        with one.lock:
            one.scripts = held
    gw.mark()
    return lines

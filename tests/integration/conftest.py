"""Fixtures of the integration tests: `gateway`, `backend`, `backends`."""
import pytest

from support.backend import FakeBackend
from support.gateway import Gateway, config


@pytest.fixture
def backends():
    """Factory of FakeBackends that are closed after the test."""
    made = []

    def make(*args, **more):
        made.append(FakeBackend(*args, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def backend(backends):
    """One FakeBackend; answers 200 unless told otherwise."""
    return backends()


@pytest.fixture
def gateway(tmp_path, backends):
    """Factory: gateway(backend | configuration, **see support.gateway.config) -> Gateway.

    Every gateway must still be alive after the test and end with exit code 0 on SIGTERM.
    """
    made = []

    def make(first=None, env=None, args=(), wait=True, listen="127.0.0.1:0", **more):
        whole = first if isinstance(first, str) or (
            isinstance(first, dict) and "profiles" in first) else config(first, **more)
        made.append(Gateway(whole, tmp_path / f"gw{len(made)}", env, args, wait,
                            listen))
        return made[-1]

    yield make
    complaints = []
    for one in made:
        died = one.process.poll()
        try:
            code = one.terminate()
        except AssertionError as error:
            complaints.append(str(error))
            continue
        if died is None and code != 0:
            complaints.append(f"exit code {code} on SIGTERM: " + "\n".join(one.stderr[-20:]))
        elif died not in (None, 0) and not getattr(one, "may_die", False):
            complaints.append(f"died with {died}: " + "\n".join(one.stderr[-20:]))
    assert not complaints, complaints

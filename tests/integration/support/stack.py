"""Stack: one gateway before one echo backend, kept for all tests of a module.

The echo answers a chat completion whose content tells what the backend was asked, so that an
answer that belongs to another request shows. Call `fresh()` at the start of each test.
"""
import contextlib
import json

from . import wire
from .backend import FakeBackend
from .client import FakeClient
from .gateway import Gateway, config
from .oracle import assert_at_rest


def echo(request):
    """The script of the echo backend."""
    told = json.dumps({"method": request.method, "target": request.target,
                       "body": request.body.decode("latin-1")})
    answer = wire.json_200(told)
    if request.method == "HEAD":
        answer = answer[:answer.index(b"\r\n\r\n") + 4]
    return [answer]


def echoed(answer):
    """What the echo backend was asked: {method, target, body}."""
    assert answer.status == 200 and answer.complete, (answer.status, answer.body[:300])
    return json.loads(answer.json()["choices"][0]["message"]["content"])


class Stack:
    """`gw` and `backend`, and the oracle over both."""

    def __init__(self, folder, settings=None, **more):
        self.backend = FakeBackend(echo)
        whole = settings(self.backend) if settings else config(self.backend, **more)
        self.gw = Gateway(whole, folder)

    def fresh(self):
        self.backend.forget()
        self.backend.always(echo)
        self.backend.faults.clear()
        self.gw.mark()
        return self

    def bodies(self):
        return [r.body for r in self.backend.requests]

    def raw(self, data, seconds=5.0):
        """Sends bytes and reads until the gateway closes; returns (responses, how it ended)."""
        with FakeClient(self.gw.port, seconds=seconds) as client:
            with contextlib.suppress(OSError):
                client.send(data)
            answers = []
            while True:
                answer = client.read_head(seconds)
                if answer is None:
                    return answers, client.end, client.buffer
                answers.append(client.read_body(answer, seconds))

    def at_rest(self, **more):
        return assert_at_rest(self.gw, self.backend, **more)

    def close(self):
        code = self.gw.terminate()
        self.backend.close()
        assert code == 0, f"exit code {code}: " + "\n".join(self.gw.stderr[-20:])


@contextlib.contextmanager
def open_stack(folder, settings=None, **more):
    """For a module-wide fixture."""
    one = Stack(folder, settings, **more)
    try:
        yield one
    finally:
        one.close()

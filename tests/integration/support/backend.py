"""FakeBackend: a server that records every byte it is sent and answers by a script.

A script is a list of steps, or a function of the request that returns such a list. Steps:
bytes (sent in one call), Sleep, Fin, Rst, Stall, Segments, WaitFor, ReadBody, or a function of the
connection. After the last step the connection reads its next request (keep-alive).
Scripts given with `then()` serve the next requests one by one; `always()` sets what follows them.
"""
import select
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field

from . import wire

HANG_UP = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@dataclass
class Sleep:
    """Wait; ends the script early when the peer goes away (if watch)."""
    seconds: float
    watch: bool = True


@dataclass
class Fin:
    """Orderly close."""


@dataclass
class Rst:
    """Close with a reset (SO_LINGER 0)."""


@dataclass
class Stall:
    """Say nothing until the peer goes away."""
    seconds: float = 60.0


@dataclass
class Segments:
    """Send each part in a TCP segment of its own, `pause` seconds apart."""
    parts: list
    pause: float = 0.0005


@dataclass
class WaitFor:
    """Wait until the test sets the threading.Event (or the peer goes away)."""
    event: threading.Event
    seconds: float = 20.0


@dataclass
class ReadBody:
    """Read `size` more bytes of a body that was left unread by Early; None reads it all."""
    size: int = None


@dataclass
class Early:
    """Run the steps as soon as the head has been read; the body is not read by itself."""
    steps: list


class PeerGone(Exception):
    """The peer closed or reset while the script was running."""


@dataclass
class Request:
    """One request as it came. `body` is de-framed; `complete` is False when it was cut."""
    head: bytes
    method: str
    target: str
    headers: list
    connection: object
    started: float
    body: bytes = b""
    complete: bool = False
    framing: str = "none"
    finished: float = 0.0
    answered: float = 0.0

    def header(self, name):
        """The value of a field, None if absent; several are joined with ', '."""
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return ", ".join(found) if found else None

    def json(self):
        import json
        return json.loads(self.body)


@dataclass
class Connection:
    """One accepted connection: what was sent on it, and how and when the peer left."""
    sock: socket.socket
    number: int
    opened: float
    requests: list = field(default_factory=list)
    bytes_sent: int = 0
    busy: bool = False
    closed_at: float = 0.0
    closed_how: str = ""
    buffer: bytes = b""

    def is_open(self):
        return not self.closed_how

    def note_close(self, how):
        if not self.closed_how:
            self.closed_at, self.closed_how = time.monotonic(), how

    def poll(self, mask, seconds):
        poller = select.poll()
        poller.register(self.sock, mask | HANG_UP)
        got = poller.poll(max(0, int(seconds * 1000)))
        return got[0][1] if got else 0

    def check_peer(self, seconds=0.0):
        """Wait up to `seconds` and raise PeerGone if the peer closes or resets meanwhile."""
        flags = self.poll(0, seconds)
        if flags & HANG_UP:
            self.note_close("rst" if flags & (select.POLLERR | select.POLLHUP) else "fin")
            raise PeerGone

    def send(self, data, seconds=60.0):
        """Send all, noticing a peer that leaves while we are held up by back-pressure."""
        view, end = memoryview(data), time.monotonic() + seconds
        while len(view):
            flags = self.poll(select.POLLOUT, end - time.monotonic())
            if flags & (select.POLLERR | select.POLLHUP):
                self.note_close("rst")
                raise PeerGone
            if not flags & select.POLLOUT:
                self.check_peer()
                if time.monotonic() >= end:
                    self.note_close("send_timeout")
                    raise PeerGone
                continue
            try:
                sent = self.sock.send(view[:1 << 16])
            except (ssl.SSLWantWriteError, BlockingIOError):
                continue
            except OSError:
                self.note_close("rst")
                raise PeerGone from None
            self.bytes_sent += sent
            view = view[sent:]

    def recv(self, seconds=60.0):
        """More bytes, or PeerGone."""
        try:
            self.sock.settimeout(seconds)
            data = self.sock.recv(1 << 16)
        except TimeoutError:
            self.note_close("recv_timeout")
            raise PeerGone from None
        except OSError:
            self.note_close("rst")
            raise PeerGone from None
        if not data:
            self.note_close("fin")
            raise PeerGone
        return data

    def take(self, size):
        while len(self.buffer) < size:
            self.buffer += self.recv()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def take_line(self):
        while b"\r\n" not in self.buffer:
            self.buffer += self.recv()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def close(self, how):
        if how == "rst" and not isinstance(self.sock, ssl.SSLSocket):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == "rst":
            socket.socket.setsockopt(self.sock, socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", 1, 0))
        self.note_close("self_" + how)
        self.sock.close()


class FakeBackend:
    """Starts on a free loopback port at construction; `close()` ends all its threads."""

    def __init__(self, default=None, tls=None, answer_probes=True, port=0, backlog=512):
        self.default = default if default is not None else [wire.json_200()]
        self.tls = tls
        self.answer_probes = answer_probes
        self.scripts = []
        self.requests, self.probes, self.connections, self.faults = [], [], [], []
        self.on_connect = None
        self.lock = threading.Condition()
        self.closing = False
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    # What a test says.

    def always(self, *steps):
        """Answer every request (after those of `then`) with these steps or this function."""
        with self.lock:
            self.default = steps[0] if len(steps) == 1 and not isinstance(
                steps[0], (bytes, bytearray)) and not _is_step(steps[0]) else list(steps)
        return self

    def then(self, *steps):
        """Queue a script for one more request."""
        with self.lock:
            one = steps[0] if len(steps) == 1 and (callable(steps[0]) or
                                                   isinstance(steps[0], (list, Early))) else None
            self.scripts.append(one if one is not None else list(steps))
        return self

    # What a test asks.

    @property
    def origin(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self):
        """The base_url for a profile."""
        return self.origin + "/v1"

    def open_connections(self):
        return [c for c in self.connections if c.is_open()]

    def busy_connections(self):
        """Connections on which a request came whose script has not ended, peer still there."""
        return [c for c in self.connections if c.busy and c.is_open()]

    def wait_requests(self, count, seconds=5.0):
        """Wait until `count` requests have come whole (heads with Early); return them."""
        with self.lock:
            if not self.lock.wait_for(lambda: len(self.requests) >= count, seconds):
                raise AssertionError(f"{len(self.requests)} of {count} requests reached backend")
            return list(self.requests)

    def wait_closed(self, connection, seconds=5.0):
        """Wait until the peer left `connection`; return the monotonic time of it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if connection.closed_how:
                return connection.closed_at
            time.sleep(0.002)
        raise AssertionError(f"connection {connection.number} still open after {seconds} s")

    def forget(self):
        """Drop recorded requests (connections stay)."""
        with self.lock:
            self.requests.clear()

    def close(self):
        self.closing = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for connection in list(self.connections):
            connection.note_close("shutdown")
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def refuse(self):
        """Stop listening, so that connects are refused; open connections are closed."""
        self.close()

    # Machinery.

    def _accept(self):
        while not self.closing:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            try:
                sock = self.tls.wrap_socket(sock, server_side=True)
            except (OSError, ssl.SSLError) as error:
                self.faults.append(repr(error))
                return
        with self.lock:
            connection = Connection(sock, len(self.connections), time.monotonic())
            self.connections.append(connection)
        try:
            if self.on_connect:
                self.on_connect(connection)
            while connection.is_open() and not self.closing:
                self._one_exchange(connection)
        except PeerGone:
            pass
        except Exception as error:  # A bug of a script must not pass unseen.
            if not self.closing:
                self.faults.append(repr(error))
        finally:
            connection.busy = False
            connection.note_close("self_end")
            sock.close()

    def _one_exchange(self, connection):
        while b"\r\n\r\n" not in connection.buffer:
            connection.buffer += connection.recv(seconds=300.0)
        connection.busy = True
        request = self._read_head(connection)
        if self._is_probe(request):
            self.probes.append(request)
            self._read_body(connection, request)
            connection.send(wire.json_response(200, {"object": "list", "data": [
                {"id": "m", "object": "model"}]}))
            connection.busy = False
            return
        with self.lock:
            script = self.scripts.pop(0) if self.scripts else self.default
        connection.requests.append(request)
        early = isinstance(script, Early)
        if not early:
            self._read_body(connection, request)
        with self.lock:
            self.requests.append(request)
            self.lock.notify_all()
        if callable(script):
            script = script(request)
        steps = script.steps if early else script
        if isinstance(steps, (bytes, bytearray)):
            steps = [steps]
        for step in steps:
            self._run(connection, request, step)
            if not connection.is_open():
                return
        request.answered = time.monotonic()
        connection.busy = False

    def _is_probe(self, request):
        return (self.answer_probes and request.method == "GET"
                and request.target.split("?")[0].rstrip("/").endswith(("/models", "/health")))

    def _read_head(self, connection):
        head, connection.buffer = connection.buffer.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        method, target, _ = lines[0].decode("latin-1").split(" ", 2)
        headers = []
        for line in lines[1:]:
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        return Request(head + b"\r\n\r\n", method, target, headers, connection, time.monotonic())

    def _read_body(self, connection, request):
        coding = request.header("transfer-encoding")
        length = request.header("content-length")
        if coding and coding.lower() == "chunked":
            request.framing, parts = "chunked", []
            while True:
                size = int(connection.take_line().split(b";")[0], 16)
                if size == 0:
                    while connection.take_line():
                        pass
                    break
                parts.append(connection.take(size))
                connection.take(2)
            request.body = b"".join(parts)
        elif length:
            request.framing = "length"
            request.body = connection.take(int(length))
        request.complete = True
        request.finished = time.monotonic()

    def _run(self, connection, request, step):
        if isinstance(step, (bytes, bytearray)):
            connection.send(step)
        elif isinstance(step, Sleep):
            if step.watch:
                connection.check_peer(step.seconds)
            else:
                time.sleep(step.seconds)
        elif isinstance(step, Segments):
            for part in step.parts:
                connection.send(part)
                if step.pause:
                    time.sleep(step.pause)
        elif isinstance(step, Fin):
            connection.close("fin")
        elif isinstance(step, Rst):
            connection.close("rst")
        elif isinstance(step, Stall):
            connection.check_peer(step.seconds)
        elif isinstance(step, WaitFor):
            end = time.monotonic() + step.seconds
            while not step.event.wait(0.005) and time.monotonic() < end:
                connection.check_peer()
        elif isinstance(step, ReadBody):
            if step.size is None:
                self._read_body(connection, request)
            else:
                request.body += connection.take(step.size)
        elif callable(step):
            step(connection)
        else:
            raise TypeError(f"unknown step {step!r}")


def _is_step(thing):
    return isinstance(thing, (Sleep, Fin, Rst, Stall, Segments, WaitFor, ReadBody))


def refused_port():
    """A loopback port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BlackHole:
    """A listener whose queue is full: a SYN to it is dropped, so that connects never end."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            try:
                filler.connect(("127.0.0.1", self.port))
            except BlockingIOError:
                pass
            self.fillers.append(filler)

    def close(self):
        for sock in [*self.fillers, self.listener]:
            sock.close()

"""FakeClient: a raw socket that sends exactly the bytes it is told and reads with a strict parser.

The reader accepts only what RFC 9112 lets a server send; anything else raises BadFraming. A body
that is cut is not an exception: `Response.complete` is False and `Response.ended` says how.
"""
import json
import socket
import struct
import time
from dataclasses import dataclass, field

from . import sse, wire


class BadFraming(AssertionError):
    """The gateway sent something that is not a well-formed HTTP/1.1 response."""


@dataclass
class Response:
    """One response as the client saw it. `pieces` are (monotonic time, body bytes) as read."""
    status: int
    headers: list
    head: bytes
    body: bytes = b""
    framing: str = "none"
    complete: bool = False
    ended: str = ""
    interim: list = field(default_factory=list)
    pieces: list = field(default_factory=list)
    head_at: float = 0.0
    done_at: float = 0.0
    trailers: list = field(default_factory=list)
    reading: object = None
    deadline: float = 0.0

    def header(self, name):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return ", ".join(found) if found else None

    def json(self):
        return json.loads(self.body)

    def error(self):
        """The `error` object; asserts the shape that the OpenAI API promises."""
        assert (self.header("content-type") or "").startswith("application/json"), self.head
        error = self.json()["error"]
        assert isinstance(error["message"], str) and error["message"], error
        assert isinstance(error["type"], str) and error["type"], error
        assert "param" in error and (error["code"] is None or isinstance(error["code"], str)), error
        return error

    def sse(self):
        return sse.decode(self.body)

    def closes(self):
        return "close" in (self.header("connection") or "").lower()


class FakeClient:
    """A connection to the gateway. Usable as a context manager; a test may hold many."""

    def __init__(self, port, host="127.0.0.1", seconds=10.0, receive_buffer=None):
        self.seconds = seconds
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(seconds)
        self.sock.connect((host, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.end = ""
        self.methods = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Sending.

    def send(self, *parts, pause=0.0):
        """Send bytes; numbers among the parts are pauses in seconds."""
        for part in parts:
            if isinstance(part, (int, float)):
                time.sleep(part)
            else:
                self.sock.sendall(part)
                if pause:
                    time.sleep(pause)
        return self

    def send_request(self, body=None, method="POST", **more):
        """Send one request built by wire.request."""
        self.methods.append(method)
        return self.send(wire.request(body, method, **more))

    def send_chat(self, content="hi", stream=False, headers=(), path="/v1/chat/completions",
                  **members):
        return self.send_request(wire.chat_body(content, stream, **members), headers=headers,
                                 path=path)

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    # Reading.

    def _more(self, deadline):
        if self.end:
            return False
        self.sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = self.sock.recv(1 << 16)
        except TimeoutError:
            self.end = "timeout"
            return False
        except OSError:
            self.end = "rst"
            return False
        if not data:
            self.end = "eof"
            return False
        self.buffer += data
        return True

    def _line(self, deadline):
        while b"\r\n" not in self.buffer:
            if not self._more(deadline):
                return None
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        if b"\n" in line or b"\r" in line:
            raise BadFraming(f"bare line end in {line[:100]!r}")
        return line

    def read_head(self, seconds=None, interim=None):
        """Read a head, skipping 1xx. None if the connection ended before a whole head came."""
        deadline = time.monotonic() + (seconds or self.seconds)
        interim = [] if interim is None else interim
        while True:
            while b"\r\n\r\n" not in self.buffer:
                if not self._more(deadline):
                    return None
            head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            response = _parse_head(head + b"\r\n\r\n")
            if response.status >= 200 or response.status == 101:
                response.interim = interim
                response.head_at = time.monotonic()
                method = self.methods.pop(0) if self.methods else "POST"
                response.framing = _framing(response, method)
                return response
            interim.append(response.status)

    def read_response(self, seconds=None):
        """Read a whole response (head and body). Raises when not even a head came."""
        response = self.read_head(seconds)
        assert response is not None, f"no response head ({self.end}): {self.buffer[:200]!r}"
        return self.read_body(response, seconds)

    def read_body(self, response, seconds=None, limit=None):
        """Read the body; `limit` stops after about so many body bytes (complete stays False)."""
        deadline = time.monotonic() + (seconds or self.seconds)
        for piece in self._body_pieces(response, deadline):
            response.pieces.append((time.monotonic(), piece))
            if limit is not None and sum(len(p) for _, p in response.pieces) >= limit:
                break
        response.body = b"".join(p for _, p in response.pieces)
        response.ended = self.end
        response.done_at = time.monotonic()
        return response

    def iterate(self, response, seconds=None):
        """Yield body bytes as they come; sets complete at the end."""
        deadline = time.monotonic() + (seconds or self.seconds)
        for piece in self._body_pieces(response, deadline):
            response.pieces.append((time.monotonic(), piece))
            response.body += piece
            yield piece

    def _body_pieces(self, response, deadline):
        """The pieces still to come. One generator a response: a reader may stop and go on."""
        response.deadline = deadline
        if response.reading is None:
            response.reading = self._all_pieces(response)
        while True:
            try:
                yield next(response.reading)
            except StopIteration:
                return

    def _all_pieces(self, response):
        if response.framing == "none":
            response.complete = True
        elif response.framing == "chunked":
            yield from self._chunks(response)
        elif response.framing == "close":
            while True:
                if self.buffer:
                    piece, self.buffer = self.buffer, b""
                    yield piece
                elif not self._more(response.deadline):
                    response.complete = self.end == "eof"
                    return
        else:
            left = int(response.framing)
            while left:
                if not self.buffer and not self._more(response.deadline):
                    return
                piece, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(piece)
                yield piece
            response.complete = True

    def _chunks(self, response):
        while True:
            line = self._line(response.deadline)
            if line is None:
                return
            digits = line.split(b";", 1)[0]
            if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
                raise BadFraming(f"chunk size {line[:100]!r}")
            left = int(digits, 16)
            if left == 0:
                while True:
                    line = self._line(response.deadline)
                    if line is None:
                        return
                    if line == b"":
                        response.complete = True
                        return
                    response.trailers.append(line)
            while left:
                if not self.buffer and not self._more(response.deadline):
                    return
                piece, self.buffer = self.buffer[:left], self.buffer[left:]
                left -= len(piece)
                yield piece
            while len(self.buffer) < 2:
                if not self._more(response.deadline):
                    return
            if self.buffer[:2] != b"\r\n":
                raise BadFraming(f"after a chunk came {self.buffer[:20]!r}")
            self.buffer = self.buffer[2:]

    def read_event(self, response, seconds=None):
        """Read until one more event (or comment block) ended; returns all decoded so far."""
        before = len(sse.decode(response.body).events)
        for _ in self.iterate(response, seconds):
            got = sse.decode(_whole_utf8(response.body))
            if len(got.events) > before:
                return got
        return sse.decode(response.body)

    def wait_end(self, seconds=5.0):
        """Read until the gateway ends the connection; 'eof', 'rst' or 'timeout'. Bytes are kept."""
        deadline = time.monotonic() + seconds
        while self._more(deadline):
            pass
        return self.end

    def is_silent(self, seconds=0.1):
        """True if within `seconds` neither bytes nor an end arrive."""
        if self.buffer or self.end:
            return False
        self.sock.settimeout(seconds)
        try:
            self.buffer += self.sock.recv(1 << 16)
            return False
        except TimeoutError:
            return True
        except OSError:
            return False

    def exchange(self, body=None, seconds=None, **more):
        """Send one request and read its response."""
        self.send_request(body, **more)
        return self.read_response(seconds)

    def chat(self, content="hi", stream=False, headers=(), seconds=None, **members):
        """Send one chat request and read its response."""
        self.send_chat(content, stream, headers, **members)
        return self.read_response(seconds)


def _whole_utf8(body):
    """`body` without a character that is cut at its end."""
    for back in range(1, min(4, len(body)) + 1):
        byte = body[-back]
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return body[:-back] if need > back else body
        if byte < 0x80:
            break
    return body


def _parse_head(head):
    lines = head[:-4].split(b"\r\n")
    parts = lines[0].split(b" ", 2)
    if len(parts) < 2 or parts[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not (
            len(parts[1]) == 3 and parts[1].isdigit()):
        raise BadFraming(f"status line {lines[0][:100]!r}")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.strip() != name or b"\n" in line or b"\r" in line:
            raise BadFraming(f"header line {line[:100]!r}")
        headers.append((name.decode("latin-1"), value.strip(b" \t").decode("latin-1")))
    return Response(int(parts[1]), headers, head)


def _framing(response, method):
    coding, length = response.header("transfer-encoding"), response.header("content-length")
    if coding is not None and length is not None:
        raise BadFraming("both Transfer-Encoding and Content-Length")
    if method == "HEAD" or response.status in (204, 304):
        return "none"
    if coding is not None:
        if coding.lower() != "chunked":
            raise BadFraming(f"Transfer-Encoding {coding!r}")
        return "chunked"
    if length is not None:
        if not length.isdigit():
            raise BadFraming(f"Content-Length {length!r}")
        return length
    return "close"

"""Event-stream decoder after the WHATWG text, strict and complete, for what the client received."""
import json
from dataclasses import dataclass, field


@dataclass
class Event:
    """One dispatched event. `raw` holds its bytes with the blank line."""
    data: str
    type: str = "message"
    id: str = ""
    raw: bytes = b""

    def json(self):
        return json.loads(self.data)


@dataclass
class Decoded:
    """The events of a body, the comments, and the bytes after the last blank line."""
    events: list = field(default_factory=list)
    comments: list = field(default_factory=list)
    retries: list = field(default_factory=list)
    tail: bytes = b""

    def data(self):
        return [e.data for e in self.events]

    def objects(self):
        """JSON of every event but [DONE]; raises when one is not JSON."""
        return [e.json() for e in self.events if e.data != "[DONE]"]

    def text(self, index=0):
        """All content of one choice, joined."""
        out = []
        for thing in self.objects():
            for choice in thing.get("choices") or []:
                if choice.get("index", 0) == index:
                    out.append((choice.get("delta") or {}).get("content") or "")
        return "".join(out)

    def errors(self):
        return [o["error"] for o in self.objects() if isinstance(o, dict) and o.get("error")]

    def finish_reasons(self):
        return [c["finish_reason"] for o in self.objects() for c in o.get("choices") or []
                if c.get("finish_reason")]

    def usages(self):
        return [o["usage"] for o in self.objects() if o.get("usage")]

    def done(self):
        """How many [DONE] came."""
        return sum(1 for e in self.events if e.data == "[DONE]")


def split_lines(body):
    """[(line, line end)], where a line ends by CR LF, LF or CR; the last end may be b''."""
    lines, start, i = [], 0, 0
    while i < len(body):
        if body[i] == 10 or body[i] == 13:
            stop = i + 2 if body[i:i + 2] == b"\r\n" else i + 1
            lines.append((body[start:i], body[i:stop]))
            start = i = stop
        else:
            i += 1
    if start < len(body):
        lines.append((body[start:], b""))
    return lines


def decode(body):
    """Decode a whole body. Invalid UTF-8 raises: a client must never see a cut character."""
    out = Decoded()
    skip = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    data, kind, last_id, raw = [], "", "", body[:skip]
    for line, end in split_lines(body[skip:]):
        raw += line + end
        if end == b"":
            break
        text = line.decode("utf-8")
        if text == "":
            if data:
                out.events.append(Event("\n".join(data), kind or "message", last_id, raw))
            data, kind, raw = [], "", b""
            continue
        name, colon, value = text.partition(":")
        if name == "" and colon:
            out.comments.append(value)
            if raw == line + end:
                raw = b""
            continue
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value
        elif name == "retry" and value.isdigit():
            out.retries.append(int(value))
    out.tail = raw
    return out

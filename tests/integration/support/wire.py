"""Bytes of HTTP and of OpenAI streams. Everything returns bytes and can be joined with `+`.

A whole good stream is `H200 + chunk(ROLE) + chunk(delta("a")) + chunk(FIN()) + chunk(DONE) + EOC`,
or shorter `stream_200(ROLE, delta("a"), FIN(), DONE)`.
"""
import json
import random

H200 = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n")
EOC = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def event(payload, end=b"\n\n"):
    """One event whose data is `payload`: an object (made compact JSON), text or bytes."""
    if isinstance(payload, str):
        payload = payload.encode()
    elif not isinstance(payload, bytes):
        payload = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    return b"data: " + payload + end


def chunk_object(delta=None, finish=None, index=0, **top):
    """A chat.completion.chunk as a dict; `top` adds or replaces members of the chunk."""
    whole = {"id": "c1", "object": "chat.completion.chunk", "model": "m",
             "choices": [{"index": index, "delta": delta or {}, "finish_reason": finish}]}
    whole.update(top)
    return whole


def delta(text, index=0, **top):
    """The event Δ(text)."""
    return event(chunk_object({"content": text}, None, index, **top))


ROLE = event(chunk_object({"role": "assistant", "content": ""}))


def FIN(reason="stop", index=0):
    """The event that carries a finish_reason."""
    return event(chunk_object({}, reason, index))


def usage_object(prompt=7, completion=3, cached=0):
    return {"prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached}}


def usage_event(prompt=7, completion=3, cached=0):
    """USAGE with numbers of one's own."""
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [],
                  "usage": usage_object(prompt, completion, cached)})


USAGE = usage_event()
USAGE_TOKENS = (7, 3)


def chunk(data):
    """One HTTP chunk around `data`."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunked(*pieces):
    """Each piece in a chunk of its own, then the last chunk."""
    return b"".join(chunk(p) for p in pieces) + EOC


def stream_200(*events):
    """H200, every event in its own chunk, EOC."""
    return H200 + chunked(*events)


def good_stream(*texts):
    """A complete good stream with the given deltas (default: one)."""
    return stream_200(ROLE, *[delta(t) for t in (texts or ("hello",))], FIN(), USAGE, DONE)


def response(status, body=b"", headers=(), reason="X", length=True):
    """A response with Content-Length (unless length is False; an int replaces the number)."""
    if isinstance(body, str):
        body = body.encode()
    head = [f"HTTP/1.1 {status} {reason}".encode()]
    for name, value in dict(headers).items() if isinstance(headers, dict) else headers:
        head.append(f"{name}: {value}".encode("latin-1"))
    if length is not False:
        number = len(body) if length is True else length
        head.append(b"Content-Length: %d" % number)
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def json_response(status, payload, headers=()):
    """An application/json response of any status."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    body = payload if isinstance(payload, (bytes, str)) else json.dumps(payload)
    return response(status, body, [("Content-Type", "application/json"), *pairs])


def completion(text="hello", prompt=7, tokens=3, finish="stop", **top):
    """A chat.completion object."""
    whole = {"id": "c1", "object": "chat.completion", "model": "m",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                          "finish_reason": finish}],
             "usage": usage_object(prompt, tokens)}
    whole.update(top)
    return whole


def json_200(text="hello", headers=(), **top):
    """A good non-streaming chat answer."""
    return json_response(200, completion(text, **top), headers)


def error_response(status, message="no", kind="server_error", code=None, headers=()):
    """An error answer in the shape of the OpenAI API."""
    return json_response(status, {"error": {"message": message, "type": kind, "param": None,
                                            "code": code}}, headers)


def request(body=None, method="POST", path="/v1/chat/completions", headers=(), host="gateway.test",
            version="1.1", length=True):
    """The bytes of a request. `body` may be bytes, text or an object (sent as JSON)."""
    if body is None:
        payload = b""
    elif isinstance(body, bytes):
        payload = body
    elif isinstance(body, str):
        payload = body.encode()
    else:
        payload = json.dumps(body, ensure_ascii=False).encode()
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    names = {n.lower() for n, _ in pairs}
    head = [f"{method} {path} HTTP/{version}".encode()]
    if "host" not in names and host is not None:
        head.append(b"Host: " + host.encode())
    if body is not None and "content-type" not in names:
        head.append(b"Content-Type: application/json")
    for name, value in pairs:
        value = value if isinstance(value, bytes) else str(value).encode("latin-1")
        head.append(name.encode() + b": " + value)
    if length and body is not None and not names & {"content-length", "transfer-encoding"}:
        head.append(b"Content-Length: %d" % len(payload))
    return b"\r\n".join(head) + b"\r\n\r\n" + payload


def chat_body(content="hi", stream=False, model="m", **more):
    """The object of a chat request; stream False leaves the member out."""
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    if stream:
        body["stream"] = True
    body.update(more)
    return body


def random_splits(data, pieces, seed):
    """`data` cut at random places into about `pieces` parts; the same seed, the same cuts."""
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(1, len(data)) for _ in range(pieces - 1))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)]) if b > a]


def bytes_of(data, step=1):
    """`data` in parts of `step` bytes."""
    return [data[i:i + step] for i in range(0, len(data), step)]

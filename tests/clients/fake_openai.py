"""A scripted backend that speaks the OpenAI wire: chat (tools, JSON schema, streams), completions,
embeddings, responses, models. It records each request and when each client left.

Run it: `fake_openai.py [--port 0] [--models flash,other]` prints its address on one line.
Tests steer it through paths of its own, never through a gateway:
  POST /_script   a list of steps; each answers the next request instead of the normal code:
                  {"status": 500, "headers": {...}, "body": {...}, "delay_s": 0, "cut_after": 3}
                  (`cut_after` without a status breaks a stream after that many pieces).
  POST /_pace     {"piece_delay_s": 0.05, "first_delay_s": 0, "pieces": 200}: how streams flow.
  GET  /_requests what came in: path, headers, body, and `left_at` (time.time()) of a departure.
  POST /_reset    forgets the three above.
"""

import argparse
import asyncio
import base64
import json
import struct
import time

BODY_BYTES_MAX = 64 << 20
LOOK_SECONDS = 0.005
DEFAULT_REPLY = "你好,世界!Hello from the fake backend. 🙂 再见。"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}


class Departed(Exception):
    """The client closed its connection before the answer was complete."""


def tokens_in(text):
    return max(1, len(text.encode()) // 4)


def pieces_of(text, size=2):
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def text_of(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def instance_of(schema, depth=0):
    """Some value that satisfies a JSON schema of the kinds that SDKs generate."""
    if depth > 16:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return instance_of(schema[union][0], depth + 1)
    kind = schema.get("type", "object")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: instance_of(part, depth + 1) for name, part in fields.items()}
    if kind == "array":
        return [instance_of(schema.get("items", {"type": "string"}), depth + 1)]
    return {"string": "北京", "integer": 7, "number": 1.5, "boolean": True, "null": None}[kind]


class Connection:
    """One client connection: reads requests, notices a departure, writes answers."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    async def read_request(self):
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
            return None
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {}
        for line in lines[1:]:
            if ":" in line:
                name, value = line.split(":", 1)
                headers[name.strip().lower()] = value.strip()
        body = await self.read_body(headers)
        return method, target.split("?")[0], headers, body

    async def read_body(self, headers):
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while True:
                size = int((await self.reader.readline()).split(b";")[0], 16)
                if size == 0:
                    while (await self.reader.readline()).strip():
                        pass
                    return body
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
        length = int(headers.get("content-length", 0))
        if length > BODY_BYTES_MAX:
            raise ConnectionError("body too large")
        return await self.reader.readexactly(length)

    async def departure(self):
        """Returns when the peer is gone. It looks instead of reading: a next request stays."""
        while not self.reader.at_eof() and self.reader.exception() is None:
            await asyncio.sleep(LOOK_SECONDS)

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def send(self, status, value, headers=None):
        body = json.dumps(value, ensure_ascii=False).encode()
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        fields = {"content-type": "application/json", "content-length": len(body)}
        fields.update(headers or {})
        lines += [f"{name}: {field}" for name, field in fields.items()]
        await self.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def begin_stream(self):
        await self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    async def send_event(self, value, name=None):
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        text = f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n"
        raw = text.encode()
        # Cut inside a character where there is one, so that a client that decodes each read
        # alone shows itself.
        wide = next((i for i, byte in enumerate(raw) if byte >= 0xC0), None)
        cuts = [raw] if wide is None else [raw[: wide + 1], raw[wide + 1 :]]
        for part in cuts:
            await self.write(b"%x\r\n%b\r\n" % (len(part), part))
            if len(cuts) > 1:
                await asyncio.sleep(0)

    async def end_stream(self):
        await self.write(b"0\r\n\r\n")


class Fake:
    def __init__(self, models):
        self.models = models
        self.serial = 0
        self.reset()

    def reset(self):
        self.script = []
        self.requests = []
        self.pace = {"piece_delay_s": 0.0, "first_delay_s": 0.0, "pieces": 0}

    async def serve(self, reader, writer):
        connection = Connection(reader, writer)
        try:
            while (request := await connection.read_request()) is not None:
                if request[1].startswith("/_"):
                    await self.control(connection, *request)
                else:
                    await self.watch(connection, *request)
        except (Departed, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def control(self, connection, method, target, headers, body):
        if target == "/_script":
            self.script += json.loads(body)
        elif target == "/_pace":
            self.pace.update(json.loads(body))
        elif target == "/_reset":
            self.reset()
        answer = {"requests": self.requests} if target == "/_requests" else {}
        await connection.send(200, answer)

    async def watch(self, connection, method, target, headers, body):
        """Answers one request while looking out for the client's departure."""
        record = {
            "method": method,
            "path": target,
            "headers": headers,
            "raw": body.decode("utf-8", "replace"),
            "at": time.time(),
            "left_at": None,
        }
        self.requests.append(record)
        answer = asyncio.ensure_future(self.answer(connection, method, target, body))
        departure = asyncio.ensure_future(connection.departure())
        done, _ = await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
        if answer not in done:
            record["left_at"] = time.time()
            answer.cancel()
            raise Departed()
        departure.cancel()
        try:
            answer.result()
        except ConnectionError:
            record["left_at"] = time.time()
            raise

    async def answer(self, connection, method, target, raw):
        step = self.script.pop(0) if self.script else {}
        if step.get("delay_s"):
            await asyncio.sleep(step["delay_s"])
        if "status" in step:
            body = step.get("body") or {
                "error": {"message": "scripted", "type": "server_error", "code": None}
            }
            return await connection.send(step["status"], body, step.get("headers"))
        if method == "GET" and target == "/v1/models":
            cards = [{"id": name, "object": "model", "owned_by": "fake"} for name in self.models]
            return await connection.send(200, {"object": "list", "data": cards})
        if method == "GET" and target in ("/health", "/v1/health"):
            return await connection.send(200, {"status": "ok"})
        actions = {
            "/v1/chat/completions": self.chat,
            "/v1/completions": self.completions,
            "/v1/embeddings": self.embeddings,
            "/v1/responses": self.responses,
        }
        if target not in actions or method != "POST":
            return await self.refuse(connection, 404, f"no such path: {method} {target}")
        try:
            request = json.loads(raw)
        except ValueError as error:
            return await self.refuse(connection, 400, f"not JSON: {error}")
        if request.get("temperature") is not None and request["temperature"] > 2:
            message = "temperature must be at most 2"
            return await self.refuse(connection, 400, message, "temperature")
        self.serial += 1
        return await actions[target](connection, request, step)

    async def refuse(self, connection, status, message, param=None):
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
        await connection.send(status, {"error": error})

    def reply_to(self, request):
        """What the assistant says: (text, tool_call or None)."""
        last = (request.get("messages") or [{}])[-1]
        text = text_of(last.get("content"))
        if last.get("role") == "tool":
            return f"工具的结果:{text}", None
        tools = request.get("tools") or []
        if tools and request.get("tool_choice") != "none":
            function = tools[0]["function"]
            arguments = instance_of(function.get("parameters", {}))
            return "", (function["name"], json.dumps(arguments, ensure_ascii=False))
        form = request.get("response_format") or {}
        if form.get("type") == "json_schema":
            value = instance_of(form["json_schema"]["schema"])
            return json.dumps(value, ensure_ascii=False), None
        if form.get("type") == "json_object":
            return '{"ok": true}', None
        if text.startswith("echo:"):
            return text[len("echo:") :], None
        return DEFAULT_REPLY, None

    def pieces(self, text):
        if self.pace["pieces"]:
            return ["字"] * self.pace["pieces"]
        return pieces_of(text)

    async def chat(self, connection, request, step):
        text, call = self.reply_to(request)
        prompt = sum(tokens_in(text_of(m.get("content"))) for m in request.get("messages", []))
        pieces = self.pieces(call[1] if call else text)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": len(pieces),
            "total_tokens": prompt + len(pieces),
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
        }
        head = {"id": f"chatcmpl-{self.serial}", "created": 1, "model": request.get("model")}
        finish = "tool_calls" if call else "stop"
        if not request.get("stream"):
            await asyncio.sleep(self.pace["first_delay_s"])
            message = {"role": "assistant", "content": text or None, "refusal": None}
            if call:
                function = {"name": call[0], "arguments": call[1]}
                message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
            head.update(object="chat.completion", choices=[choice], usage=usage)
            return await connection.send(200, head)
        await self.stream_chat(connection, request, step, head, pieces, call, finish, usage)

    async def stream_chat(self, connection, request, step, head, pieces, call, finish, usage):
        asked = (request.get("stream_options") or {}).get("include_usage")
        head["object"] = "chat.completion.chunk"

        async def send(delta, reason=None):
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            blank = {"usage": None} if asked else {}
            await connection.send_event({**head, "choices": [choice], **blank})

        await connection.begin_stream()
        await asyncio.sleep(self.pace["first_delay_s"])
        await send({"role": "assistant", "content": None if call else ""})
        if call:
            opening = {"name": call[0], "arguments": ""}
            part = {"index": 0, "id": "call_1", "type": "function", "function": opening}
            await send({"tool_calls": [part]})
        for count, piece in enumerate(pieces):
            if step.get("cut_after") == count:
                connection.writer.transport.abort()
                return
            if self.pace["piece_delay_s"]:
                await asyncio.sleep(self.pace["piece_delay_s"])
            if call:
                await send({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
            else:
                await send({"content": piece})
        await send({}, finish)
        if asked:
            await connection.send_event({**head, "choices": [], "usage": usage})
        await connection.send_event("[DONE]")
        await connection.end_stream()

    async def completions(self, connection, request, step):
        text = f"{request.get('prompt')} 然后"
        usage = {"prompt_tokens": tokens_in(str(request.get("prompt"))), "completion_tokens": 2}
        usage["total_tokens"] = usage["prompt_tokens"] + 2
        head = {"id": f"cmpl-{self.serial}", "object": "text_completion", "created": 1}
        head["model"] = request.get("model")
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
        if not request.get("stream"):
            return await connection.send(200, {**head, "choices": [choice], "usage": usage})
        await connection.begin_stream()
        for piece in pieces_of(text):
            part = {**choice, "text": piece, "finish_reason": None}
            await connection.send_event({**head, "choices": [part]})
        await connection.send_event({**head, "choices": [{**choice, "text": ""}]})
        if (request.get("stream_options") or {}).get("include_usage"):
            await connection.send_event({**head, "choices": [], "usage": usage})
        await connection.send_event("[DONE]")
        await connection.end_stream()

    async def embeddings(self, connection, request, step):
        inputs = request["input"] if isinstance(request["input"], list) else [request["input"]]
        if inputs and isinstance(inputs[0], int):
            inputs = [inputs]
        data = []
        for index, text in enumerate(inputs):
            size = len(text.encode()) if isinstance(text, str) else len(text)
            vector = [float(size), float(index), 0.5, -0.25]
            if request.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack("<4f", *vector)).decode()
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": len(inputs), "total_tokens": len(inputs)}
        answer = {"object": "list", "data": data, "model": request.get("model"), "usage": usage}
        await connection.send(200, answer)

    async def responses(self, connection, request, step):
        usage = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}
        usage["input_tokens_details"] = {"cached_tokens": 0}
        usage["output_tokens_details"] = {"reasoning_tokens": 0}
        part = {"type": "output_text", "text": DEFAULT_REPLY, "annotations": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        item["content"] = [part]
        whole = {
            "id": f"resp_{self.serial}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": request.get("model"),
            "output": [item],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }
        if not request.get("stream"):
            return await connection.send(200, whole)
        await connection.begin_stream()
        serial = 0

        async def send(kind, **fields):
            nonlocal serial
            event = {"type": kind, "sequence_number": serial, **fields}
            await connection.send_event(event, kind)
            serial += 1

        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        opened = {**whole, "status": "in_progress", "output": [], "usage": None}
        await send("response.created", response=opened)
        await send("response.output_item.added", output_index=0, item={**item, "content": []})
        await send("response.content_part.added", **place, part={**part, "text": ""})
        for piece in pieces_of(DEFAULT_REPLY):
            await send("response.output_text.delta", **place, delta=piece, logprobs=[])
        await send("response.output_text.done", **place, text=DEFAULT_REPLY, logprobs=[])
        await send("response.content_part.done", **place, part=part)
        await send("response.output_item.done", output_index=0, item=item)
        await send("response.completed", response=whole)
        await connection.end_stream()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--models", default="flash")
    options = parser.parse_args()
    fake = Fake(options.models.split(","))
    server = await asyncio.start_server(fake.serve, "127.0.0.1", options.port, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

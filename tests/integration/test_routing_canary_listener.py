"""No client chooses an upstream: every URL-like thing in a request, and a listener that must stay
silent. The gateway connects to its configured backend and nowhere else."""
import json
import socket
import threading

import pytest

from support import wire
from support.client import FakeClient
from support.stack import open_stack


class CanaryListener:
    """Counts whoever connects."""

    def __init__(self):
        self.visits = 0
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(50)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.visits += 1
            sock.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("canary")) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


@pytest.fixture
def canary():
    one = CanaryListener()
    yield one
    one.close()


FIELDS = ["base_url", "api_base", "api_base_url", "url", "endpoint", "proxy", "host", "upstream",
          "target", "webhook", "callback_url", "custom_host", "azure_endpoint", "redirect_uri",
          "aws_bedrock_runtime_endpoint", "extra_body", "profile", "backend", "$ref", "file_url"]


def test_the_canary_itself_sees_a_visit(canary):
    """A canary that can't die warns of nothing."""
    socket.create_connection(("127.0.0.1", canary.port)).close()
    for _ in range(200):
        if canary.visits:
            return
        threading.Event().wait(0.01)
    raise AssertionError("no visit seen")


@pytest.mark.parametrize("place", ["top", "metadata", "message", "tool", "deep", "schema",
                                   "options"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/v1/responses",
                                  "/v1/messages", "/v1/images/generations", "/v1/files"])
def test_no_field_of_a_body_is_an_upstream(stack, canary, place, path):
    """No client-chosen upstream: each field passes on as data."""
    urls = {name: canary.url + "/v1" for name in FIELDS}
    body = wire.chat_body()
    if place == "top":
        body.update(urls)
    elif place == "metadata":
        body["metadata"] = urls
    elif place == "message":
        body["messages"] = [{"role": "user", **urls, "content": [
            {"type": "image_url", "image_url": {"url": canary.url + "/a.png"}, **urls},
            {"type": "input_file", "file_url": canary.url}]}]
    elif place == "tool":
        body["tools"] = [{"type": "mcp", "server_url": canary.url, **urls}]
    elif place == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {
            "name": "n", "schema": {"$ref": canary.url + "/schema.json", "$id": canary.url}}}
    elif place == "options":
        body["litellm_params"] = body["extra_body"] = body["stream_options"] = urls
    else:
        body["x"] = [{"a": [{"b": urls}]}]
    answer = stack.gw.request(body, path=path)
    assert answer.status == 200, answer.body
    assert json.loads(stack.backend.requests[0].body)["model"] == "m"
    stack.at_rest(calls=1, attempts=1)
    assert canary.visits == 0


HEADERS = ["X-Upstream-Url", "X-Portkey-Custom-Host", "x-flashgate-profile", "x-flashgate-base-url",
           "x-flashgate-upstream", "X-Forwarded-Host", "Forwarded", "X-Original-URL",
           "X-Rewrite-URL",
           "Host", "Origin", "Referer", "X-Host", "X-Proxy", "Proxy", "Http-Proxy", "X-Target",
           "Destination", "X-Api-Base", "Location", "Helicone-Target-Url", "X-Callback-Url"]


def test_no_header_is_an_upstream(stack, canary):
    """No client-chosen upstream: by any field that some gateway once obeyed."""
    at = f"127.0.0.1:{canary.port}"
    for name in HEADERS:
        value = at if name == "Host" else canary.url
        answer = stack.gw.request(wire.chat_body(), headers=[(name, value)])
        assert answer.status == 200, (name, answer.body)
    for request in stack.backend.requests:
        assert request.header("host") == f"127.0.0.1:{stack.backend.port}"
    stack.at_rest(calls=len(HEADERS), attempts=len(HEADERS))
    assert canary.visits == 0


TARGETS = ["{url}/v1/chat/completions", "http://u:p@127.0.0.1:{port}/v1/chat/completions",
           "/v1/chat/completions?base_url={url}&url={url}",
           "//127.0.0.1:{port}/v1/chat/completions",
           "/{url}/v1/chat/completions", "/v1/{url}/chat/completions", "/v1/@127.0.0.1:{port}/",
           "/v1//127.0.0.1:{port}/x", "http:127.0.0.1:{port}/v1/models", "127.0.0.1:{port}",
           "/v1/proxy/{url}", "{url}", "/v1/..//127.0.0.1:{port}/", "http://[::1]:{port}/v1/x"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["POST", "GET", "CONNECT"])
def test_no_target_is_an_upstream(stack, canary, target, method):
    """No client-chosen upstream: absolute-form, authority-form, and URLs inside paths."""
    target = target.format(url=canary.url, port=canary.port)
    answer = stack.gw.request(wire.chat_body() if method == "POST" else None, method=method,
                              path=target)
    assert answer.status in (200, 400, 404, 405), answer.body
    for request in stack.backend.requests:
        assert request.header("host") == f"127.0.0.1:{stack.backend.port}"
        assert request.target.startswith("/v1/"), request.target
    stack.at_rest(calls=1)
    assert canary.visits == 0


@pytest.mark.parametrize("model", ["http://127.0.0.1:{port}/v1", "m@http://127.0.0.1:{port}",
                                   "../../{port}", "openai/http://127.0.0.1:{port}"])
def test_no_model_name_is_an_upstream(stack, canary, model):
    """No client-chosen upstream: a name is only looked up."""
    answer = stack.gw.chat(model=model.format(port=canary.port))
    assert answer.status == 404
    stack.at_rest(calls=1, attempts=0)
    assert canary.visits == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_a_backend_is_not_followed(stack, canary, status):
    """Redirects once leaked provider keys: neither we nor the client go there."""
    stack.backend.then(wire.response(status, b"", [("Location", canary.url + "/v1/x")]))
    answer = stack.gw.chat()
    assert answer.status == 502 and answer.header("location") is None, answer.head
    assert canary.url.encode() not in answer.body
    stack.at_rest(calls=1, attempts=1)
    assert canary.visits == 0


def test_a_form_field_is_no_upstream(stack, canary):
    """No client-chosen upstream: multipart."""
    parts = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (
        name.encode(), canary.url.encode()) for name in FIELDS)
    body = parts + b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n'
    with FakeClient(stack.gw.port) as client:
        answer = client.exchange(body, path="/v1/audio/transcriptions", headers=[
            ("Content-Type", "multipart/form-data; boundary=b")])
    assert answer.status == 200 and stack.backend.requests[0].body == body
    stack.at_rest(calls=1, attempts=1)
    assert canary.visits == 0

"""Usage in streams: counted once, asked for always, shown only to those who asked."""
import pytest

from support import wire
from support.oracle import assert_at_rest

ASK = {"stream_options": {"include_usage": True}}
U = wire.usage_object()


def plain_chunk(text, **top):
    return wire.event(wire.chunk_object({"content": text}, **top))


@pytest.mark.parametrize("last", [
    {"choices": [], "usage": U}, {"usage": U}, {"choices": None, "usage": U},
    {"object": "chat.completion.chunk", "usage": U, "choices": [], "x": {"usage": {"a": 1}}},
], ids=["empty", "absent", "null", "nested-decoy"])
def test_a_usage_chunk_needs_no_choices(gateway, backend, last):
    """SSE-11."""
    gw = gateway(backend)
    events = [wire.ROLE, plain_chunk("a"), wire.FIN(), wire.event(last), wire.DONE]
    backend.then(wire.stream_200(*events))
    answer = gw.chat(stream=True, **ASK)
    assert answer.complete and answer.body == b"".join(events)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3)
    assert line["token_source"] == "usage"


@pytest.mark.parametrize("kind", ["null-but-last", "growing"])
def test_usage_on_every_chunk_is_counted_once(gateway, backend, kind):
    """SSE-11: the last one that is not null."""
    gw = gateway(backend)
    if kind == "growing":
        events = [plain_chunk(t, usage=wire.usage_object(7, n + 1)) for n, t in enumerate("abc")]
        events.append(wire.event(wire.chunk_object({}, "stop", usage=wire.usage_object(7, 3))))
    else:
        events = [plain_chunk(t, usage=None) for t in "abc"]
        events += [wire.event(wire.chunk_object({}, "stop", usage=None)), wire.USAGE]
    events.append(wire.DONE)
    backend.then(wire.stream_200(*events))
    answer = gw.chat(stream=True, **ASK)
    assert answer.body == b"".join(events)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3), line
    assert gw.metric("flashgate_tokens_total", type="output") == 6  # with the plain request's 3


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}},
                                     {"stream_options": None}, {"stream_options": {}},
                                     {"stream_options": {"vendor": 1}}],
                         ids=["absent", "false", "null", "empty", "other-member"])
def test_usage_is_asked_for_and_hidden_from_a_client_that_did_not_ask(gateway, backend, options):
    """SSE-12."""
    gw = gateway(backend)
    backend.then(wire.stream_200(wire.ROLE, plain_chunk("a", usage=None),
                                 plain_chunk("b", usage=None),
                                 wire.event(wire.chunk_object({}, "stop", usage=None)), wire.USAGE,
                                 wire.DONE))
    answer = gw.chat(stream=True, **options)
    sent = backend.requests[0].json()
    assert sent["stream_options"]["include_usage"] is True, sent
    assert sent["stream_options"].get("vendor") == (options.get("stream_options") or {}).get(
        "vendor")
    got = answer.sse()
    assert answer.complete and got.text() == "ab" and got.done() == 1
    assert not got.usages() and all(o["choices"] for o in got.objects()), answer.body
    assert all("usage" not in o for o in got.objects()), answer.body
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3)


def test_a_client_that_asked_gets_usage_exactly_once(gateway, backend):
    """SSE-12."""
    gw = gateway(backend)
    backend.then(wire.good_stream("a"))
    answer = gw.chat(stream=True, **ASK)
    assert answer.sse().usages() == [U]
    assert backend.requests[0].json()["stream_options"] == {"include_usage": True}
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_usage_is_not_asked_for_without_streaming(gateway, backend):
    """SSE-12: `stream_options` is an error of the API when `stream` is false."""
    gw = gateway(backend)
    assert gw.chat().json()["usage"] == U
    assert "stream_options" not in backend.requests[0].json()
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3)


def test_stripping_works_with_any_segments_and_line_ends(gateway, backend):
    """SSE-12 with SSE-01 and SSE-06."""
    gw = gateway(backend)
    for end in (b"\n", b"\r\n", b"\r"):
        flow = b"".join((wire.ROLE, plain_chunk("a"), wire.FIN(), wire.USAGE, wire.DONE))
        flow = flow.replace(b"\n", end)
        backend.then(wire.stream_200(*wire.bytes_of(flow, 7)))
        got = gw.chat(stream=True).sse()
        assert got.text() == "a" and got.done() == 1 and not got.usages(), (end, got)
        assert all(o["choices"] for o in got.objects()), (end, got)
    assert_at_rest(gw, backend, calls=3, outcome="ok")


def test_content_in_the_chunk_that_carries_usage_is_kept(gateway, backend):
    """SSE-12: some backends put usage into the last chunk with a choice."""
    gw = gateway(backend)
    backend.then(wire.stream_200(plain_chunk("a"), wire.event(wire.chunk_object(
        {"content": "b"}, "stop", usage=U)), wire.DONE))
    got = gw.chat(stream=True).sse()
    assert got.text() == "ab" and got.finish_reasons() == ["stop"] and got.done() == 1
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert (line["input_tokens"], line["output_tokens"]) == (7, 3)


def test_a_backend_that_refuses_the_option_is_remembered(gateway, backend):
    """SSE-12: asked again without it, and not asked with it a second time."""
    gw = gateway(backend, attempts=3)

    def answer(request):
        if "stream_options" in request.json():
            return [wire.error_response(400, "Unrecognized request argument supplied: "
                                        "stream_options", "invalid_request_error")]
        return [wire.stream_200(wire.ROLE, plain_chunk("a"), wire.FIN(), wire.DONE)]

    backend.always(answer)
    for _ in range(2):
        got = gw.chat(stream=True)
        assert got.status == 200 and got.sse().text() == "a", got.body
    asked = ["stream_options" in r.json() for r in backend.requests]
    assert asked == [True, False, False], asked
    assert_at_rest(gw, backend, calls=2, outcome="ok")


def test_a_stream_without_usage_is_counted_by_other_means(gateway, backend):
    """SSE-12: token_source says that the number is not the backend's."""
    gw = gateway(backend)
    backend.then(wire.stream_200(wire.ROLE, plain_chunk("hello there"), wire.FIN(), wire.DONE))
    gw.chat(stream=True)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert line["token_source"] in ("estimate", "tokenizer") and line["output_tokens"] > 0, line


def test_cached_and_reasoning_tokens_are_logged(gateway, backend):
    """SSE-11."""
    gw = gateway(backend)
    rich = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 12}}
    backend.then(wire.stream_200(plain_chunk("a"), wire.FIN(),
                                 wire.event({"choices": [], "usage": rich}), wire.DONE))
    gw.chat(stream=True)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert [line[k] for k in ("input_tokens", "output_tokens", "cached_tokens",
                              "reasoning_tokens")] == [100, 20, 64, 12]


@pytest.mark.parametrize("usage", [
    {"prompt_tokens": -1, "completion_tokens": 3}, {"prompt_tokens": 1e300}, "many", [1],
    {"prompt_tokens": "7", "completion_tokens": None}, {"completion_tokens": 2 ** 64}],
    ids=["negative", "huge-float", "text", "array", "text-number", "2^64"])
def test_nonsense_in_usage_does_no_harm(gateway, backend, usage):
    """SSE-11: outside bytes; relayed to the client that asked, never a negative or absurd count."""
    gw = gateway(backend)
    events = [plain_chunk("a"), wire.FIN(), wire.event({"choices": [], "usage": usage}), wire.DONE]
    backend.then(wire.stream_200(*events))
    assert gw.chat(stream=True, **ASK).body == b"".join(events)
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    for name in ("input_tokens", "output_tokens"):
        assert 0 <= line[name] <= 1e12, line

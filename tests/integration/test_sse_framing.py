"""The relay and its inspector must not depend on line ends, segments or unknown fields."""
import threading

import pytest

from support import sse, wire
from support.backend import Segments, Sleep, WaitFor
from support.oracle import assert_at_rest

ASK = {"stream_options": {"include_usage": True}}
STREAM = [wire.ROLE, wire.delta("one "), wire.delta("two "), wire.delta("three"), wire.FIN("stop"),
          wire.USAGE, wire.DONE]
WHOLE = b"".join(STREAM)


def check_good(answer, line, text="one two three", tokens=wire.USAGE_TOKENS):
    """A complete stream of `text`, seen in full by the inspector."""
    assert answer.status == 200 and answer.complete, answer
    got = answer.sse()
    assert got.text() == text and got.finish_reasons() == ["stop"] and got.done() == 1
    assert not got.errors() and got.tail == b""
    assert line["outcome"] == "ok" and line["status"] == 200, line
    assert line["finish_reason"] == "stop", line
    assert (line["input_tokens"], line["output_tokens"]) == tokens, line
    assert line["token_source"] == "usage", line


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut-after-each-cr"])
def test_line_ends_of_all_three_kinds_are_understood(gateway, backend, end, cut):
    """SSE-01."""
    gw = gateway(backend)
    events = [e.replace(b"\n", end) for e in STREAM]
    if cut:
        parts = []
        for one in events:
            parts += [wire.chunk(p) for p in one.replace(b"\r", b"\r\0").split(b"\0") if p]
        backend.then(wire.H200, Segments(parts), wire.EOC)
    else:
        backend.then(wire.H200 + wire.chunked(*events))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    check_good(answer, line)
    assert answer.body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") == WHOLE


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_an_event_is_relayed_before_the_next_one_comes(gateway, backend, end):
    """SSE-01: without delay, also when the event ends with a CR that might be half of CR LF."""
    gw = gateway(backend)
    go = threading.Event()
    first, last = [b"".join(part).replace(b"\n", end) for part in (STREAM[:2], STREAM[2:])]
    backend.then(wire.H200 + wire.chunk(first), WaitFor(go), wire.chunked(last))
    client = gw.client()
    client.send_chat(stream=True, **ASK)
    answer = client.read_head()
    got = client.read_event(answer, seconds=2)
    while not got.text() and client.end != "timeout":
        got = client.read_event(answer, seconds=2)
    assert got.text() == "one ", answer.body
    go.set()
    client.read_body(answer)
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] == "ok" and line["finish_reason"] == "stop"


@pytest.mark.parametrize("field", [b"data:", b"data:  ", b"data:\t"], ids=["none", "two", "tab"])
def test_space_after_the_colon_is_optional(gateway, backend, field):
    """SSE-02."""
    gw = gateway(backend)
    events = [e.replace(b"data: ", field) for e in STREAM[:-1]]
    done = b"data:[DONE]\n\n" if field == b"data:" else wire.DONE
    backend.then(wire.stream_200(*events, done))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1)
    check_good(answer, line)
    assert answer.body == b"".join(events) + done


def test_a_field_line_without_colon_is_relayed(gateway, backend):
    """SSE-02: `data` alone is a field with an empty value; other bare names are ignored."""
    gw = gateway(backend)
    odd = [STREAM[0], b"data\n\n", b"nonsense\n" + STREAM[1], *STREAM[2:]]
    backend.then(wire.stream_200(*odd))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] == "ok" and line["output_tokens"] == 3
    assert answer.body == b"".join(odd)


@pytest.mark.parametrize("way", ["bytes", "one-chunk", "random-1", "random-2", "random-3",
                                 "sizes-split"])
def test_segments_and_chunks_mean_nothing(gateway, backend, way):
    """SSE-06."""
    gw = gateway(backend)
    if way == "bytes":
        parts = [wire.H200, Segments([wire.chunk(b) for b in wire.bytes_of(WHOLE)], 0), wire.EOC]
    elif way == "one-chunk":
        parts = [wire.H200 + wire.chunked(WHOLE)]
    elif way == "sizes-split":
        flow = b"".join(b"00%X;x=\"y\"\r\n%s\r\n" % (len(e), e) for e in STREAM) + wire.EOC
        parts = [wire.H200, Segments(wire.bytes_of(flow), 0)]
    else:
        flow = wire.stream_200(*[WHOLE[i:i + 31] for i in range(0, len(WHOLE), 31)])
        parts = [Segments(wire.random_splits(flow, 200, seed=int(way[-1])), 0.0002)]
    backend.then(*parts)
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    check_good(answer, line)
    assert answer.body == WHOLE


def test_a_close_delimited_stream_is_relayed(gateway, backend):
    """SSE-06: a backend that speaks HTTP/1.0 or omits framing ends its stream by closing."""
    gw = gateway(backend)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    for first in (head, head.replace(b"1.1", b"1.0")):
        backend.then(first, Segments(wire.random_splits(WHOLE, 9, 4)), lambda c: c.close("fin"))
        answer = gw.chat(stream=True, **ASK)
        line, = assert_at_rest(gw, backend, calls=1)
        check_good(answer, line)
        assert answer.body == WHOLE


def test_characters_cut_between_segments_stay_whole(gateway, backend):
    """SSE-07: cut a delta and a tool-call argument at every byte."""
    gw = gateway(backend)
    words = "你好，世界🙂é"
    call = {"tool_calls": [{"index": 0, "id": "t", "type": "function",
                            "function": {"name": "f", "arguments": '{"城":"' + words + '"}'}}]}
    payload = wire.delta(words) + wire.event(wire.chunk_object(call))
    tail = wire.FIN("tool_calls") + wire.USAGE + wire.DONE
    offsets = [i for i in range(1, len(payload)) if payload[i] >= 0x80 or payload[i - 1] >= 0x80]
    for offset in offsets:
        backend.then(wire.H200 + wire.chunk(payload[:offset]), Sleep(0.001),
                     wire.chunked(payload[offset:] + tail))
    with gw.client() as client:
        for _ in offsets:
            answer = client.chat(stream=True, **ASK)
            assert answer.complete and answer.body == payload + tail
            assert answer.sse().text() == words
    lines = assert_at_rest(gw, backend, calls=len(offsets), outcome="ok")
    assert all(line["finish_reason"] == "tool_calls" for line in lines)
    assert "\ufffd" not in gw.log_file.read_text("utf-8")


def test_an_event_may_have_several_data_lines(gateway, backend):
    """SSE-08: joined with LF before parsing, other fields untouched."""
    gw = gateway(backend)

    def two_lines(one):
        return one.replace(b'"choices":', b'\ndata: "choices":', 1)

    events = [two_lines(e) for e in STREAM[:-1]] + [STREAM[-1]]
    events[1] = b"event: message\nid: 41\nretry: 3000\nflavour: odd\n" + events[1]
    events.insert(2, b": a comment\n\n")
    backend.then(wire.stream_200(*events))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1)
    check_good(answer, line)
    assert answer.body == b"".join(events)


def test_a_byte_order_mark_is_ignored(gateway, backend):
    """SSE-08."""
    gw = gateway(backend)
    for first in (b"\xef\xbb\xbf" + STREAM[1], b"\xef\xbb\xbf" + STREAM[0] + STREAM[1]):
        backend.then(wire.stream_200(first, *STREAM[2:]))
        answer = gw.chat(stream=True, **ASK)
        line, = assert_at_rest(gw, backend, calls=1)
        check_good(answer, line)


def test_an_error_behind_a_byte_order_mark_is_still_an_error(gateway, backend):
    """SSE-08 with SSE-14."""
    gw = gateway(backend)
    backend.then(wire.stream_200(b"\xef\xbb\xbf" + wire.event({"error": {"message": "no"}})))
    answer = gw.chat(stream=True)
    assert answer.status >= 400, answer
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] not in ("ok", "truncated"), line


@pytest.mark.parametrize("preamble", [
    {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
    {"choices": [], "id": "", "object": "", "created": 0, "model": ""},
], ids=["filter-results", "blank"])
def test_a_preamble_without_choices_is_not_the_end(gateway, backend, preamble):
    """SSE-13: not a first token, not an error, not the end."""
    gw = gateway(backend)
    events = [wire.event(preamble), *STREAM]
    backend.then(wire.H200 + wire.chunk(events[0]), Sleep(0.3), wire.chunked(*events[1:]))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    check_good(answer, line)
    assert answer.body == b"".join(events)
    assert line["ttft_ms"] >= 250, line


def test_unknown_fields_of_a_chunk_pass_unchanged(gateway, backend):
    """SSE-23."""
    gw = gateway(backend)
    events = [
        wire.event(wire.chunk_object({"role": "assistant", "content": None,
                                      "reasoning_content": ""}, system_fingerprint="fp", x_v=[1])),
        wire.event(wire.chunk_object({"reasoning_content": "think "})),
        wire.event(wire.chunk_object({"reasoning": "more"})),
        wire.event('{"z":1e400,"choices":[{"logprobs":{"content":[{"token":"\\ud83d"}]},"index":0,'
                   '"delta":{"content":"x","v":18446744073709551616},"finish_reason":null}]}'),
        wire.FIN("stop"), wire.USAGE, wire.DONE]
    backend.then(wire.stream_200(*events))
    answer = gw.chat(stream=True, **ASK)
    line, = assert_at_rest(gw, backend, calls=1)
    assert answer.complete and answer.body == b"".join(events)
    assert line["outcome"] == "ok" and line["finish_reason"] == "stop"


def test_reasoning_is_content_and_is_not_held_back(gateway, backend):
    """SSE-23: a model that thinks first must not look silent."""
    gw = gateway(backend)
    go = threading.Event()
    backend.then(wire.H200 + wire.chunk(wire.ROLE) +
                 wire.chunk(wire.event(wire.chunk_object({"reasoning_content": "hm"}))),
                 WaitFor(go), wire.chunked(*STREAM[1:]))
    client = gw.client()
    client.send_chat(stream=True, **ASK)
    answer = client.read_head(seconds=2)
    assert answer is not None and answer.status == 200, "nothing came while the model reasons"
    go.set()
    assert client.read_body(answer).complete
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_two_choices_that_finish_at_different_times(gateway, backend):
    """SSE-23: complete only when every choice has finished."""
    gw = gateway(backend)
    events = [wire.delta("a", 0), wire.delta("b", 1), wire.FIN("stop", 0), wire.delta("c", 1),
              wire.FIN("length", 1), wire.USAGE, wire.DONE]
    backend.then(wire.stream_200(*events))
    answer = gw.chat(stream=True, n=2, **ASK)
    line, = assert_at_rest(gw, backend, calls=1)
    assert answer.body == b"".join(events) and line["outcome"] == "ok"
    assert answer.sse().text(0) == "a" and answer.sse().text(1) == "bc"


def test_a_stream_cut_after_the_first_of_two_choices_is_truncated(gateway, backend):
    """SSE-23 with SSE-17."""
    gw = gateway(backend)
    backend.then(wire.stream_200(wire.delta("a", 0), wire.delta("b", 1), wire.FIN("stop", 0)))
    answer = gw.chat(stream=True, n=2)
    line, = assert_at_rest(gw, backend, calls=1)
    assert answer.complete and answer.sse().errors() and answer.sse().done() == 0
    assert line["outcome"] == "truncated", line


def test_headers_of_a_stream_forbid_buffering(gateway, backend):
    """SSE-06: no compression, no proxy buffering, the media type of the backend."""
    gw = gateway(backend)
    backend.then(wire.good_stream())
    answer = gw.chat(stream=True, headers=[("Accept-Encoding", "gzip, br, zstd")])
    assert answer.header("content-type").startswith("text/event-stream")
    assert answer.header("x-accel-buffering") == "no"
    assert answer.header("content-encoding") in (None, "identity")
    assert answer.header("x-request-id")
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_events_of_other_endpoints_pass_unchanged(gateway, backend):
    """SSE-08: /v1/responses and /v1/messages stream with `event:` fields and no [DONE]."""
    gw = gateway(backend)
    for path, events in {
        "/v1/responses": [
            b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n',
            b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
            b'"delta":"hi"}\n\n',
            b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"r",'
            b'"status":"completed","usage":{"input_tokens":7,"output_tokens":3,'
            b'"total_tokens":10}}}\n\n'],
        "/v1/messages": [
            b'event: message_start\ndata: {"type":"message_start","message":{"id":"x","usage":'
            b'{"input_tokens":7,"output_tokens":1}}}\n\n',
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
            b'{"type":"text_delta","text":"hi"}}\n\n',
            b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":'
            b'"end_turn"},"usage":{"output_tokens":3}}\n\n',
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    }.items():
        backend.then(wire.stream_200(*events))
        body = {"model": "m", "stream": True, "max_tokens": 9}
        body["input" if "responses" in path else "messages"] = [{"role": "user", "content": "hi"}]
        answer = gw.request(body, path=path)
        assert answer.complete and answer.body == b"".join(events), (path, answer.body)
        line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
        assert (line["input_tokens"], line["output_tokens"]) == (7, 3), (path, line)
        assert "stream_options" not in backend.requests[-2].json(), path


def test_the_decoder_of_these_tests_sees_what_was_sent():
    """Guards the table above: STREAM is what check_good expects."""
    got = sse.decode(WHOLE)
    assert got.text() == "one two three" and got.done() == 1 and len(got.events) == 7

"""How streams end: errors inside a 200, clean ends that are not whole, cuts in mid-event (P1)."""
import time

import pytest

from support import wire
from support.backend import Fin, Rst, Sleep, Stall
from support.gateway import profile
from support.oracle import assert_at_rest

ASK = {"stream_options": {"include_usage": True}}
BAD = wire.event({"error": {"message": "quota", "type": "server_error", "code": 429}})
THREE = [wire.ROLE, wire.delta("a"), wire.delta("b"), wire.delta("c")]


def check_p1(answer, text, errors=1):
    """P1: whole events, one error event, a clean end, no [DONE], no invented finish_reason."""
    assert answer.status == 200 and answer.complete, (answer.status, answer.ended, answer.body)
    got = answer.sse()
    assert got.text() == text, answer.body
    assert len(got.errors()) == errors, answer.body
    assert got.events[-1].json().get("error"), answer.body
    assert got.done() == 0 and not got.finish_reasons() and got.tail == b"", answer.body
    return got.errors()[-1]


@pytest.mark.parametrize("first", [
    [BAD], [BAD, wire.DONE], [wire.event({"choices": [], "error": {"message": "quota",
                                                                    "code": 429}})],
    [b"event: error\n" + BAD], [wire.event({"error": "quota"})],
    [b": hello\n\n", wire.ROLE, BAD], [wire.event({"choices": []}), BAD],
], ids=["alone", "then-done", "with-choices", "event-error", "string", "after-role",
        "after-preamble"])
def test_an_error_before_any_content_moves_to_the_next_candidate(gateway, backends, first):
    """SSE-14 (a), (c), (d), (e): nothing was committed, so the client sees only the good answer."""
    bad, good = backends(), backends()
    gw = gateway(bad, fallback=good, attempts=2)
    bad.then(wire.stream_200(*first))
    good.then(wire.good_stream("fine"))
    answer = gw.chat(stream=True, **ASK)
    assert answer.status == 200 and answer.sse().text() == "fine" and not answer.sse().errors()
    assert answer.body.count(b'"role"') == 1
    line, = assert_at_rest(gw, bad, good, calls=1, attempts=[1, 1])
    assert line["outcome"] == "ok" and line["attempts"] == 2 and line["retried"], line


@pytest.mark.parametrize("code,statuses", [(429, (429, 502, 503)), (500, (500, 502)),
                                           ("rate_limit_exceeded", (429, 502, 503)),
                                           (None, (500, 502))])
def test_an_error_before_any_content_is_a_status_if_nobody_else_can_answer(gateway, backend, code,
                                                                           statuses):
    """SSE-14 (a)."""
    gw = gateway(backend)
    backend.then(wire.stream_200(wire.event({"error": {"message": "quota", "code": code}})))
    answer = gw.chat(stream=True)
    assert answer.status in statuses, answer.body
    assert answer.error()["message"]
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] != "ok" and line["status"] == answer.status, line


@pytest.mark.parametrize("error,tail", [
    (BAD, []), (BAD, [wire.DONE]), (b"event: error\n" + BAD, []),
    (wire.event({"choices": [], "error": {"message": "x"}}), []),
    (wire.event({"error": "x"}), [wire.DONE]),
    (BAD, [wire.delta("late"), wire.FIN(), wire.DONE]),
], ids=["alone", "then-done", "event-error", "with-choices", "string", "then-content"])
def test_an_error_in_mid_stream_is_relayed_and_ends_it(gateway, backends, error, tail):
    """SSE-14 (b), (d), (e): relayed once, the stream ends by P1, and nothing is asked again."""
    backend, spare = backends(), backends()
    gw = gateway(backend, fallback=spare, attempts=3)
    backend.then(wire.stream_200(*THREE, error, *tail))
    answer = gw.chat(stream=True)
    check_p1(answer, "abc")
    line, = assert_at_rest(gw, backend, spare, calls=1, attempts=[1, 0])
    assert line["outcome"] == "in_band_error", line


def test_a_null_error_is_not_an_error(gateway, backend):
    """SSE-14, the control."""
    gw = gateway(backend)
    events = [wire.delta("a", error=None), wire.delta("b", error=None), wire.FIN(), wire.USAGE,
              wire.DONE]
    backend.then(wire.stream_200(*events))
    assert gw.chat(stream=True, **ASK).body == b"".join(events)
    assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_the_word_error_in_content_is_not_an_error(gateway, backend):
    """SSE-14, another control: a model that writes about errors, inside strings and arguments."""
    gw = gateway(backend)
    events = [wire.delta('{"error":{"message":"x"}}'), wire.delta('data: {"error":1}\n\n'),
              wire.event(wire.chunk_object({"tool_calls": [{"index": 0, "function": {
                  "arguments": '{"error":true}'}}], "meta": {"error": {"message": "y"}}})),
              wire.delta("data: [DONE]\n\n"), wire.FIN(), wire.USAGE, wire.DONE]
    backend.then(wire.stream_200(*events))
    assert gw.chat(stream=True, **ASK).body == b"".join(events)
    assert_at_rest(gw, backend, calls=1, outcome="ok")


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_status_that_is_not_2xx_stays_one_for_a_stream(gateway, backend, status):
    """SSE-15."""
    gw = gateway(backend)
    backend.then(wire.error_response(status, "the reason", "some_type", "some_code"))
    answer = gw.chat(stream=True)
    assert answer.status == status and answer.complete, answer.body
    assert answer.framing.isdigit() and int(answer.framing) == len(answer.body)
    error = answer.error()
    assert (error["message"], error["type"], error["code"]) == ("the reason", "some_type",
                                                                "some_code")
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] == ("client_error" if status < 500 else "upstream_error"), line


@pytest.mark.parametrize("answer_head", ["json", "none"])
def test_a_json_answer_to_a_streaming_request_is_relayed(gateway, backend, answer_head):
    """SSE-15: a backend that ignores `stream` answers with one object."""
    gw = gateway(backend)
    body = wire.json_200("whole")
    if answer_head == "none":
        body = body.replace(b"Content-Type: application/json\r\n", b"")
    backend.then(body)
    answer = gw.chat(stream=True)
    assert answer.status == 200 and answer.complete
    assert answer.json()["choices"][0]["message"]["content"] == "whole"
    assert_at_rest(gw, backend, calls=1, attempts=1)


@pytest.mark.parametrize("last", [[], [b"data: [DONE]\n"], [b"data: [DONE]"]],
                         ids=["none", "one-line-end", "no-line-end"])
def test_a_finished_stream_without_done_is_whole(gateway, backend, last):
    """SSE-16: ok, at once, and what follows the answer is at most one [DONE]."""
    gw = gateway(profile(backend, timeouts={"idle": "5s"}))
    backend.then(wire.stream_200(wire.delta("a"), wire.delta("b"), wire.FIN(), *last))
    started = time.monotonic()
    answer = gw.chat(stream=True)
    assert time.monotonic() - started < 1
    got = answer.sse()
    assert answer.complete and got.text() == "ab" and got.finish_reasons() == ["stop"]
    assert got.done() <= 1 and not got.errors(), answer.body
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] == "ok" and line["finish_reason"] == "stop"


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls", "function_call"])
def test_any_finish_reason_ends_a_stream(gateway, backend, reason):
    """SSE-16."""
    gw = gateway(backend)
    backend.then(wire.stream_200(wire.delta("a"), wire.FIN(reason)))
    assert gw.chat(stream=True).sse().finish_reasons() == [reason]
    line, = assert_at_rest(gw, backend, calls=1, outcome="ok")
    assert line["finish_reason"] == reason


def test_a_clean_end_without_finish_reason_is_truncation(gateway, backend):
    """SSE-17: after content, P1."""
    gw = gateway(backend, attempts=3)
    backend.then(wire.stream_200(*[wire.delta(t) for t in "abcde"]))
    answer = gw.chat(stream=True)
    check_p1(answer, "abcde")
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert line["outcome"] == "truncated" and not line["finish_reason"], line


@pytest.mark.parametrize("null_reasons", [True, False])
def test_done_without_finish_reason_is_relayed_and_nothing_is_invented(gateway, backend,
                                                                       null_reasons):
    """SSE-17."""
    gw = gateway(backend)
    events = [wire.delta("a"), wire.delta("b")]
    if not null_reasons:
        events = [e.replace(b',"finish_reason":null', b"") for e in events]
    backend.then(wire.stream_200(*events, wire.DONE))
    answer = gw.chat(stream=True)
    got = answer.sse()
    assert answer.complete and got.text() == "ab" and not got.finish_reasons()
    line, = assert_at_rest(gw, backend, calls=1, attempts=1)
    assert not line["finish_reason"], line


@pytest.mark.parametrize("events", [[], [wire.ROLE], [b": ping\n\n"], [b"\n\n\n"], [wire.DONE]],
                         ids=["nothing", "role", "comment", "blank", "done"])
def test_an_empty_stream_moves_to_the_next_candidate(gateway, backends, events):
    """SSE-17: an empty 200 is a failure as long as nothing was relayed."""
    bad, good = backends(), backends()
    gw = gateway(bad, fallback=good, attempts=2)
    bad.then(wire.stream_200(*events))
    good.then(wire.good_stream("fine"))
    answer = gw.chat(stream=True)
    assert answer.status == 200 and answer.sse().text() == "fine", answer.body
    assert_at_rest(gw, bad, good, calls=1, attempts=[1, 1], outcome="ok")


def test_an_empty_stream_without_another_candidate_is_an_error(gateway, backend):
    """SSE-17."""
    gw = gateway(backend)
    backend.then(wire.stream_200())
    answer = gw.chat(stream=True)
    assert answer.status == 502 and answer.error()["code"], answer.body
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] != "ok"


@pytest.mark.parametrize("reason", ["content_filter", "length"])
def test_a_finished_answer_without_text_is_not_empty(gateway, backend, reason):
    """SSE-17, the control: a refusal by filter, or a budget spent on hidden reasoning, is an
    answer; asking again costs money and gives the same."""
    gw = gateway(backend, attempts=3)
    backend.then(wire.stream_200(wire.ROLE, wire.FIN(reason), wire.USAGE, wire.DONE))
    answer = gw.chat(stream=True)
    assert answer.complete and answer.sse().finish_reasons() == [reason], answer.body
    assert_at_rest(gw, backend, calls=1, attempts=1, outcome="ok")


HALF = wire.delta("lost")[:40]


@pytest.mark.parametrize("end", [Fin(), Rst()], ids=["fin", "rst"])
@pytest.mark.parametrize("where", ["mid-event", "between-lines", "between-data-lines",
                                   "between-events", "mid-chunk", "mid-size"])
def test_a_stream_cut_in_the_middle_ends_by_p1(gateway, backends, end, where):
    """SSE-18: the client never sees the half event, nor a bare clean end."""
    backend, spare = backends(), backends()
    gw = gateway(backend, fallback=spare, attempts=3)
    rest = {"mid-event": wire.chunk(HALF), "between-lines": wire.chunk(wire.delta("lost")[:-1]),
            "between-data-lines": wire.chunk(b'data: {"choices":[{"index":0,\n'),
            "between-events": b"", "mid-chunk": wire.chunk(wire.delta("lost"))[:30],
            "mid-size": b"1"}[where]
    backend.then(wire.H200 + wire.chunk(wire.ROLE) + wire.chunk(wire.delta("a")) +
                 wire.chunk(wire.delta("b")) + rest, Sleep(0.05), end)
    answer = gw.chat(stream=True)
    check_p1(answer, "ab")
    line, = assert_at_rest(gw, backend, spare, calls=1, attempts=[1, 0])
    assert line["outcome"] == "upstream_reset", line


def test_a_cut_right_after_data_in_one_segment_loses_no_event(gateway, backend):
    """SSE-18: what came before the end is relayed first, also when both arrive together."""
    gw = gateway(backend)
    backend.then(wire.H200 + b"".join(wire.chunk(wire.delta(t)) for t in "abcdefgh"), Fin())
    check_p1(gw.chat(stream=True), "abcdefgh")
    assert_at_rest(gw, backend, calls=1, outcome="upstream_reset")


@pytest.mark.parametrize("junk", [b"zz\r\n", b"-5\r\n", b"\r\n\r\n", b"0x5\r\n",
                                  b"fffffffffffffffff\r\n", b"5 \0\r\n",
                                  b"3\r\nabcdef\r\n"],
                         ids=["letters", "minus", "blank", "prefix", "overflow", "nul",
                              "too-long"])
def test_bad_chunk_framing_in_mid_stream_ends_by_p1(gateway, backend, junk):
    """SSE-18: a protocol error of the backend has its own outcome."""
    gw = gateway(backend)
    backend.then(wire.H200 + wire.chunk(wire.delta("a")), Sleep(0.02), junk, Stall(2))
    answer = gw.chat(stream=True)
    check_p1(answer, "a")
    assert_at_rest(gw, backend, calls=1, outcome="upstream_protocol_error")


def test_a_close_delimited_stream_that_is_cut_is_truncated(gateway, backend):
    """SSE-18 with SSE-17: without framing only finish_reason and [DONE] tell the end."""
    gw = gateway(backend)
    backend.then(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" +
                 wire.delta("a") + HALF, Fin())
    check_p1(gw.chat(stream=True), "a")
    line, = assert_at_rest(gw, backend, calls=1)
    assert line["outcome"] in ("truncated", "upstream_reset"), line


def test_a_cut_after_done_is_not_an_error(gateway, backend):
    """SSE-18, the control: the answer was whole when the backend forgot the last chunk."""
    gw = gateway(backend)
    for end in (Fin(), Rst()):
        backend.then(wire.H200 + b"".join(map(wire.chunk, [
            wire.delta("a"), wire.FIN(), wire.USAGE, wire.DONE])), Sleep(0.05), end)
        answer = gw.chat(stream=True)
        assert answer.complete and answer.sse().done() == 1 and not answer.sse().errors()
        assert_at_rest(gw, backend, calls=1, outcome="ok")


def test_the_error_event_says_what_happened(gateway, backend):
    """SSE-18: message, type and code as in an error body."""
    gw = gateway(backend)
    backend.then(wire.H200 + wire.chunk(wire.delta("a")), Sleep(0.02), Rst())
    error = check_p1(gw.chat(stream=True), "a")
    assert error["message"] and error["type"] and isinstance(error["code"], str), error
    assert_at_rest(gw, backend, calls=1)

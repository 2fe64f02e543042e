"""What clients send as JSON: legal shapes pass byte for byte, the rest is one clear 400."""
import json
import time

import pytest

from support import wire
from support.gateway import config, profile
from support.stack import echoed, open_stack

CHAT = "/v1/chat/completions"


def settings(backend):
    """`main` with a short and a long alias, so that the model value changes its length."""
    return config(profiles={
        "main": profile(backend, aliases=["m", "s", "a-much-longer-alias-than-the-name"],
                        model="backend-name")}, limits={"body": "4MiB"})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open_stack(tmp_path_factory.mktemp("bodies"), settings) as one:
        yield one


@pytest.fixture
def stack(shared):
    return shared.fresh()


def passes(stack, raw, path=CHAT, model=b'"auto"'):
    """The backend gets `raw` with only the model value replaced; returns the log line."""
    answer = stack.gw.request(raw, path=path)
    assert answer.status == 200, (answer.status, answer.body[:300])
    got = stack.backend.requests[0]
    assert got.body == raw.replace(model, b'"backend-name"', 1), got.body[:300]
    line, = stack.gw.wait_lines(1)
    return line


def refuses(stack, raw, statuses=(400,), path=CHAT, headers=()):
    """An error that does not quote the input, and no attempt. The connection stays usable."""
    answer = stack.gw.request(raw, path=path, headers=headers)
    assert answer.status in statuses, (answer.status, answer.body[:300])
    error = answer.error()
    stack.gw.wait_lines(1)
    assert not stack.backend.requests
    return error


def body(messages=None, **more):
    whole = {"model": "auto", "messages": messages if messages is not None else [
        {"role": "user", "content": "hi"}]}
    whole.update(more)
    return json.dumps(whole, ensure_ascii=False).encode()


PARTS = [{"type": "text", "text": "some words to count " * 20},
         {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
         {"type": "what_is_this", "what": [1, {"text": "x"}]}]


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
def test_content_may_be_a_list_of_parts_for_every_role(stack, role):
    """REQ-01: unchanged, and its text is counted."""
    line = passes(stack, body([{"role": role, "content": PARTS, "tool_call_id": "c"},
                               {"role": "user", "content": "hi"}]))
    assert line["input_tokens"] >= 7 and line["outcome"] == "ok", line


def test_text_parts_are_counted_like_text(stack):
    """REQ-01: the estimate is in the log when the backend tells no usage."""
    silent = {k: v for k, v in wire.completion().items() if k != "usage"}
    stack.backend.always(wire.json_response(200, silent))
    counts = []
    for content in ("word " * 500, [{"type": "text", "text": "word " * 500}]):
        stack.gw.mark()
        stack.gw.request(body([{"role": "user", "content": content}]))
        line, = stack.gw.wait_lines(1)
        counts.append(line["input_tokens"])
    assert abs(counts[0] - counts[1]) <= 5 and counts[0] > 100, counts


CONTENTS = {
    "null": [{"role": "assistant", "content": None}],
    "empty": [{"role": "assistant", "content": ""}],
    "absent": [{"role": "assistant"}],
    "null-with-tools": [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": ""}],
    "absent-with-tools": [{"role": "assistant", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}],
    "empty-list": [{"role": "user", "content": []}],
    "tool-calls-null": [{"role": "assistant", "content": "x", "tool_calls": None}],
}


@pytest.mark.parametrize("kind", list(CONTENTS))
def test_null_empty_or_absent_content_passes(stack, kind):
    """REQ-02."""
    passes(stack, body(CONTENTS[kind] + [{"role": "user", "content": "hi"}]))


ARGUMENTS = {"object": {"a": 1}, "empty": "", "null-text": "null", "null": None,
             "invalid": '{"a": ', "list": "[1]", "number": 5, "nested": {"a": {"b": [1, 2]}}}


@pytest.mark.parametrize("kind", list(ARGUMENTS))
def test_tool_arguments_in_a_history_pass_as_they_are(stack, kind):
    """SO-08, the request's side: never encoded twice, never repaired."""
    passes(stack, body([{"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function",
         "function": {"name": "f", "arguments": ARGUMENTS[kind]}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"}]))


def test_vendor_fields_pass(stack):
    """REQ-05."""
    more = {f"x_{n}": [n, {"y": None}, "é"] for n in range(200)}
    passes(stack, body(top_k=4, min_p=0.05, chat_template_kwargs={"enable_thinking": False},
                       guided_json={"type": "object"}, extra_body={"model": "inner"}, **more))


@pytest.mark.parametrize("alias", ["s", "a-much-longer-alias-than-the-name", "main", "auto"])
def test_only_the_model_value_changes(stack, alias):
    """REQ-06: numbers, escapes, key order, white space; a shorter and a longer name."""
    raw = (b'\r\n{ "z" : 1e2,\t"seed":18446744073709551616, "n":9007199254740993,"zero":-0,'
           b'"f":0.30000000000000004,"big":1e400,"tiny":-1E-400,"e1":"\\u00e9","e2":"\xc3\xa9",'
           b'"slash":"\\/","pair":"\\ud83d\\ude42", "model" :  "' + alias.encode() +
           b'" , "messages":[{"content":"\\u4f60 model","role":"user"}],"a":{"model":"' +
           alias.encode() + b'"},"metadata":{"model":null}}\n ')
    before, after = raw.split(b'"model" :  "' + alias.encode() + b'"')
    answer = stack.gw.request(raw)
    assert answer.status == 200, answer.body
    got = stack.backend.requests[0]
    assert got.body == before + b'"model" :  "backend-name"' + after
    assert got.header("content-length") == str(len(got.body))


def test_an_escaped_model_name_is_understood(stack):
    """REQ-06's kind: escapes in the one value that is replaced, and in its key."""
    raw = b'{"messages":[],"\\u006dodel":"a\\u0075to"}'
    answer = stack.gw.request(raw)
    assert answer.status in (200, 400), answer.body
    stack.gw.wait_lines(1)
    if answer.status == 200:
        assert json.loads(stack.backend.requests[0].body)["model"] == "backend-name"


BAD_UTF8 = {"ff": b"\xff", "overlong": b"\xc0\xaf", "surrogate": b"\xed\xa0\x80",
            "truncated": b"\xe4\xbd", "gbk": "你好，世界".encode("gbk"), "latin": b"caf\xe9",
            "beyond": b"\xf4\x90\x80\x80", "continuation": b"\x80"}


@pytest.mark.parametrize("place", ["content", "model", "key", "vendor"])
@pytest.mark.parametrize("kind", list(BAD_UTF8))
def test_bytes_that_are_not_utf8_are_a_400_with_a_fixed_message(stack, kind, place):
    """REQ-08, OBS-04: wherever they stand; the log line stays JSON."""
    bad = BAD_UTF8[kind]
    raw = body(vendor={"a": ["MARK-V"]}, MARKK=1).replace(b"hi", b"MARK-C")
    mark = {"content": b"MARK-C", "model": b"auto", "key": b"MARKK", "vendor": b"MARK-V"}[place]
    error = refuses(stack, raw.replace(mark, bad))
    assert "UTF-8" in error["message"], error
    assert error["message"].isascii(), error


@pytest.mark.parametrize("escape", [b"\\ud83d", b"\\udc49", b"\\udc49\\ud83d", b"\\u0000"])
def test_lone_surrogate_escapes_are_grammatical(stack, escape):
    """REQ-08: forwarded as they are."""
    passes(stack, body().replace(b"hi", escape))


@pytest.mark.parametrize("escape", [b"\\ud83d", b"\\udc49x", b"\\u0000", b"\\n", b"\\u001b[31m"])
def test_odd_escapes_in_the_model_name_are_an_error_not_a_crash(stack, escape):
    """REQ-08, OBS-04: 404 or 400, and the log and the metrics still parse."""
    refuses(stack, body().replace(b"auto", b"m" + escape), (400, 404))
    stack.at_rest(calls=1)


DEEP = 200_000
NESTED = {
    "lists": b"[" * DEEP + b"]" * DEEP,
    "lists-never-closed": b"[" * DEEP,
    "objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "in-a-message": b'{"model":"auto","messages":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "in-vendor": b'{"model":"auto","messages":[],"x":' + b'{"a":[' * DEEP + b"]}" * DEEP + b"}",
    "in-tools": b'{"model":"auto","messages":[],"tools":[' + b'{"a":' * DEEP + b"1" + b"}" * DEEP +
                b"]}",
    "in-schema": b'{"model":"auto","messages":[],"response_format":' + b'{"a":' * DEEP + b"1" +
                 b"}" * DEEP + b"}",
}


@pytest.mark.parametrize("kind", list(NESTED))
def test_deep_nesting_is_refused_in_bounded_time(stack, kind):
    """REQ-09: one request must not kill the process."""
    started = time.monotonic()
    refuses(stack, NESTED[kind])
    assert time.monotonic() - started < 1.0
    stack.at_rest(calls=1)


@pytest.mark.parametrize("depth", [40, 120, 400])
def test_a_schema_of_legal_depth_passes(stack, depth):
    """REQ-09: tool schemas are deeper than some parsers allow."""
    schema = {"type": "string"}
    for _ in range(depth // 2):
        schema = {"type": "object", "properties": {"a": schema}}
    passes(stack, body(tools=[{"type": "function", "function": {"name": "f",
                                                                "parameters": schema}}]))


GOOD = body()
DOCUMENTS = {
    "trailing-nul": GOOD + b"\0", "trailing-text": GOOD + b" xyz", "two": GOOD + GOOD,
    "two-lines": GOOD + b"\n" + GOOD, "trailing-comma": GOOD[:-1] + b",}",
    "comment": b"//x\n" + GOOD,
    "single-quotes": GOOD.replace(b'"', b"'"), "cut": GOOD[:-1], "cut-in-a-string": GOOD[:20],
    "list": b"[" + GOOD + b"]", "text": b'"model"', "number": b"5", "null": b"null",
    "only-space": b"  ", "nan": body().replace(b'"hi"', b"NaN"), "bare-word": b"model",
    "control-in-string": GOOD.replace(b"hi", b"h\x01i"),
    "raw-newline": GOOD.replace(b"hi", b"h\ni"),
    "bad-escape": GOOD.replace(b"hi", b"\\x41"), "short-escape": GOOD.replace(b"hi", b"\\u12"),
    "leading-zero": body(n=1).replace(b'"n": 1', b'"n": 01'),
    "plus": body(n=1).replace(b'"n": 1', b'"n": +1'),
    "dot": body(n=1).replace(b'"n": 1', b'"n": .5'),
    "utf-16": GOOD.decode().encode("utf-16"), "missing-colon": b'{"model" "auto"}',
    "form": b"model=auto&messages=x", "unquoted-key": b'{model:"auto"}',
}


@pytest.mark.parametrize("kind", list(DOCUMENTS))
def test_what_is_not_one_json_object_is_refused(stack, kind):
    """REQ-10 and its kind: parsers disagree about all of these."""
    error = refuses(stack, DOCUMENTS[kind])
    assert any(w in error["message"] for w in ("JSON", "object", "UTF-8")), error


def test_a_byte_order_mark_is_refused_or_stripped(stack):
    """REQ-10: one consistent answer."""
    answer = stack.gw.request(b"\xef\xbb\xbf" + body())
    assert answer.status in (200, 400), answer.body
    stack.gw.wait_lines(1)
    if answer.status == 200:
        assert not stack.backend.requests[0].body.startswith(b"\xef\xbb\xbf")


def test_white_space_around_is_fine(stack):
    """REQ-10."""
    passes(stack, b" \t\r\n" * 100 + body() + b"\r\n\t " * 100)


@pytest.mark.parametrize("empty", [b"", None], ids=["length-0", "no-body"])
def test_a_post_without_a_body_is_refused(stack, empty):
    """REQ-10's kind."""
    refuses(stack, empty)


@pytest.mark.parametrize("value,streams", [("absent", False), ("null", False), ("false", False),
                                           ("true", True)])
def test_stream_is_a_boolean_or_null(stack, value, streams):
    """REQ-11."""
    stack.backend.always(lambda r: [wire.good_stream() if json.loads(r.body).get("stream")
                                    else wire.json_200()])
    raw = body() if value == "absent" else body(stream=1).replace(
        b'"stream": 1', b'"stream": ' + value.encode())
    answer = stack.gw.request(raw)
    assert answer.status == 200 and answer.header("content-type").startswith(
        "text/event-stream" if streams else "application/json"), answer.head
    stack.gw.wait_lines(1)


@pytest.mark.parametrize("value", [b'"true"', b"1", b"0", b'"false"', b"[]", b"{}", b'""', b"1.0"])
def test_stream_of_another_type_is_refused(stack, value):
    """REQ-11: named in `param`."""
    error = refuses(stack, body(stream=1).replace(b'"stream": 1', b'"stream": ' + value))
    assert error["param"] == "stream", error


@pytest.mark.parametrize("value", [b'"text"', b"5", b"[]", b"[null]", b'[{"role":5}]', b"null",
                                   b"{}", b"[[]]", b'[{"content":{"a":1}}]', b"true", b'["hi"]',
                                   b'[{"role":"user","content":5}]',
                                   b'[{"role":"user","content":[null,5,"x",[]]}]'])
def test_messages_of_another_type_are_answered_at_once(stack, value):
    """REQ-13: 400 or forwarded, never a hang."""
    raw = b'{"model":"auto","messages":' + value + b"}"
    started = time.monotonic()
    answer = stack.gw.request(raw)
    assert answer.status in (200, 400) and time.monotonic() - started < 1.0
    if answer.status == 200:
        assert stack.backend.requests[0].body == raw.replace(b'"auto"', b'"backend-name"')
    else:
        assert answer.error()["message"]
    stack.at_rest(calls=1)


@pytest.mark.parametrize("key", ["model", "stream", "messages", "max_tokens", "stream_options",
                                 "tools"])
def test_a_key_we_act_on_may_stand_once(stack, key):
    """P3: parsers disagree which one counts."""
    value = {"model": '"auto"', "stream": "false", "messages": "[]", "max_tokens": "5",
             "stream_options": "{}", "tools": "[]"}[key].encode()
    raw = b'{"' + key.encode() + b'":' + value + b"," + body(**{key: json.loads(value)})[1:]
    error = refuses(stack, raw)
    assert key in error["message"] or error["param"] == key, error


def test_an_escaped_duplicate_is_a_duplicate(stack):
    """P3: `\\u006dodel` is the same key."""
    refuses(stack, b'{"model":"auto","\\u006dodel":"other","messages":[]}')


def test_a_duplicate_that_we_do_not_act_on_passes(stack):
    """P3: what the backend makes of it is the backend's affair."""
    passes(stack, b'{"model":"auto","messages":[],"x":1,"x":2}')


@pytest.mark.parametrize("value", [b"null", b"5", b'""', b"[]", b'["auto"]', b"{}", b"true"])
def test_a_model_that_is_no_name_is_refused(stack, value):
    """No `model` is 400."""
    error = refuses(stack, b'{"model":' + value + b',"messages":[]}', (400, 404))
    assert error["param"] == "model", error


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses",
                                  "/v1/messages", "/v1/moderations", "/v1/rerank",
                                  "/v1/images/generations", "/v1/audio/speech"])
def test_no_model_is_a_400_on_every_endpoint(stack, path):
    """No `model` is 400, and says what to send."""
    error = refuses(stack, b'{"messages":[],"input":"x","prompt":"x"}', path=path)
    assert error["param"] == "model" and "model" in error["message"], error


PROMPTS = {"text": '"some text"', "texts": '["a","b"]', "ints": "[1,2,3,4]",
           "lists": "[[1,2],[3,4,5]]", "empty-list": "[]", "null": "null", "mixed": '["a",[1],2]'}


@pytest.mark.parametrize("path,key", [("/v1/completions", "prompt"), ("/v1/embeddings", "input")])
@pytest.mark.parametrize("kind", list(PROMPTS))
def test_prompt_and_input_may_have_every_shape(stack, path, key, kind):
    """REQ-19: forwarded unchanged."""
    passes(stack, b'{"model":"auto","' + key.encode() + b'":' + PROMPTS[kind].encode() + b"}",
           path=path)


@pytest.mark.parametrize("path,key", [("/v1/completions", "prompt"), ("/v1/embeddings", "input")])
def test_integers_count_as_tokens(stack, path, key):
    """REQ-19: 2,048 items of lists are summed."""
    plain = {"object": "list", "data": [], "model": "m"}
    stack.backend.always(wire.json_response(200, plain))
    for value, low, high in (([list(range(10))] * 2048, 20_000, 26_000),
                             (list(range(5000)), 4750, 5250),
                             (["two words"] * 2048, 3500, 9000)):
        stack.gw.mark()
        stack.gw.request({"model": "auto", key: value}, path=path)
        line, = stack.gw.wait_lines(1)
        assert low <= line["input_tokens"] <= high, (line["input_tokens"], low, high)

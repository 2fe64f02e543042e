"""The official Python SDK against the base_url: what a team does with it every day."""

import json
import os
import time

import openai
import pytest
from conftest import client_of
from fake_openai import DEFAULT_REPLY
from openai import OpenAI
from pydantic import BaseModel

HELLO = [{"role": "user", "content": "你好"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "查询城市天气",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


class City(BaseModel):
    name: str
    population: int
    tags: list[str]


def test_the_client_of_the_founding_document_gets_an_answer(stack, monkeypatch):
    monkeypatch.setenv("LLM_BASE_URL", stack.base_url)
    client = OpenAI(
        base_url=os.getenv("LLM_BASE_URL", "http://127.0.0.1:8000/v1"),
        api_key=os.getenv("LLM_API_KEY", "local"),
        timeout=60.0,
        max_retries=0,
    )
    resp = client.chat.completions.create(
        model="flash",
        messages=[{"role": "system", "content": "简短回答"}, *HELLO],
        temperature=0.3,
        max_tokens=512,
        stream=False,
    )
    assert resp.choices[0].message.content == DEFAULT_REPLY
    assert resp.choices[0].finish_reason == "stop"
    assert resp.usage.total_tokens == resp.usage.prompt_tokens + resp.usage.completion_tokens


def test_a_stream_carries_every_character_and_ends_with_its_reason(client):
    stream = client.chat.completions.create(model="flash", messages=HELLO, stream=True)
    chunks = list(stream)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == DEFAULT_REPLY
    assert choices[-1].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_ends_with_usage_when_the_client_asks(client):
    stream = client.chat.completions.create(
        model="flash", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens is not None


def test_chinese_and_emoji_cross_unchanged_in_both_directions(stack, client):
    text = "繁體、简体、かな、한국어、𠮷野家 👩‍👩‍👧 “引号” \u2028 尾\t\n"
    message = [{"role": "user", "content": "echo:" + text}]
    whole = client.chat.completions.create(model="flash", messages=message)
    assert whole.choices[0].message.content == text
    stream = client.chat.completions.create(model="flash", messages=message, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream if c.choices) == text
    for request in stack.flash.requests():
        assert json.loads(request["raw"])["messages"] == message


def test_a_tool_is_called_and_its_result_is_answered(client):
    first = client.chat.completions.create(model="flash", messages=HELLO, tools=[WEATHER])
    call = first.choices[0].message.tool_calls[0]
    assert first.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "北京", "days": 7}
    history = HELLO + [first.choices[0].message.model_dump(exclude_none=True)]
    history.append({"role": "tool", "tool_call_id": call.id, "content": "晴,26 度"})
    second = client.chat.completions.create(model="flash", messages=history, tools=[WEATHER])
    assert second.choices[0].message.content == "工具的结果:晴,26 度"


def test_a_streamed_tool_call_is_put_together_by_the_sdk(client):
    with client.chat.completions.stream(model="flash", messages=HELLO, tools=[WEATHER]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    call = final.choices[0].message.tool_calls[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert json.loads(call.function.arguments) == {"city": "北京", "days": 7}


def test_structured_output_is_parsed_into_the_model(client):
    parsed = client.chat.completions.parse(model="flash", messages=HELLO, response_format=City)
    assert parsed.choices[0].message.parsed == City(name="北京", population=7, tags=["北京"])


def test_structured_output_can_be_streamed(client):
    with client.chat.completions.stream(
        model="flash", messages=HELLO, response_format=City
    ) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed.population == 7


def test_embeddings_arrive_as_numbers_in_order(client):
    answer = client.embeddings.create(model="flash", input=["a", "你好"])
    assert [item.embedding for item in answer.data] == [[1, 0, 0.5, -0.25], [6, 1, 0.5, -0.25]]
    assert answer.usage.prompt_tokens == 2


def test_the_older_completions_work_whole_and_streamed(client):
    whole = client.completions.create(model="flash", prompt="从前")
    assert whole.choices[0].text == "从前 然后"
    stream = client.completions.create(model="flash", prompt="从前", stream=True)
    assert "".join(c.choices[0].text for c in stream if c.choices) == "从前 然后"


def test_responses_pass_through_whole_and_streamed(client):
    whole = client.responses.create(model="flash", input="你好")
    assert whole.output_text == DEFAULT_REPLY
    assert whole.usage.total_tokens == 16
    text = ""
    for event in client.responses.create(model="flash", input="你好", stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
    assert event.type == "response.completed"
    assert text == DEFAULT_REPLY


def test_the_list_of_models_has_the_model_one_may_ask_for(client):
    assert "flash" in [model.id for model in client.models.list()]


def test_many_calls_at_once_get_their_own_answers(client):
    from concurrent.futures import ThreadPoolExecutor

    def ask(number):
        message = [{"role": "user", "content": f"echo:号码 {number}"}]
        answer = client.chat.completions.create(model="flash", messages=message)
        return answer.choices[0].message.content

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(100))) == [f"号码 {number}" for number in range(100)]


def test_a_backends_refusal_of_a_value_keeps_its_words(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="flash", messages=HELLO, temperature=3)
    assert caught.value.param == "temperature"
    assert "at most 2" in caught.value.message


def departure_of(stack):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        left = [request["left_at"] for request in stack.flash.requests()]
        if left and left[-1] is not None:
            return left[-1]
        time.sleep(0.02)
    raise AssertionError("the backend never saw the client leave")


def test_closing_a_stream_reaches_the_backend_within_half_a_second(stack, client):
    stack.flash.pace(piece_delay_s=0.03, pieces=1000)
    stream = client.chat.completions.create(model="flash", messages=HELLO, stream=True)
    for count, _ in enumerate(stream):
        if count == 5:
            break
    closed_at = time.time()
    stream.close()
    assert departure_of(stack) - closed_at < 0.5


def test_giving_up_on_a_whole_answer_reaches_the_backend_within_half_a_second(stack):
    stack.flash.pace(first_delay_s=10)
    with pytest.raises(openai.APITimeoutError):
        client_of(stack, timeout=0.5).chat.completions.create(model="flash", messages=HELLO)
    gave_up_at = time.time()
    assert departure_of(stack) - gave_up_at < 0.5

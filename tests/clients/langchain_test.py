"""LangChain's OpenAI classes against the base_url."""

import pytest
from fake_openai import DEFAULT_REPLY
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr


class City(BaseModel):
    """一座城市"""

    name: str
    population: int


@tool
def get_weather(city: str) -> str:
    """查询城市天气"""
    return f"{city}:晴"


@pytest.fixture
def chat(stack):
    return ChatOpenAI(
        model="flash",
        base_url=stack.base_url,
        api_key=SecretStr("client-key"),
        max_retries=0,
        stream_usage=True,
    )


def test_invoke_returns_text_and_usage(chat):
    answer = chat.invoke("你好")
    assert answer.content == DEFAULT_REPLY
    assert answer.usage_metadata["total_tokens"] > 0


def test_a_stream_adds_up_to_the_answer_and_its_usage(chat):
    whole = None
    for part in chat.stream("你好"):
        whole = part if whole is None else whole + part
    assert whole.content == DEFAULT_REPLY
    assert whole.usage_metadata["output_tokens"] > 0


def test_a_bound_tool_is_called_and_its_result_is_answered(chat):
    bound = chat.bind_tools([get_weather])
    question = HumanMessage("北京天气?")
    first = bound.invoke([question])
    assert first.tool_calls[0]["name"] == "get_weather"
    result = get_weather.invoke(first.tool_calls[0]["args"])
    tool_message = ToolMessage(result, tool_call_id=first.tool_calls[0]["id"])
    assert bound.invoke([question, first, tool_message]).content == "工具的结果:北京:晴"


def test_structured_output_becomes_the_model(chat):
    asker = chat.with_structured_output(City, method="json_schema")
    assert asker.invoke("一座城市") == City(name="北京", population=7)


def test_embeddings_of_documents_keep_their_order(stack):
    embeddings = OpenAIEmbeddings(
        model="flash",
        base_url=stack.base_url,
        api_key=SecretStr("client-key"),
        check_embedding_ctx_length=False,
    )
    assert [vector[0] for vector in embeddings.embed_documents(["a", "你好"])] == [1, 6]

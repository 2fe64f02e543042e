"""What the SDK's user sees of flashgate itself: routing, errors, retries, keys, the call log."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import stack as stacks
from conftest import client_of
from fake_openai import DEFAULT_REPLY

pytestmark = pytest.mark.gateway
HELLO = [{"role": "user", "content": "你好"}]
NO_ROUTES = {"fallback": None, "long_context_threshold": None}
ALONE = {"profiles": {"cloud-main": None}, "routing": NO_ROUTES}
ONE_ATTEMPT = {"routing": {"retry": {"attempts": 1}}}


def ask(client, **options):
    return client.chat.completions.create(**{"model": "flash", "messages": HELLO, **options})


def ask_raw(client, **options):
    create = client.chat.completions.with_raw_response.create
    return create(**{"model": "flash", "messages": HELLO, **options})


def test_the_answer_tells_which_profile_served_it_and_why(client):
    headers = ask_raw(client).headers
    assert headers["x-flashgate-profile"] == "local-flash"
    assert headers["x-flashgate-reason"]
    assert headers["x-flashgate-attempts"] == "1"
    assert headers["x-request-id"]


def test_auto_goes_to_the_default_profile(stack, client):
    assert ask_raw(client, model="auto").headers["x-flashgate-profile"] == "local-flash"
    assert json.loads(stack.flash.requests()[-1]["raw"])["model"] == "flash"


def test_an_input_over_the_threshold_goes_to_the_cloud_under_its_own_name(stack, client):
    text = "请总结下面的合同条款,并列出双方的义务。" * 2500
    answer = ask_raw(client, messages=[{"role": "user", "content": text}])
    assert answer.headers["x-flashgate-profile"] == "cloud-main"
    assert stack.flash.requests() == []
    assert json.loads(stack.cloud.requests()[-1]["raw"])["model"] == "cloud-large"


def test_a_client_key_never_reaches_a_backend_and_each_gets_its_own(stack, client):
    ask(client)
    ask(client, model="cloud-main")
    for backend, key in ((stack.flash, stacks.LOCAL_KEY), (stack.cloud, stacks.CLOUD_KEY)):
        request = backend.requests()[-1]
        assert request["headers"]["authorization"] == f"Bearer {key}"
        assert "client-key" not in json.dumps(request)


def test_fields_that_the_gateway_does_not_know_arrive_unchanged(stack, client):
    extra = {"repetition_penalty": 1.1, "chat_template_kwargs": {"思考": False}, "n_": 10**30}
    ask(client, extra_body=extra)
    sent = json.loads(stack.flash.requests()[-1]["raw"])
    assert {name: sent[name] for name in extra} == extra


def test_an_unknown_model_is_not_found_with_close_matches(client):
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, model="flahs")
    assert caught.value.code == "model_not_found"
    assert "flash" in caught.value.message.replace("flahs", "")


def test_a_call_without_a_model_is_a_bad_request(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", body={"messages": HELLO}, cast_to=object)
    assert caught.value.type == "invalid_request_error"
    assert "model" in caught.value.message


def test_the_list_of_models_has_auto_profiles_and_their_models(client):
    names = {model.id for model in client.models.list()}
    assert {"auto", "local-flash", "flash", "cloud-main", "cloud-large"} <= names


def test_embeddings_stay_on_their_model_when_it_fails(stack_with):
    stack = stack_with(ONE_ATTEMPT)
    stack.flash.script(*[{"status": 500}] * 5)
    with pytest.raises(openai.APIStatusError):
        client_of(stack).embeddings.create(model="flash", input="a")
    assert stack.cloud.requests("/v1/embeddings") == []


def test_a_failing_backend_is_retried_unseen_by_the_client(stack_with):
    stack = stack_with(ALONE)
    stack.flash.script({"status": 500}, {"status": 502})
    answer = ask_raw(client_of(stack))
    assert answer.headers["x-flashgate-attempts"] == "3"
    assert len(stack.flash.requests()) == 3
    (call,) = stack.gateway.calls(1)
    assert (call["attempts"], call["retried"], call["outcome"]) == (3, True, "ok")


def test_the_sdk_does_not_repeat_what_the_gateway_gave_up(stack_with):
    stack = stack_with(ALONE)
    stack.flash.script(*[{"status": 500}] * 30)
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client_of(stack, max_retries=5))
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(stack.flash.requests()) == 3
    time.sleep(0.5)
    assert len(stack.gateway.calls(1)) == 1


def test_a_dead_flash_backend_is_replaced_by_the_cloud(stack_with):
    stack = stack_with()
    stack.flash.stop()
    answer = ask_raw(client_of(stack))
    assert answer.headers["x-flashgate-profile"] == "cloud-main"
    assert json.loads(stack.cloud.requests()[-1]["raw"])["model"] == "cloud-large"


def test_a_stream_that_breaks_before_its_first_word_moves_to_the_cloud(stack_with):
    stack = stack_with()
    stack.flash.script(*[{"cut_after": 0}] * 3)
    chunks = list(ask(client_of(stack), stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == DEFAULT_REPLY
    assert chunks[-1].model == "cloud-large"


def test_a_stream_that_breaks_after_words_raises_in_the_sdk(stack_with):
    stack = stack_with()
    stack.flash.script({"cut_after": 5})
    seen = ""
    with pytest.raises(openai.APIError):
        for chunk in ask(client_of(stack), stream=True):
            seen += chunk.choices[0].delta.content or ""
    assert seen == DEFAULT_REPLY[:10]
    assert stack.cloud.requests() == []


def test_a_profiles_empty_bucket_is_a_rate_limit_that_says_when(stack_with):
    limit = {"rate_limit": {"requests": "1/min", "burst": 1}, "queue": {"max_wait": "1s"}}
    stack = stack_with(stacks.merged(ALONE, {"profiles": {"local-flash": limit}}))
    client = client_of(stack)
    ask(client)
    with pytest.raises(openai.RateLimitError) as caught:
        ask(client)
    assert caught.value.code == "rate_limit_exceeded"
    assert "local-flash" in caught.value.message
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
    assert len(stack.flash.requests()) == 1


def test_a_backends_429_reaches_the_client_with_its_hint(stack_with):
    stack = stack_with(stacks.merged(ALONE, ONE_ATTEMPT))
    stack.flash.script({"status": 429, "headers": {"retry-after": "7"}})
    with pytest.raises(openai.RateLimitError) as caught:
        ask(client_of(stack))
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 7
    assert len(stack.flash.requests()) == 1


def test_a_full_queue_is_unavailable_at_once_with_a_hint(stack_with):
    narrow = {"max_concurrency": 1, "queue": {"max_entries": 1, "max_wait": "20s"}}
    stack = stack_with(stacks.merged(ALONE, {"profiles": {"local-flash": narrow}}))
    stack.flash.pace(first_delay_s=2)
    client = client_of(stack)

    def outcome(_):
        began = time.monotonic()
        try:
            return ask(client) and ("answer", 0.0, None)
        except openai.InternalServerError as error:
            return (error.code, time.monotonic() - began, error.response)

    with ThreadPoolExecutor(5) as pool:
        outcomes = list(pool.map(outcome, range(5)))
    refused = [one for one in outcomes if one[0] == "overloaded"]
    assert len(refused) == 3
    assert sum(one[0] == "answer" for one in outcomes) == 2
    for _, took, response in refused:
        assert took < 1
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) >= 1


def test_a_rejected_backend_key_is_not_the_clients_fault(stack_with):
    stack = stack_with(ALONE)
    stack.flash.script(*[{"status": 401}] * 5)
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client_of(stack))
    assert (caught.value.status_code, caught.value.code) == (502, "upstream_auth_error")


def test_every_call_leaves_one_line_with_the_usage_that_the_client_saw(stack_with):
    stack = stack_with()
    client = client_of(stack)
    whole = ask(client)
    with_usage = {"stream": True, "stream_options": {"include_usage": True}}
    usage = [c.usage for c in ask(client, **with_usage) if c.usage][-1]
    list(ask(client, stream=True))
    with pytest.raises(openai.NotFoundError):
        ask(client, model="flahs")
    time.sleep(0.3)
    calls = stack.gateway.calls(4)
    assert [c["outcome"] for c in calls] == ["ok", "ok", "ok", "client_error"]
    for call, seen in zip(calls, (whole.usage, usage, usage)):
        assert call["input_tokens"] == seen.prompt_tokens
        assert call["output_tokens"] == seen.completion_tokens
        assert call["cached_tokens"] == seen.prompt_tokens_details.cached_tokens
        assert call["token_source"] == "usage"
        assert (call["profile"], call["status"]) == ("local-flash", 200)
    assert calls[3]["status"] == 404


def test_a_departure_is_logged_as_such(stack_with):
    stack = stack_with()
    stack.flash.pace(piece_delay_s=0.03, pieces=1000)
    stream = ask(client_of(stack), stream=True)
    next(iter(stream))
    stream.close()
    (call,) = stack.gateway.calls(1)
    assert (call["status"], call["outcome"]) == (499, "client_closed")

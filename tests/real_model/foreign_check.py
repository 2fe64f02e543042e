"""flashgate in front of an inference server that nobody here wrote (llama.cpp's own).

Usage: foreign_check.py PYTHON MODEL_FILE, where PYTHON is an interpreter that has the server.
Prints PASS or FAIL for each step with what was seen; exits 1 if any failed.
"""

import json
import pathlib
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import stack as stacks  # noqa: E402
from openai import OpenAI  # noqa: E402

QUESTION = [{"role": "user", "content": "Name three rivers. 再说三座山。"}]
START_SECONDS_MAX = 120


class ForeignServer:
    def __init__(self, python, model_file):
        command = [python, str(HERE / "foreign_server.py"), model_file]
        self.child = stacks.Child(command)
        self.base_url = self.child.wait_for(r"^(http://\S+)$", START_SECONDS_MAX).group(1)

    def busy(self):
        url = self.base_url.removesuffix("/v1") + "/slots"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return sum(slot["is_processing"] for slot in json.load(answer))

    def stop(self):
        self.child.stop()


class ForeignStack(stacks.Stack):
    """Client, flashgate, foreign server."""

    def start(self, config, real_model):
        self.flash = self.add(ForeignServer(*sys.argv[1:3]))
        self.base_url = self.flash.base_url
        if stacks.DIRECT:
            return
        profile = {"base_url": self.flash.base_url, "model": "foreign-gemma"}
        config = {"profiles": {"local-flash": profile}, "default": "local-flash"}
        self.gateway = self.add(stacks.Gateway(config, self.folder))
        self.base_url = self.gateway.base_url


def show(title, action):
    try:
        seen, verdict = action(), "PASS"
    except Exception as error:  # Whatever a step meets is what it shows.
        seen, verdict = f"{type(error).__name__}: {error}", "FAIL"
    print(f"{verdict}  {title}: {seen}", flush=True)
    return verdict == "PASS"


def main():
    with ForeignStack() as stack:
        client = OpenAI(base_url=stack.base_url, api_key="x", timeout=120, max_retries=0)
        served = 0

        def ask(**options):
            fields = {"model": "foreign-gemma", "messages": QUESTION, "temperature": 0, "seed": 1}
            return client.chat.completions.create(**{**fields, "max_tokens": 12, **options})

        def logged(usage):
            nonlocal served
            if stacks.DIRECT:
                return ""
            served += 1
            # The list of models left a line too, of a call that no backend served.
            calls = [call for call in stack.gateway.calls(served + 1) if call["profile"]]
            call = calls[served - 1]
            counts = (call["input_tokens"], call["output_tokens"])
            assert counts == (usage.prompt_tokens, usage.completion_tokens), (call, usage)
            return f", log {counts[0]} + {counts[1]} ({call['token_source']})"

        def models():
            return [model.id for model in client.models.list()]

        def whole():
            answer = ask()
            used = answer.usage
            seen = f"{answer.choices[0].message.content!r}, usage {used.prompt_tokens}"
            return f"{seen} + {used.completion_tokens}{logged(used)}"

        def streamed():
            chunks = list(ask(stream=True, stream_options={"include_usage": True}))
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            used = chunks[-1].usage
            assert text and used, chunks
            return f"{len(chunks)} chunks, {text!r}{logged(used)}"

        def unasked_usage():
            chunks = list(ask(stream=True))
            assert all(chunk.usage is None for chunk in chunks), chunks[-1]
            return f"{len(chunks)} chunks, none with usage"

        def departure():
            stream = ask(stream=True, max_tokens=1500)
            next(iter(stream))
            assert stack.flash.busy() == 1
            closed_at = time.monotonic()
            stream.close()
            while stack.flash.busy():
                assert time.monotonic() - closed_at < 5, "the server still generates"
                time.sleep(0.01)
            took = time.monotonic() - closed_at
            assert took < 0.5, took
            return f"the server's slot is free {took * 1000:.0f} ms after the client left"

        steps = (
            ("the list of models", models),
            ("a whole answer", whole),
            ("a streamed answer", streamed),
            ("usage that was not asked for", unasked_usage),
            ("a client that leaves", departure),
        )
        passed = sum(show(title, action) for title, action in steps)
    print(f"{passed} passed, {len(steps) - passed} failed")
    return 0 if passed == len(steps) else 1


if __name__ == "__main__":
    sys.exit(main())

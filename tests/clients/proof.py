"""The steps of scripts/proof.sh: the founding configuration on a real model, shown one by one.

Usage: proof.py FOUNDING_YAML. Prints PASS or FAIL for each step with what was seen; exits 1 if any
failed. "flash" is the real model; "cloud" is the scripted backend, because reading 16,000 tokens
takes the small model minutes on two cores.
"""

import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import stack as stacks
from openai import OpenAI

HERE = pathlib.Path(__file__).resolve().parent
ADDRESSES = ("http://127.0.0.1:8000/v1", "https://your-endpoint/v1")
QUESTION = [{"role": "user", "content": "用三句话解释什么是KV Cache"}]
CLAUSE = "第七条 供应商应当在约定期限内交付货物,并保证货物符合双方确认的质量标准。\n"
LONG_INPUT = [{"role": "user", "content": "请总结下面的合同:\n" + CLAUSE * 1000}]


class Gateway:
    """flashgate with the derived file as it is: the call log comes on standard output."""

    def __init__(self, path, folder):
        self.log_path = folder / "calls.jsonl"
        env = {**os.environ, "LOCAL_KEY": stacks.LOCAL_KEY, "CLOUD_KEY": stacks.CLOUD_KEY}
        command = [stacks.gateway_binary(), "serve", "--config", str(path)]
        command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        command += ["--data-dir", str(folder / "data")]
        self.child = stacks.Child(command, env=env, stream="stderr", stdout=self.log_path)
        match = self.child.wait_for(stacks.SERVING, stacks.START_SECONDS_MAX)
        self.base_url, self.admin_url = match.group(1), match.group(2)
        self.seen = 0

    def next_call(self):
        """The log line of the call that was just made."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            lines = self.log_path.read_text().split("\n")[:-1]
            if len(lines) > self.seen:
                self.seen += 1
                return json.loads(lines[self.seen - 1])
            time.sleep(0.02)
        raise AssertionError("no line in the call log within 5 s")

    def stop(self):
        self.child.stop()


class Proof:
    def __init__(self, founding):
        self.failed = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="flashgate-proof-"))
        self.founding = pathlib.Path(founding)
        self.parts = []

    def step(self, title, action):
        try:
            seen, verdict = action(), "PASS"
        except Exception as error:  # Whatever a step meets is what it shows.
            seen, verdict = f"{type(error).__name__}: {error}", "FAIL"
            self.failed += 1
        print(f"{verdict}  {title}")
        for line in str(seen).splitlines():
            print(f"      {line}")
        sys.stdout.flush()
        return verdict == "PASS"

    def start_backends(self):
        self.flash = stacks.RealModel()
        self.parts.append(self.flash)
        self.cloud = stacks.FakeBackend("your-model-name")
        self.parts.append(self.cloud)
        return f"flash, the real model: {self.flash.base_url}\ncloud: {self.cloud.base_url}"

    def start_gateway(self):
        original = self.founding.read_text()
        derived = original
        for old, new in zip(ADDRESSES, (self.flash.base_url, self.cloud.base_url)):
            assert derived.count(old) == 1, f"{old} is not in {self.founding}"
            derived = derived.replace(old, new)
        path = self.folder / "founding.yaml"
        path.write_text(derived)
        lines = (original.splitlines(), derived.splitlines())
        diff = [d for d in difflib.unified_diff(*lines, lineterm="", n=0) if d[0] in "+-"][2:]
        self.gateway = Gateway(path, self.folder)
        self.parts.insert(0, self.gateway)
        options = {"api_key": "local", "timeout": 120.0, "max_retries": 0}
        self.client = OpenAI(base_url=self.gateway.base_url, **options)
        return "\n".join(["what differs from the founding file:", *diff, self.gateway.base_url])

    def ask(self, messages=QUESTION, **options):
        """A call through the Python SDK: its headers, its text, its usage, its log line."""
        fields = {"model": "flash", "messages": messages, "max_tokens": 24, "temperature": 0.3}
        create = self.client.chat.completions.with_raw_response.create
        raw = create(**{**fields, **options})
        answer = raw.parse()
        if not options.get("stream"):
            text, usage = answer.choices[0].message.content, answer.usage
        else:
            chunks = list(answer)
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            usage = chunks[-1].usage
        assert text, "the answer is empty"
        return raw.headers, text, usage, self.gateway.next_call()

    def check(self, profile, messages=QUESTION, **options):
        headers, text, usage, call = self.ask(messages, **options)
        assert headers["x-flashgate-profile"] == profile == call["profile"], dict(headers)
        counts = (call["input_tokens"], call["output_tokens"])
        assert counts == (usage.prompt_tokens, usage.completion_tokens), (counts, usage)
        assert call["outcome"] == "ok", call
        kept = ("profile", "reason", "attempts", "input_tokens", "output_tokens", "ttft_ms")
        line = {name: call.get(name) for name in kept}
        return (
            f"x-flashgate-profile: {profile}\n"
            f"x-flashgate-reason: {headers.get('x-flashgate-reason')}\n"
            f"answer: {text[:60]!r}\nusage: {usage.prompt_tokens} + {usage.completion_tokens}\n"
            f"log: {json.dumps(line, ensure_ascii=False)}"
        )

    def streamed(self, profile, messages=QUESTION):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        return self.check(profile, messages, **options)

    def node(self):
        command = ["node", str(HERE / "proof_node.mjs"), self.gateway.base_url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        whole, stream = self.gateway.next_call(), self.gateway.next_call()
        seen = json.loads(done.stdout)
        for call, usage in ((whole, seen["whole"]), (stream, seen["stream"])):
            counts = (call["input_tokens"], call["output_tokens"])
            assert counts == (usage["prompt_tokens"], usage["completion_tokens"]), (call, usage)
        assert seen["profile"] == "local-flash", seen
        return json.dumps(seen, ensure_ascii=False)

    def long_input(self):
        tokens = self.flash.tokens(LONG_INPUT[0]["content"])
        assert tokens > 16000, tokens
        seen = f"the model's own tokenizer: {tokens} tokens\n{self.check('cloud-main', LONG_INPUT)}"
        reached = [json.loads(request["raw"])["model"] for request in self.cloud.requests()]
        assert reached == ["your-model-name"], reached
        return seen

    def kill_flash(self):
        process = self.flash.child.process
        process.kill()
        process.wait()
        return f"{self.check('cloud-main')}\n--- streamed\n{self.streamed('cloud-main')}"

    def metrics(self):
        url = self.gateway.admin_url.rstrip("/") + "/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
        pattern = r"^flashgate_requests_total\{.*\} [1-9].*$"
        counted = re.findall(pattern, text, re.MULTILINE)
        for profile in ("local-flash", "cloud-main"):
            assert any(f'profile="{profile}"' in line for line in counted), counted
        return "\n".join(counted)

    def end(self):
        process = self.gateway.child.process
        process.terminate()
        code = process.wait(15)
        assert code == 0, f"exit code {code}"
        return "SIGTERM: exit code 0"

    def run(self):
        try:
            started = self.step("the backends start", self.start_backends) and self.step(
                "flashgate starts with the founding file, only base_url replaced",
                self.start_gateway,
            )
            if started:
                self.steps()
        finally:
            for part in self.parts:
                part.stop()
        print("proof: " + (f"{self.failed} steps failed" if self.failed else "every step passed"))
        return 1 if self.failed or not started else 0

    def steps(self):
        self.step("Python SDK, whole answer from the real model", lambda: self.check("local-flash"))
        self.step("Python SDK, streamed, with usage", lambda: self.streamed("local-flash"))
        self.step("Node SDK, whole and streamed", self.node)
        self.step("over 16,000 input tokens go to the cloud profile", self.long_input)
        self.step("the flash backend is killed, the cloud answers", self.kill_flash)
        self.step("metrics count both profiles", self.metrics)
        self.step("flashgate ends cleanly", self.end)


if __name__ == "__main__":
    sys.exit(Proof(sys.argv[1]).run())

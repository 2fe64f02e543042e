"""flashgate from Python: pip install openai; python chat.py

Only base_url differs from any other use of the SDK. LLM_BASE_URL and LLM_API_KEY override it.
"""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.getenv("LLM_BASE_URL", "http://127.0.0.1:8080/v1"),
    api_key=os.getenv("LLM_API_KEY", "local"),
    timeout=60.0,
    max_retries=0,  # flashgate retries and falls back; a second layer would multiply it
)

messages = [{"role": "user", "content": "用三句话解释什么是KV Cache"}]

# A whole answer, and which profile gave it.
raw = client.chat.completions.with_raw_response.create(
    model="auto", messages=messages, max_tokens=64
)
answer = raw.parse()
print(answer.choices[0].message.content)
print("profile:", raw.headers.get("x-flashgate-profile"), "usage:", answer.usage.total_tokens)

# The same, streamed; the last chunk has the usage.
stream = client.chat.completions.create(
    model="auto",
    messages=messages,
    max_tokens=64,
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    if chunk.usage:
        print("\nusage:", chunk.usage.total_tokens)

#!/usr/bin/env bash
# flashgate with curl. LLM_BASE_URL and LLM_API_KEY override the defaults.
set -euo pipefail
base_url="${LLM_BASE_URL:-http://127.0.0.1:8080/v1}"
key="${LLM_API_KEY:-local}"

# A whole answer; -i shows x-flashgate-profile and x-flashgate-reason.
curl -sS -i --fail-with-body "$base_url/chat/completions" \
  -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
  -d '{"model": "auto", "max_tokens": 64,
       "messages": [{"role": "user", "content": "用三句话解释什么是KV Cache"}]}'
echo

# The same, streamed.
curl -sS -N --fail-with-body "$base_url/chat/completions" \
  -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
  -d '{"model": "auto", "max_tokens": 64, "stream": true,
       "messages": [{"role": "user", "content": "用三句话解释什么是KV Cache"}]}'

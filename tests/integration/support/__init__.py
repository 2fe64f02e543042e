"""Harness of the integration tests: byte-level fake backend and client around the real binary.

wire.py      bytes of requests, answers, chunks and SSE events
sse.py       strict event-stream decoder
backend.py   FakeBackend, which answers by script
client.py    FakeClient, a raw socket with a strict HTTP/1.1 reader
gateway.py   Gateway, the process under test: ports, call log, metrics
oracle.py    assert_at_rest, what must hold after every test
"""

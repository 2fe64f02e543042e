"""The client snippets in examples/clients run as they stand."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from fake_openai import DEFAULT_REPLY

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "clients"
PROGRAMS = {"chat.py": [sys.executable], "chat.mjs": ["node"], "chat.sh": ["bash"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_prints_a_whole_and_a_streamed_answer(stack, tmp_path, name):
    # A copy, so that Node finds the packages beside it.
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    copy = shutil.copy(EXAMPLES / name, tmp_path)
    env = {**os.environ, "LLM_BASE_URL": stack.base_url}
    command = [*PROGRAMS[name], copy]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert DEFAULT_REPLY in done.stdout
    bodies = [json.loads(request["raw"]) for request in stack.flash.requests()]
    assert [bool(body.get("stream")) for body in bodies] == [False, True]

"""The commands over a configuration file: what they print, where, and how they end."""
import json
import os
import shutil
import subprocess

import pytest

from support import wire
from support.gateway import ROOT, binary

FOUNDING = ROOT / "examples" / "founding.yaml"
KEYS = {"LOCAL_KEY": "local-secret-1", "CLOUD_KEY": "cloud-secret-2"}
GOOD = """version: 1
profiles:
  small: {base_url: "http://127.0.0.1:9/v1", model: flash, aliases: [mini], context_length: 4k}
  large: {base_url: "http://127.0.0.1:9/v1", model: big}
default: small
routing:
  long_context_threshold: 1000
  fallback: large
  rules:
    - {name: hard, when: {task: [formulas]}, to: large}
"""
BAD = """profiles:
  a: {base_url: "http://x/v1", model: m, timeot: 5, timeout: 5parsecs}
default: b
version: 1
version: 1
"""


def run(*args, env=None, stdin="", cwd=None, seconds=10):
    """Runs the program; returns the finished process with text streams."""
    clean = {k: v for k, v in os.environ.items()
             if k not in KEYS and not k.startswith(("FLASHGATE_", "XDG_"))}
    return subprocess.run([binary(), *map(str, args)], input=stdin, capture_output=True, text=True,
                          env={**clean, "HOME": str(cwd or "/nonexistent"), **(env or {})},
                          cwd=cwd, timeout=seconds, check=False)


@pytest.fixture
def good(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    return file


def test_the_founding_file_passes_unchanged():
    """The founding document's file works as printed."""
    done = run("check", FOUNDING, env=KEYS)
    assert done.returncode == 0 and "ok, 2 profiles" in done.stdout, done.stdout
    assert not done.stderr and "secret" not in done.stdout


def test_an_unset_variable_is_named():
    """CFG-01: an error for the cloud's key, a warning for a backend on this machine."""
    done = run("check", FOUNDING)
    assert done.returncode == 1
    assert "error: the variable CLOUD_KEY is not set" in done.stdout
    assert "warning: the variable LOCAL_KEY is not set" in done.stdout


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_variable_is_no_key(value):
    """CFG-01: never an empty key."""
    done = run("check", FOUNDING, env={**KEYS, "CLOUD_KEY": value})
    assert done.returncode == 1 and "CLOUD_KEY" in done.stdout, done.stdout


def test_serve_refuses_the_same_file():
    """CFG-01: what check refuses does not start."""
    done = run("serve", "--config", FOUNDING, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    assert done.returncode == 1 and "CLOUD_KEY" in done.stderr and not done.stdout


def test_the_founding_file_serves(gateway, tmp_path):
    """The founding document's file runs; its client says `model: flash`."""
    gw = gateway(FOUNDING.read_text(), env={**KEYS, "HOME": str(tmp_path)})
    listed = gw.request(method="GET", path="/v1/models").json()
    assert {"local-flash", "cloud-main", "flash", "auto"} <= {m["id"] for m in listed["data"]}
    assert gw.request(method="GET", path="/readyz").status == 200


def test_every_error_is_printed_at_once(tmp_path):
    """CFG-02: with place, line, caret and a way out."""
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    done = run("check", file)
    assert done.returncode == 1 and done.stdout.count("error: ") == 4, done.stdout
    for place, word in (("2:42", "timeot"), ("2:62", "duration"), ("3:10", "'b'"),
                        ("5:1", "twice")):
        assert f"{file}:{place}: error:" in done.stdout and word in done.stdout, done.stdout
    assert "did you mean 'timeout'?" in done.stdout and "^" in done.stdout
    assert "\x1b" not in done.stdout, "colour without a terminal"


def test_the_findings_are_json_when_asked(tmp_path):
    """check --json."""
    file = tmp_path / "bad.yaml"
    file.write_text(BAD)
    done = run("check", "--json", file)
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["ok"] is False and found["errors"] == 4
    first = found["diagnostics"][0]
    assert (first["line"], first["column"], first["severity"]) == (2, 42, "error")


@pytest.mark.parametrize("args", [["check", "nothing.yaml"], ["check", "--what"], [], ["what"],
                                  ["check"], ["explain", "--config"], ["serve", "--workers", "-1"]])
def test_wrong_usage_ends_with_two(tmp_path, args):
    """Stable exit codes: nothing on stdout but help."""
    done = run(*args, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\0", b"{", b"[" * 100_000, b"a: &a [*a]",
                                     b"profiles: 5", b"- a", b"a: b: c", b"\t", b"---\n---\n"])
def test_a_file_that_is_no_configuration_ends_with_one(tmp_path, content):
    """CFG-03's kind: a message, in bounded time, never a crash."""
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    done = subprocess.run([binary(), "check", file], capture_output=True, timeout=10, check=False)
    assert done.returncode == 1 and b"error" in done.stdout, (done.returncode, done.stdout)


def test_upgrade_keeps_the_text(tmp_path):
    """check --upgrade: comments and order stay; a second run changes nothing."""
    first = run("check", "--upgrade", FOUNDING, env=KEYS)
    assert first.returncode == 0
    assert first.stdout.replace("version: 1\n", "", 1) == FOUNDING.read_text()
    file = tmp_path / "up.yaml"
    file.write_text(first.stdout)
    assert run("check", "--upgrade", file, env=KEYS).stdout == first.stdout


@pytest.mark.parametrize("how", ["variable", "here", "xdg", "llm"])
def test_the_file_is_found_where_the_documentation_says(tmp_path, how):
    """Search order: each place in turn."""
    place = {"variable": "x/any.yaml", "here": "flashgate.yaml", "xdg": "c/flashgate/config.yaml",
             "llm": ".llm/config.yaml"}[how]
    env = {"variable": {"FLASHGATE_CONFIG": str(tmp_path / place)},
           "xdg": {"XDG_CONFIG_HOME": str(tmp_path / "c")}}.get(how, {})
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(FOUNDING, tmp_path / place)
    done = run("check", env={**KEYS, **env}, cwd=tmp_path)
    assert done.returncode == 0 and "ok, 2 profiles" in done.stdout, done.stdout + done.stderr


def explain(good, body, *args):
    done = run("explain", "--config", good, "-", "--json", *args, stdin=json.dumps(body))
    return done.returncode, json.loads(done.stdout)


def test_explain_names_every_candidate_and_why(good):
    """explain: kept, in order."""
    code, told = explain(good, wire.chat_body("hi", model="auto"))
    assert code == 0 and told["ok"] and told["rule"] == "default" and told["task"]
    assert [c["profile"] for c in told["candidates"]] == ["small", "large"]
    assert all(c["kept"] and c["why"] for c in told["candidates"])


def test_explain_says_what_was_dropped(good):
    """explain: a window that is too small."""
    code, told = explain(good, wire.chat_body("word " * 9000, model="auto"))
    assert code == 0
    small = next(c for c in told["candidates"] if c["profile"] == "small")
    assert not small["kept"] and small["dropped"] and small["why"], small
    assert told["candidates"][0]["profile"] == "large"


@pytest.mark.parametrize("header,rule", [("x-flashgate-task: formulas", "hard"),
                                         ("X-Flashgate-Task:formulas", "hard"),
                                         ("x-other: formulas", "default")])
def test_explain_takes_headers(good, header, rule):
    """explain -H."""
    code, told = explain(good, wire.chat_body("hi", model="auto"), "-H", header)
    assert code == 0 and told["rule"] == rule, told


@pytest.mark.parametrize("body,code", [({"model": "mni", "messages": []}, "model_not_found"),
                                       ({"messages": []}, "invalid_request"),
                                       ({"model": 5}, "invalid_request"), ([], "invalid_request")])
def test_explain_says_what_would_be_refused(good, body, code):
    """explain: exit code 1 and the error that a client would get."""
    done, told = explain(good, body)
    assert done == 1 and told["ok"] is False and told["error"]["code"] == code, told


def test_explain_and_the_gateway_agree(gateway, backends):
    """explain can't lie: the same function decides (before any correction from usage)."""
    pair = backends(), backends()
    silent = {k: v for k, v in wire.completion().items() if k != "usage"}
    for one in pair:
        one.always(wire.json_response(200, silent))
    gw = gateway({"version": 1, "profiles": {
        "small": {"base_url": pair[0].url, "model": "flash"},
        "large": {"base_url": pair[1].url, "model": "big"}}, "default": "small", "routing": {
            "long_context_threshold": 300, "fallback": "large", "rules": [
                {"name": "tooled", "when": {"tools": True}, "to": "large"}]}})
    for more in ({}, {"model": "big"}, {"content": "word " * 900},
                 {"tools": [{"type": "function"}]}):
        body = wire.chat_body(**{"model": "auto", **more})
        answer = gw.request(body)
        _, told = explain(gw.config_file, body)
        assert answer.header("x-flashgate-rule") == told["rule"], told
        assert answer.header("x-flashgate-profile") == told["candidates"][0]["profile"]
        assert answer.header("x-flashgate-reason") == told["reason"]


def test_the_schema_is_json_and_knows_the_founding_keys():
    """schema: draft 7, and no key of the founding file is unknown to it."""
    done = run("schema")
    schema = json.loads(done.stdout)
    assert done.returncode == 0 and "draft-07" in schema["$schema"] and not done.stderr
    assert {"profiles", "default", "routing", "version"} <= set(schema["properties"])
    assert (ROOT / "deploy" / "flashgate.schema.json").read_text() == done.stdout


@pytest.mark.parametrize("example", ["founding", "full", "minimal", "rules"])
def test_every_example_passes(example):
    """Documentation that is not checked rots."""
    names = ("LOCAL_KEY", "CLOUD_KEY", "AZURE_KEY", "ADMIN_TOKEN", "HTTPS_PROXY", "OPENAI_API_KEY")
    done = run("check", "--json", ROOT / "examples" / f"{example}.yaml",
               env={n: "http://127.0.0.1:9" for n in names})
    found = json.loads(done.stdout)
    real = [d for d in found["diagnostics"] if d["severity"] == "error"
            and "file" not in d["message"] and "variable" not in d["message"]
            and "read" not in d["message"]]
    assert not real, real

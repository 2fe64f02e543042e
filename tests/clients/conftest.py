"""Fixtures: `stack` is shared by the tests of a module, `stack_with` starts one for a single test
with its own configuration. Tests marked `gateway` are about flashgate itself and are left out when
FLASHGATE_DIRECT=1 runs the suite against the fake backend alone; `real_model` by --quick."""

import pathlib
import sys

import pytest
from openai import OpenAI

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stack as stacks  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave the real model out")


def pytest_configure(config):
    config.addinivalue_line("markers", "gateway: needs flashgate in front")
    config.addinivalue_line("markers", "real_model: needs the real model")


def pytest_collection_modifyitems(config, items):
    unwanted = {"gateway"} if stacks.DIRECT else set()
    if config.getoption("--quick"):
        unwanted.add("real_model")
    out = [i for i in items if any(i.get_closest_marker(name) for name in unwanted)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [i for i in items if i not in out]


@pytest.fixture(scope="module")
def module_stack():
    with stacks.Stack() as running:
        yield running


@pytest.fixture
def stack(module_stack):
    module_stack.flash.call("reset", {})
    module_stack.cloud.call("reset", {})
    return module_stack


@pytest.fixture
def stack_with():
    running = []

    def start(config=None, **options):
        running.append(stacks.Stack(config, **options))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def client_of(stack, **options):
    settings = {"api_key": "client-key", "timeout": 30.0, "max_retries": 0, **options}
    return OpenAI(base_url=stack.base_url, **settings)


@pytest.fixture
def client(stack):
    return client_of(stack)

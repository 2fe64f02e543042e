"""A client that vanishes without FIN: its packets are lost in a network namespace of the test.

Needs no firewall: gateway and backend run in one namespace, the client in another, and the wire
between them (a veth pair) is taken down. Namespaces need root or unprivileged user namespaces.
"""
import ctypes
import os
import subprocess
import threading
import time

from support import wire
from support.backend import FakeBackend, Sleep
from support.client import FakeClient
from support.gateway import Gateway, config, profile

NEW_NETWORK = 0x40000000


def own_network():
    """Put the calling thread, and what it starts, into a new network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare of the network failed: run as root, or under "
                                          "`unshare -rn`")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def in_thread(function):
    """Run `function` in a thread of its own and pass on what it raises."""
    caught = []

    def run():
        try:
            function()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


def vanish(folder, steps, limits):
    """A stream to a client whose wire is cut; returns (log line, seconds until it was written)."""
    found = {}
    other_ready, wired, read_some, cut = (threading.Event() for _ in range(4))

    def client_side():
        own_network()
        found["tid"] = threading.get_native_id()
        other_ready.set()
        assert wired.wait(5)
        ip("link", "set", "lo", "up")
        ip("addr", "add", "10.77.0.2/24", "dev", "far")
        ip("link", "set", "far", "up")
        client = FakeClient(found["port"], host="10.77.0.1", receive_buffer=65_536)
        client.send_chat(stream=True)
        client.read_body(client.read_head(), limit=200)
        ip("link", "set", "far", "down")
        read_some.set()
        cut.wait(30)
        client.close()

    def server_side():
        own_network()
        assert other_ready.wait(5)
        ip("link", "set", "lo", "up")
        ip("link", "add", "near", "type", "veth", "peer", "name", "far")
        ip("link", "set", "far", "netns", str(found["tid"]))
        ip("addr", "add", "10.77.0.1/24", "dev", "near")
        ip("link", "set", "near", "up")
        backend = FakeBackend()
        backend.then(*steps)
        gw = Gateway({**config(profile(backend)), "auth": "none", **limits}, folder,
                     listen="10.77.0.1:0")
        try:
            found["port"] = gw.port
            wired.set()
            assert read_some.wait(10)
            started = time.monotonic()
            found["line"] = gw.wait_lines(1, 12)[0]
            found["took"] = time.monotonic() - started
            backend.wait_closed(backend.requests[0].connection, 2)
            assert gw.alive()
        finally:
            cut.set()
            gw.process.kill()
            gw.process.wait()
            backend.close()

    threads = [in_thread(client_side), in_thread(server_side)]
    for thread, _ in threads:
        thread.join(40)
    for _, caught in threads:
        if caught:
            raise caught[0]
    return found["line"], found["took"]


def deltas(pause, count):
    steps = [wire.H200]
    for n in range(count):
        steps += [wire.chunk(wire.delta("x" * 50)), Sleep(pause)]
    return steps


def test_a_vanished_client_ends_by_the_stall_time_out(tmp_path):
    """CXL-07: the stream goes on, nothing is acknowledged."""
    line, took = vanish(tmp_path, deltas(0.05, 600), {"limits": {"client_stall": "2s"}})
    assert line["outcome"] in ("client_stalled", "client_closed"), line
    assert took < 8, took


def test_heartbeats_make_a_vanished_client_visible(tmp_path):
    """CXL-07: the backend is silent, so that only our own writes can tell."""
    line, took = vanish(tmp_path, [wire.H200 + wire.chunk(wire.delta("y" * 50)) * 4, Sleep(30)],
                        {"limits": {"client_stall": "2s"}, "heartbeat": {"interval": "200ms"}})
    assert line["outcome"] in ("client_stalled", "client_closed"), line
    assert took < 8, took


def test_the_wire_can_be_cut_here():
    """Says early and clearly what is missing when namespaces are not to be had."""
    assert os.access("/proc/self/ns/net", os.R_OK)
    thread, caught = in_thread(own_network)
    thread.join()
    assert not caught, caught[0]

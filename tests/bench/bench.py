"""Runs every row of the benchmark for every variant, interleaved, and reports medians.

Started by run.sh. The order of the variants is reversed each repetition; ratios are taken within
a repetition. A measurement during which other programs used much CPU is repeated.
"""

import argparse
import contextlib
import fcntl
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import deep
import report
from proxies import Yard, await_port, free_port, versions

FOREIGN_CPU_MAX = 0.10  # share of both cores used by programs that are not part of the benchmark
ATTEMPTS = 4
HOLD_SECONDS = 2

ROWS = [
    {"name": "small", "title": "1.5 KB request, 0.6 KB reply, 64 connections", "kind": "load",
     "connections": 64, "body": 1536, "seconds": 2, "variants": "direct nginx haproxy flashgate"},
    {"name": "latency", "title": "the same, 8 connections", "kind": "load", "connections": 8,
     "body": 1536, "seconds": 1.5, "variants": "direct nginx haproxy flashgate"},
    {"name": "slow", "title": "the same, 64 connections, backend answers after 20 ms",
     "kind": "load", "connections": 64, "body": 1536, "delay_us": 20000, "seconds": 1.5,
     "variants": "direct nginx haproxy flashgate"},
    {"name": "20k", "title": "20 KB request, 64 connections", "kind": "load", "connections": 64,
     "body": 20_000, "seconds": 1.5, "variants": "nginx haproxy flashgate"},
    {"name": "200k", "title": "200 KB request, 64 connections", "kind": "load", "connections": 64,
     "body": 200_000, "seconds": 2, "variants": "nginx haproxy flashgate"},
    {"name": "sse-cpu", "title": "300 streams, one chunk per 10 ms each", "kind": "streams",
     "mode": "window", "streams": 300, "gap_us": 10_000, "seconds": 2,
     "variants": "nginx haproxy flashgate"},
    {"name": "sse-paced", "title": "200 streams to the end: role, 64 deltas at 20 ms, [DONE]",
     "kind": "streams", "mode": "paced", "streams": 200, "gap_us": 20_000, "deltas": 64,
     "variants": "direct nginx haproxy flashgate"},
    {"name": "sse-1000", "title": "1,000 streams to the end: role, 24 deltas at 100 ms, [DONE]",
     "kind": "streams", "mode": "paced", "streams": 1000, "gap_us": 100_000, "deltas": 24,
     "variants": "direct nginx haproxy flashgate"},
    {"name": "idle", "title": "memory, 1,000 open silent streams", "kind": "idle",
     "streams": 1000, "variants": "nginx haproxy flashgate"},
    {"name": "peers", "title": "the first row against AI gateways", "kind": "load",
     "connections": 64, "body": 1536, "seconds": 4, "warm": 3,
     "variants": "nginx flashgate portkey litellm", "peers": True},
]


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="2 repetitions")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rows", help="comma-separated: " + ",".join(r["name"] for r in ROWS))
    parser.add_argument("--variants", help="comma-separated; nginx-log adds nginx's access log")
    parser.add_argument("--peers", action="store_true", help="also portkey, litellm if installed")
    parser.add_argument("--peers-dir", default=".peers",
                        help="npm prefix of @portkey-ai/gateway, and venv/ with litellm")
    parser.add_argument("--syscalls", action="store_true", help="count system calls (strace)")
    parser.add_argument("--frontier", action="store_true",
                        help="requests/s while P99 stays below a bound, over 1 to 256 connections")
    parser.add_argument("--profile", action="store_true", help="sample with perf")
    parser.add_argument("--write", help="write the report to this Markdown file too")
    parser.add_argument("--json", help="write every measurement to this file")
    parser.add_argument("--lock", help="hold this lock file during each row, so that others wait")
    parser.add_argument("--proxy-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.repetitions = 2
    return chosen


@contextlib.contextmanager
def exclusive(path):
    if not path:
        yield
        return
    with open(path, "a", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def machine_busy_seconds():
    """CPU seconds all cores have spent at work, the hypervisor's theft included."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def process_seconds(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Bench:
    def __init__(self, chosen, scratch):
        self.chosen = chosen
        self.programs = Path(chosen.programs)
        os.sched_setaffinity(0, {chosen.load_core})
        self.port = free_port()
        self.yard = Yard(scratch, self.port, chosen.proxy_core, os.environ["FLASHGATE_BIN"],
                         chosen.peers_dir)
        self.running = {}
        log = Path(scratch) / "backend"
        self.backend = subprocess.Popen([str(self.programs / "bench_backend"), "--port",
                                         str(self.port)], stderr=open(log, "wb"))
        await_port(self.port, self.backend, log)

    def close(self):
        for proxy in self.running.values():
            proxy.stop()
        self.backend.kill()
        self.backend.wait()

    def behave(self, row, hold=0):
        query = (f"delay_us={row.get('delay_us', 0)}&deltas={row.get('deltas', 1 << 40)}"
                 f"&gap_us={row.get('gap_us', 1000)}&hold={hold}")
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/bench/set?{query}") as answer:
            return json.load(answer)

    def variants(self, row):
        wanted = row["variants"].split()
        if self.chosen.variants:
            named = self.chosen.variants.split(",")
            wanted = [v for v in wanted if v in named]
            if "nginx-log" in named and row["kind"] == "load":
                wanted.append("nginx-log")
        return [v for v in wanted if self.yard.available(v)]

    def proxy(self, name):
        if name not in self.running:
            self.running[name] = self.yard.start(name)
        return self.running[name]

    def command(self, proxy, row, **more):
        program = "bench_load" if row["kind"] == "load" else "bench_streams"
        given = {**{k: row[k] for k in ("connections", "body", "seconds", "warm", "mode",
                                        "streams", "gap_us", "deltas") if k in row}, **more}
        command = [str(self.programs / program), "--port", str(proxy.port)]
        for name, value in given.items():
            command += ["--" + name, str(value)]
        for header in proxy.headers:
            command += ["--header", header]
        command += ["--authorization", "Bearer " + proxy.key]
        if proxy.pids():
            command += ["--pids", ",".join(map(str, proxy.pids()))]
        return command

    def measure(self, name, row):
        """One measurement, repeated while the machine is busy with something else."""
        for attempt in range(ATTEMPTS):
            proxy = self.proxy(name)
            self.behave(row)
            counted = [*proxy.pids(), self.backend.pid]
            begin = (time.monotonic(), machine_busy_seconds(), process_seconds(counted),
                     own_seconds())
            done = subprocess.run(self.command(proxy, row), capture_output=True, text=True,
                                  check=True)
            busy = machine_busy_seconds() - begin[1]
            ours = process_seconds(counted) - begin[2] + own_seconds() - begin[3]
            result = json.loads(done.stdout)
            result["foreign"] = max(0, busy - ours) / 2 / (time.monotonic() - begin[0])
            result["bad"] = self.behave(row)["bad"]
            if done.stderr:
                print(f"{row['name']} {name}: {done.stderr.strip()[:600]}", file=sys.stderr)
            if result["foreign"] <= FOREIGN_CPU_MAX:
                break
        result["attempts"] = attempt + 1
        return result

    def measure_idle(self, name, row):
        """Memory of a fresh, warmed process before and with the silent streams."""
        proxy = self.yard.start(name)
        try:
            result = {"start_rss": proxy.rss_bytes()}
            self.behave({})
            warm = {"kind": "load", "connections": 64, "body": 1536, "seconds": 0.3}
            subprocess.run(self.command(proxy, warm), stdout=subprocess.DEVNULL, check=True)
            time.sleep(1)
            result["warm_rss"] = proxy.rss_bytes()
            self.behave({}, hold=1)
            holder = subprocess.Popen(self.command(proxy, row, mode="hold"), text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            opened = holder.stdout.readline().strip() == "open"
            time.sleep(HOLD_SECONDS)
            result["open_rss"] = proxy.rss_bytes()
            result["per_stream"] = (result["open_rss"] - result["warm_rss"]) / row["streams"]
            answer = json.loads(holder.communicate()[0].splitlines()[-1])
            result["errors"] = answer["errors"] + (0 if opened else 1)
            return result
        finally:
            proxy.stop()

    def run_row(self, row):
        names = self.variants(row)
        results = {name: [] for name in names}
        with exclusive(self.chosen.lock):
            for repetition in range(self.chosen.repetitions):
                for name in names if repetition % 2 == 0 else reversed(names):
                    step = self.measure_idle if row["kind"] == "idle" else self.measure
                    results[name].append(step(name, row))
        return results


def main():
    chosen = options()
    wanted = chosen.rows.split(",") if chosen.rows else [r["name"] for r in ROWS]
    rows = [r for r in ROWS if r["name"] in wanted and (chosen.peers or not r.get("peers"))]
    with tempfile.TemporaryDirectory(prefix="flashgate-bench-") as scratch:
        bench = Bench(chosen, scratch)
        try:
            names = [n for n in ("nginx", "haproxy", "flashgate", "litellm")
                     if bench.yard.available(n) and (chosen.peers or n != "litellm")]
            text = report.header(chosen, versions(bench.yard, names))
            everything = {}
            for row in rows:
                if not bench.variants(row):
                    continue
                results = everything[row["name"]] = bench.run_row(row)
                part = report.table(row, results)
                print(part, flush=True)
                text += part + "\n"
            with exclusive(chosen.lock):
                text += deep.sections(bench, chosen)
        finally:
            bench.close()
    text += report.footer(chosen.write)
    if chosen.write:
        Path(chosen.write).write_text(text, encoding="utf-8")
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(everything, indent=1), encoding="utf-8")
    failed = report.failures(everything)
    if failed:
        sys.exit("errors: " + "; ".join(failed))


if __name__ == "__main__":
    main()

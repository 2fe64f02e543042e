"""Optional sections: system calls per request (strace), samples (perf), the latency frontier."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import report

UNARY = {"name": "small", "kind": "load", "connections": 64, "body": 1536, "seconds": 3}
COUNTED_UNARY = {**UNARY, "seconds": 60, "warm": 0}
COUNTED_STREAMS = {"name": "sse", "kind": "streams", "mode": "paced", "streams": 50,
                   "gap_us": 25_000, "deltas": 200}
COUNTED_REQUESTS = 20_000
FRONTIER_CONNECTIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
FRONTIER_P99_MS = [1, 5, 10]
CALLS_SHOWN = 10
PERF_HERTZ = 1999
SETTLE_SECONDS = 1


def sections(bench, chosen):
    names = [v for v in ("nginx", "haproxy", "flashgate") if bench.yard.available(v)]
    text = ""
    if chosen.syscalls:
        text += show(syscall_table(bench, names, COUNTED_UNARY, "request"))
        text += show(syscall_table(bench, names, COUNTED_STREAMS, "frame"))
    if chosen.frontier:
        text += show(frontier(bench, names, chosen.repetitions))
    if chosen.profile:
        for name in names:
            show(profile(bench, name, UNARY))
    return text


def show(part):
    print(part, flush=True)
    return part + "\n"


def count_calls(bench, name, row, unit):
    """System calls by name over a fixed amount of work, and that amount.

    strace attaches to the idle proxy and leaves it idle again, so no call and no work is cut in
    half; setting up the connections is included and small.
    """
    proxy = bench.proxy(name)
    bench.behave(row)
    output = Path(bench.yard.directory) / "strace"
    command = ["strace", "-c", "-f", "-o", str(output)]
    for pid in proxy.pids():
        command += ["-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(SETTLE_SECONDS)
    more = {"requests": COUNTED_REQUESTS} if unit == "request" else {}
    load = subprocess.run(bench.command(proxy, row, **more), capture_output=True, text=True,
                          check=True)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    done = json.loads(load.stdout)
    calls = {}
    for line in output.read_text().splitlines():
        match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s*([a-z_0-9]+)$", line)
        if match and match.group(3) != "total":
            calls[match.group(3)] = (int(match.group(1)), int(match.group(2) or 0))
    return calls, max(1, done["total" if unit == "request" else "frames"])


def syscall_table(bench, names, row, unit):
    lines = [f"### System calls per {unit}, `{row['name']}` work (strace)", "",
             "| variant | calls | of them failed (EAGAIN …) | which |", "|---|---|---|---|"]
    for name in names:
        calls, units = count_calls(bench, name, row, unit)
        total = sum(c for c, _ in calls.values()) / units
        failed = sum(e for _, e in calls.values()) / units
        top = sorted(calls.items(), key=lambda item: -item[1][0])[:CALLS_SHOWN]
        which = ", ".join(f"{call} {count / units:.2f}" for call, (count, _) in top
                          if count / units >= 0.01)
        lines.append(f"| {name} | {total:.2f} | {failed:.2f} | {which} |")
    return "\n".join(lines) + "\n"


def frontier(bench, names, repetitions):
    """The most requests/s seen at any number of connections while P99 stayed below the bound."""
    best = {name: {bound: [] for bound in FRONTIER_P99_MS} for name in names}
    for repetition in range(repetitions):
        for name in names if repetition % 2 == 0 else reversed(names):
            seen = [bench.measure(name, {**UNARY, "connections": connections, "seconds": 0.6,
                                         "warm": 0.2}) for connections in FRONTIER_CONNECTIONS]
            for bound in FRONTIER_P99_MS:
                good = [m["per_second"] for m in seen if m["p99_us"] <= bound * 1000]
                best[name][bound].append(max(good, default=0))
    lines = [[name, *(report.spread(best[name][bound], 0) for bound in FRONTIER_P99_MS)]
             for name in names]
    return "### Requests/s while P99 stays below a bound, 1 to 256 connections\n\n" + report.grid(
        ["variant", *(f"P99 ≤ {bound} ms" for bound in FRONTIER_P99_MS)], lines)


def profile(bench, name, row):
    """The hottest symbols, as text; to read, not to keep."""
    proxy = bench.proxy(name)
    bench.behave(row)
    data = Path(bench.yard.directory) / "perf.data"
    load = subprocess.Popen(bench.command(proxy, row), stdout=subprocess.DEVNULL)
    time.sleep(SETTLE_SECONDS)
    pids = ",".join(map(str, proxy.pids()))
    subprocess.run(["perf", "record", "-q", "-F", str(PERF_HERTZ), "-g", "-p", pids, "-o",
                    str(data), "--", "sleep", "1.5"], check=False, capture_output=True)
    load.wait()
    text = ""
    for title, more in (("by object", ["--sort", "dso"]), ("by symbol", ["--sort", "dso,symbol"])):
        done = subprocess.run(["perf", "report", "-i", str(data), "--stdio", "--no-children", "-g",
                               "none", "--percent-limit", "0.5", *more], capture_output=True,
                              text=True, check=False)
        lines = [x for x in done.stdout.splitlines() if x.strip() and not x.startswith("#")]
        text += f"### {name}, {title}\n" + "\n".join(lines[:60]) + "\n"
    return text

"""Where the cost goes: system calls per request (strace) and samples (perf), both optional."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

UNARY = {"name": "small", "kind": "load", "connections": 64, "body": 1536, "seconds": 3}
STREAM = {"name": "sse-cpu", "kind": "streams", "mode": "window", "streams": 300,
          "gap_us": 20_000, "seconds": 3}
CALLS_SHOWN = 10
PERF_HERTZ = 1999
SETTLE_SECONDS = 1


def sections(bench, chosen):
    names = [v for v in ("nginx", "haproxy", "flashgate") if bench.yard.available(v)]
    text = ""
    if chosen.syscalls:
        text += show(syscall_table(bench, names, UNARY, "requests"))
        text += show(syscall_table(bench, names, STREAM, "frames"))
    if chosen.profile:
        for name in names:
            show(profile(bench, name, UNARY))
    return text


def show(part):
    print(part, flush=True)
    return part + "\n"


def count_calls(bench, name, row, unit):
    """System calls by name, divided by the units of work done while strace watched."""
    proxy = bench.proxy(name)
    bench.behave(row)
    output = Path(bench.yard.directory) / "strace"
    load = subprocess.Popen(bench.command(proxy, row), stdout=subprocess.PIPE, text=True)
    time.sleep(SETTLE_SECONDS)  # The window begins after the connections are set up.
    before = bench.behave(row)  # Resets the backend's counter.
    del before
    command = ["strace", "-c", "-f", "-o", str(output)]
    for pid in proxy.pids():
        command += ["-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    work = bench.behave(row)
    done = json.loads(load.communicate()[0])
    units = work["requests"] if unit == "requests" else done["frames"]
    calls = {}
    for line in output.read_text().splitlines():
        match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s*([a-z_0-9]+)$", line)
        if match and match.group(3) != "total":
            calls[match.group(3)] = (int(match.group(1)), int(match.group(2) or 0))
    if unit == "frames":  # Paced work: the rate is known, the watched time is what was cut out.
        units = row["streams"] * 1e6 / row["gap_us"] * 1.5
    return calls, max(1, units)


def syscall_table(bench, names, row, unit):
    lines = [f"### System calls per {unit[:-1]}, `{row['name']}` work (strace -c)", "",
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

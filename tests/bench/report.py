"""Turns measurements into Markdown: medians, ranges, ratios within the run."""

import os
import platform
import statistics
import time
from pathlib import Path

METHOD = """\
`tests/bench/run.sh` made every number below in one run.

- The proxy is pinned to one core, load and backend share the other; one worker each. Load
  generator and backend are ours (`tests/bench`, raw epoll, one thread each).
- *CPU* is the proxy's own time per request or frame: the change of
  `/proc/PID/task/*/schedstat` over all its processes and threads during the measured window,
  divided by the work done in it. Pools are warm. Ratios are taken within a repetition, then the
  median; in brackets lowest and highest.
- Variants are interleaved, the order is reversed each repetition. A measurement during which other
  programs used more than a tenth of the machine is repeated, up to three times; the column
  *others* shows the worst that stayed.
- Every reply is checked by the load generator (status, length, echo of a nonce sent in that very
  request, usage), every request by the backend (rewritten Host and Authorization, body whole).
  Frames are numbered; *lost* and *errors* count what is missing, doubled, mixed up or malformed.
- nginx: upstream keep-alive pool, access log off, request bodies buffered in memory
  (`client_body_buffer_size 256k`), streams unbuffered (the backend sends `X-Accel-Buffering: no`).
  HAProxy: `nbthread 1`, `http-reuse always`, `http-no-delay` (else it holds small frames back), no
  log, request bodies streamed. flashgate: one profile, call log to a file **on**,
  metrics, limits and routing on, journal off.
- *direct* is the load generator on the backend without a proxy.
"""

READING = "## Reading the numbers"

UNPROVED = """\
## What this does not prove

- Loopback on a small virtual machine without TLS: no network cards, no real round trips, no packet
  loss. Ratios within the run carry over; microseconds and requests/s are this machine's alone.
- One worker. Nothing here says how the proxies scale over cores.
- Load and backend share a core, so requests/s is a bound of the whole set-up, not the proxy's.
- The proxies do not do the same: nginx and HAProxy here neither parse JSON, count tokens, write a
  call log nor guard a stream; flashgate does. nginx buffers replies to plain requests, HAProxy does
  not buffer request bodies.
- Memory is resident set, summed over processes (shared pages count twice); kernel socket buffers
  are not in it.
- Closed-loop latency hides waiting in the client (coordinated omission); read P99 as a comparison.
"""


def header(chosen, version_lines):
    cpu = next((x.split(":", 1)[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines()
                if x.startswith("model name")), "unknown")
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    system = next((x.split("=", 1)[1].strip('"') for x in
                   Path("/etc/os-release").read_text().splitlines()
                   if x.startswith("PRETTY_NAME=")), "unknown")
    lines = ["# Benchmarks", "", METHOD, "## Machine and versions", "",
             f"- {cpu}, {os.cpu_count()} cores, {memory_kb / 1024 / 1024:.0f} GB; {system}, "
             f"kernel {platform.release().split('-')[0]}",
             f"- {chosen.repetitions} repetitions, {time.strftime('%Y-%m-%d')}"]
    lines += ["- " + line for line in version_lines]
    return "\n".join(lines) + "\n\n## Results\n\n"


def footer(path):
    """What is not proved, then whatever a person wrote under `READING` in the earlier report."""
    earlier = Path(path).read_text(encoding="utf-8") if path and Path(path).exists() else ""
    at = earlier.find(READING)
    return UNPROVED + ("\n" + earlier[at:] if at >= 0 else "")


def spread(values, digits=1):
    values = list(values)
    middle = f"{statistics.median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} [{min(values):,.{digits}f}–{max(values):,.{digits}f}]"


def ratio(results, name, other, key):
    if other not in results or name == other or name == "direct":
        return ""
    pairs = [(a[key], b[key]) for a, b in zip(results[name], results[other]) if b[key] > 0]
    return spread([a / b for a, b in pairs], 2) if pairs else ""


def errors(measurements):
    return sum(m.get("errors", 0) + m.get("bad", 0) for m in measurements)


def grid(columns, lines):
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)] +
                     ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def table(row, results):
    make = {"load": load_table, "streams": stream_table, "idle": idle_table}[row["kind"]]
    return f"### {row['title']} (`{row['name']}`)\n\n" + make(results)


def load_table(results):
    lines = []
    for name, ms in results.items():
        cpu = "" if name == "direct" else spread(m["cpu_us"] for m in ms)
        lines.append([name, cpu, ratio(results, name, "nginx", "cpu_us"),
                      ratio(results, name, "haproxy", "cpu_us"),
                      spread((m["per_second"] for m in ms), 0),
                      spread((m["p50_us"] for m in ms), 0), spread((m["p99_us"] for m in ms), 0),
                      str(errors(ms)), f"{max(m['foreign'] for m in ms):.0%}"])
    return grid(["variant", "CPU µs/request", "vs nginx", "vs HAProxy", "requests/s", "P50 µs",
                 "P99 µs", "errors", "others"], lines)


def stream_table(results):
    lines = []
    for name, ms in results.items():
        cpu = "" if name == "direct" else spread(m["cpu_us"] for m in ms)
        added = ""
        if "direct" in results and name != "direct":
            added = spread((m["first_p50_us"] - d["first_p50_us"]
                            for m, d in zip(ms, results["direct"])), 0)
        lines.append([name, cpu, ratio(results, name, "nginx", "cpu_us"),
                      ratio(results, name, "haproxy", "cpu_us"), added,
                      spread((m["late_p50_us"] for m in ms), 0),
                      spread((m["late_p99_us"] for m in ms), 0),
                      spread((m["jitter_p99_us"] for m in ms), 0),
                      str(sum(m["lost"] for m in ms)), str(errors(ms)),
                      f"{max(m['foreign'] for m in ms):.0%}"])
    note = ("\n*late*: from the backend's write of a frame to its arrival at the client; *gap*: "
            "how far the time between two frames strays from the backend's pace; *added TTFT*: "
            "median time to the first content frame, less that of *direct*.\n")
    return grid(["variant", "CPU µs/frame", "vs nginx", "vs HAProxy", "added TTFT µs",
                 "late P50 µs", "late P99 µs", "gap P99 µs", "lost", "errors", "others"],
                lines) + note


def idle_table(results):
    lines = [[name, spread((m["start_rss"] / 2**20 for m in ms), 1),
              spread((m["warm_rss"] / 2**20 for m in ms), 1),
              spread((m["open_rss"] / 2**20 for m in ms), 1),
              spread((m["per_stream"] / 1024 for m in ms), 1), str(errors(ms))]
             for name, ms in results.items()]
    return grid(["variant", "RSS at start MB", "warm MB", "with streams MB", "KB per stream",
                 "errors"], lines)


def failures(everything):
    return [f"{row} {name}: {errors(ms)} errors, {sum(m.get('lost', 0) for m in ms)} lost"
            for row, results in everything.items() for name, ms in results.items()
            if errors(ms) + sum(m.get("lost", 0) for m in ms) > 0]

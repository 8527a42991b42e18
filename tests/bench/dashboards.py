"""How long the dashboards' queries take on 72 h of 200 series, a reading in 10 s: ``python tests/bench/dashboards.py``.

In the project's folder, with PYTHONPATH=dashboards.

A real influxd on the loopback; each query is asked five times as Grafana asks it, 1000 pixels wide; the median counts.
Beside it the least of five and the server's CPU for one, which other work on the machine does not change.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from soakwatch_dashboards.reading import Asked, asked, parse

from soakwatch.transfer.sinks.aligned import METRICS
from soakwatch.transfer.sinks.grafana import dashboards
from soakwatch.transfer.sinks.lines import key
from soakwatch_model.metric import BY_NAME
from soakwatch_testing.influxd import BUCKET, Influxd, find_influxd, run_influxd

RUN, EVERY_S, HOURS, SERIES, LINES = "20260101T000000Z-bench", 10, 72, 200, 5000
T0 = 1_767_225_600
READINGS = HOURS * 3600 // EVERY_S
ZERO = 4_102_444_800
LIMIT_MS, TIMES = 300.0, 5
POLLED = [f"soakwatch_poll,run={RUN},target={name},source=local,outcome=ok" for name in ("dut", "tg", "monitor")]
ALIGNED = [f"soakwatch_aligned,run={RUN},target=dut,role=dut,metric={name}" for name in sorted(METRICS)]


@dataclass(frozen=True, slots=True)
class Took:
    """What one query takes, in milliseconds."""

    median_ms: float
    least_ms: float
    cpu_ms: float


def heads(names: list[str]) -> list[str]:
    """200 series of the metrics that are asked for: objects of each as evenly as it goes, one of what has none."""
    objects = [name for name in names if BY_NAME[name].labels]
    each, more = divmod(SERIES - (len(names) - len(objects)), len(objects))
    several = {name: each + (index < more) for index, name in enumerate(objects)}
    all_heads = []
    for name in names:
        target = {"load": "tg", "monitor": "monitor"}.get(name.split(".", 1)[0], "dut")
        tags = {"run": RUN, "target": target, "role": target, "phase": "soak"}
        numbers = range(several.get(name, 1))
        all_heads += [
            key(name, tags, {label: f"{label}{number}" for label in BY_NAME[name].labels}) for number in numbers
        ]
    assert len(all_heads) == SERIES
    return all_heads


def lines(written_heads: list[str]) -> Iterator[bytes]:
    """All readings in order of time, with the polls and the lines of the other measurements."""
    held: list[str] = []
    for reading in range(READINGS):
        time_ns = (T0 + reading * EVERY_S) * 10**9
        held += [f"{head} value={reading * 7 + number}.0 {time_ns}" for number, head in enumerate(written_heads)]
        held += [f"{head} ok=1.0,duration_s=0.1 {time_ns}" for head in POLLED]
        if reading % 6 == 0:
            held += [f"{head} mean=1.0,max=2.0 {(ZERO + reading * EVERY_S) * 10**9}" for head in ALIGNED]
        if len(held) >= LINES:
            yield "\n".join(held).encode()
            held = []
    yield "\n".join(held).encode()


def macros(panel: Asked) -> dict[str, str]:
    """What Grafana puts in for a window of the whole run."""
    begin = ZERO if panel.board == "soakwatch-compare" else T0
    wide = 180 if "soakwatch_poll" in panel.query or "share per core" in panel.where else 1000
    return {
        "$timeFilter": f"time >= {begin}s and time <= {begin + HOURS * 3600}s",
        "$__interval": f"{max(1, HOURS * 3600 // wide)}s",
        "$__range_s": str(HOURS * 3600),
        "$__from": str(T0 * 1000),
        "$__to": str((T0 + HOURS * 3600) * 1000),
    }


def took(server: Influxd, panel: Asked) -> Took:
    """Five times."""
    target = "dut" if panel.board == "soakwatch-device" else ".*"
    query = re.sub(r"\$\{(\w+):regex\}", lambda m: {"run": RUN, "target": target}.get(m[1], ".*"), panel.query)
    for name, value in macros(panel).items():
        query = query.replace(name, value)
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    times, before = [], process.cpu_times()
    for _ in range(TIMES):
        begun = time.perf_counter()
        answer = server.ask("POST", "/query", params={"db": BUCKET, "epoch": "ms"}, data={"q": query})
        times.append((time.perf_counter() - begun) * 1000)
        assert "error" not in answer.json()["results"][0], (query, answer.text)
    after = process.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    return Took(statistics.median(times), min(times), cpu_s * 1000 / TIMES)


def main() -> int:
    """A table of all queries and the slowest of each dashboard; 1 if one takes longer than the limit."""
    program = find_influxd()
    if program is None:
        print("no influxd 2: build it with tests/influxd/build")
        return 2
    every = [panel for text in dashboards().values() for panel in asked(parse(text))]
    names = sorted({name for panel in every for name in re.findall(r'FROM "([^"]+)"', panel.query) if name in BY_NAME})
    with tempfile.TemporaryDirectory() as folder, run_influxd(program, Path(folder)) as server:
        begun = time.perf_counter()
        for batch in lines(heads(names)):
            server.write(batch).raise_for_status()
        print(f"{READINGS * SERIES} readings written in {time.perf_counter() - begun:.0f} s")
        figures = {(panel.board, panel.where): took(server, panel) for panel in every}
    print("| dashboard | panel and query | median ms | least ms | CPU ms of the server |\n|---|---|---|---|---|")
    for (board, where), ms in sorted(figures.items(), key=lambda item: (item[0][0], -item[1].median_ms)):
        print(f"| {board} | {where} | {ms.median_ms:.0f} | {ms.least_ms:.0f} | {ms.cpu_ms:.0f} |")
    slow = 0.0
    for board in sorted({board for board, _ in figures}):
        here = [ms for (of, _), ms in figures.items() if of == board]
        median, least, cpu = (max(getattr(ms, name) for ms in here) for name in ("median_ms", "least_ms", "cpu_ms"))
        slow = max(slow, median)
        print(f"{board}: slowest median {median:.0f} ms, least {least:.0f} ms, CPU {cpu:.0f} ms")
    return 1 if slow > LIMIT_MS else 0


if __name__ == "__main__":
    sys.exit(main())

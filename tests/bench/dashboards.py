"""How long the dashboards' queries take on 72 h of 200 series, a reading in 10 s: ``python tests/bench/dashboards.py``.

In the project's folder, with PYTHONPATH=dashboards.

A real influxd on the loopback; each query is asked five times as Grafana asks it, 1000 pixels wide; the median counts.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from soakwatch_dashboards.reading import Asked, asked, parse

from soakwatch.grafana import dashboards
from soakwatch.sinks.aligned import METRICS
from soakwatch.sinks.lines import key
from soakwatch.testing.influxd import BUCKET, Influxd, find_influxd, run_influxd
from soakwatch_agent.metric import BY_NAME

RUN, EVERY_S, HOURS, SERIES, LINES = "20260101T000000Z-bench", 10, 72, 200, 5000
T0 = 1_767_225_600
READINGS = HOURS * 3600 // EVERY_S
ZERO = 4_102_444_800
LIMIT_MS = 300.0
POLLED = [f"soakwatch_poll,run={RUN},target={name},source=local,outcome=ok" for name in ("dut", "tg", "monitor")]
ALIGNED = [f"soakwatch_aligned,run={RUN},target=dut,role=dut,metric={name}" for name in sorted(METRICS)]


def heads(names: list[str]) -> list[str]:
    """200 series of the metrics that are asked for: as many objects of each as are needed."""
    objects = [name for name in names if BY_NAME[name].labels]
    each = math.ceil((SERIES - (len(names) - len(objects))) / len(objects))
    made = []
    for name in names:
        target = {"load": "tg", "monitor": "monitor"}.get(name.split(".", 1)[0], "dut")
        tags = {"run": RUN, "target": target, "role": target, "phase": "soak"}
        numbers = range(each if BY_NAME[name].labels else 1)
        made += [key(name, tags, {label: f"{label}{number}" for label in BY_NAME[name].labels}) for number in numbers]
    return made[:SERIES]


def lines(made: list[str]) -> Iterator[bytes]:
    """All readings in order of time, with the polls and the lines of the other measurements."""
    held: list[str] = []
    for at in range(READINGS):
        time_ns = (T0 + at * EVERY_S) * 10**9
        held += [f"{head} value={at * 7 + number}.0 {time_ns}" for number, head in enumerate(made)]
        held += [f"{head} ok=1.0,duration_s=0.1 {time_ns}" for head in POLLED]
        if at % 6 == 0:
            held += [f"{head} mean=1.0,max=2.0 {(ZERO + at * EVERY_S) * 10**9}" for head in ALIGNED]
        if len(held) >= LINES:
            yield "\n".join(held).encode()
            held = []
    yield "\n".join(held).encode()


def macros(one: Asked) -> dict[str, str]:
    """What Grafana puts in for a window of the whole run."""
    begin = ZERO if one.board == "soakwatch-compare" else T0
    wide = 180 if "soakwatch_poll" in one.query or "heat" in one.where.lower() else 1000
    return {
        "$timeFilter": f"time >= {begin}s and time <= {begin + HOURS * 3600}s",
        "$__interval": f"{max(1, HOURS * 3600 // wide)}s",
        "$__range_s": str(HOURS * 3600),
        "$__from": str(T0 * 1000),
        "$__to": str((T0 + HOURS * 3600) * 1000),
    }


def took_ms(server: Influxd, one: Asked) -> float:
    """The median of five."""
    target = "dut" if one.board == "soakwatch-device" else ".*"
    query = re.sub(r"\$\{(\w+):regex\}", lambda m: {"run": RUN, "target": target}.get(m[1], ".*"), one.query)
    for name, value in macros(one).items():
        query = query.replace(name, value)
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        answer = server.ask("POST", "/query", params={"db": BUCKET, "epoch": "ms"}, data={"q": query})
        times.append((time.perf_counter() - begun) * 1000)
        assert "error" not in answer.json()["results"][0], (query, answer.text)
    return statistics.median(times)


def main() -> int:
    """The figures; 1 if a dashboard's slowest query takes longer than the limit."""
    program = find_influxd()
    if program is None:
        print("no influxd 2: build it with tests/influxd/build")
        return 2
    every = [one for text in dashboards().values() for one in asked(parse(text))]
    names = sorted({name for one in every for name in re.findall(r'FROM "([^"]+)"', one.query) if name in BY_NAME})
    with tempfile.TemporaryDirectory() as folder, run_influxd(program, Path(folder)) as server:
        begun = time.perf_counter()
        for batch in lines(heads(names)):
            server.write(batch).raise_for_status()
        print(f"{READINGS * SERIES} readings written in {time.perf_counter() - begun:.0f} s")
        slow = 0.0
        for board in sorted({one.board for one in every}):
            figures = sorted(((took_ms(server, one), one.where) for one in every if one.board == board), reverse=True)
            slow = max(slow, figures[0][0])
            print(f"{board}: " + ", ".join(f"{where} {ms:.0f} ms" for ms, where in figures[:4]))
    return 1 if slow > LIMIT_MS else 0


if __name__ == "__main__":
    sys.exit(main())

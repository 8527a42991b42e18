"""Small records for tests and benchmarks: of one source with fifty series, and of judged runs under load."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
KEYS = tuple(SeriesKey("dut", "process.memory.usage", f"process=p{n}") for n in range(50))


def small_poll(source: int, second: int) -> Poll:
    """The poll due ``second`` seconds after ``T0``, with a reading of each of ``KEYS``."""
    due = T0 + second * SECOND
    samples = tuple(Sample(key.metric, key.object, second * 4096 + n, due) for n, key in enumerate(KEYS))
    return Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))


def small_record(folder: Path, polls: int = 0) -> Record:
    """A new record with one source and ``polls`` polls."""
    record = Record.create(folder)
    source = record.source("dut", "local", "dut/local", SECOND, required=True)
    record.put([small_poll(source.id, second) for second in range(polls)])
    return record


def first_values(path: Path) -> list[float]:
    """The readings of the first of ``KEYS``."""
    with RecordView.open(path) as view:
        values: list[float] = view.series(KEYS[0]).value.tolist()
        return values


def judged_run(
    folder: Path,
    *,
    packets_per_s: float,
    begin_ns: int = T0,
    plan: str = "overnight",
    release: str = "",
    labels: Mapping[str, str] | None = None,
    verdict: str = "pass",
    latency_s: float = 0.002,
    silent: bool = False,
    seed: int = 0,
) -> Path:
    """Make a run of a device and a generator: 10 s of baseline, 40 s of soak, a poll a second. Returns its folder.

    The device reports that it runs ``release``; in soak the generator receives ``packets_per_s``, with a latency of
    about ``latency_s``. A ``silent`` generator does not answer in soak.
    """
    random_of = random.Random(seed)  # noqa: S311 - readings, not a secret
    seconds, soak = 50, 10
    with Record.create(folder) as record:
        end_ns = begin_ns + seconds * SECOND
        metas = {
            "run": plan,
            "start_ns": str(begin_ns),
            "ended_ns": str(end_ns),
            "verdict": verdict,
            "reason": "so it is",
        }
        for key, text in metas.items():
            record.set_meta(key, text)
        if labels:
            record.set_meta("labels", json.dumps(dict(labels)))
        record.target("fw", "dut")
        record.target("tg", "generator")
        device = record.source("fw", "local", "fw/local", SECOND, required=True).id
        generator = record.source("tg", "csv", "tg/csv", SECOND, required=True).id
        if release:
            told = Event("device.identity", "fw", "fw/local", begin_ns, None, {"version": release})
            record.add_event("fw", told, "probe")
        record.begin_phase("baseline", begin_ns)
        record.begin_phase("soak", begin_ns + soak * SECOND)
        polls = []
        for second in range(seconds + 1):
            due = begin_ns + second * SECOND
            cpu = Sample("system.cpu.utilization", "", 0.4, due)
            polls.append(Poll(device, due, due, 1, PollOutcome.OK, None, Answer((cpu,), (), ())))
            if silent and second >= soak:
                polls.append(Poll(generator, due, due, 1, PollOutcome.TIMEOUT, "no answer in 1 s", NOTHING))
                continue
            samples = (
                Sample("load.rx.packets", "", packets_per_s * max(0, second - soak), due),
                Sample("load.latency", "quantile=p99", latency_s * random_of.uniform(0.99, 1.01), due),
            )
            polls.append(Poll(generator, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
        record.put(polls)
        record.end_phase(end_ns)
        record.finish()
    return folder

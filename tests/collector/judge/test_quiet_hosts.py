"""A short run on a host that others use too: nothing of what such hosts do by themselves is a finding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.planned import SHARED_KEY, shared_text
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan import plan_text, quick_plan
from soakwatch.record import Record, RecordView
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

Floats = NDArray[np.float64]
SECOND, T0 = 10**9, 1_700_000_000 * 10**9
MIB = float(2**20)
TOTAL = 8192 * MIB
LENGTHS = (70, 240)


def _shares(kind: str, seconds: int, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Memory in use and promised (committed) of a host of this kind, in MiB, a reading a second."""
    at = np.linspace(0, 1, seconds)
    used = 900 + chance.normal(0, 3, seconds)
    promised = 1500 + chance.normal(0, 4, seconds)
    ends = {
        "idle": (0 * at, 0 * at),
        "a session that logs in": (15 * (at > 0.4), 260 * (at > 0.4)),
        "a timer's job at the end": (180 * (at > 0.75), 500 * (at > 0.75)),
        "a container that starts": (250 * (at > 0.5), 700 * (at > 0.5)),
        "a runtime that warms up": (200 * (1 - np.exp(-4 * at)), 420 * (1 - np.exp(-4 * at))),
        "a cache that fills": (160 * at, 30 * at),
        "a build": (200 * at + 60 * np.sin(40 * at), 600 * at + 200 * np.sin(40 * at)),
        "a balloon": (-120 * at, 0 * at),
        "programs that start one by one": (90 * np.floor(4 * at), 150 * np.floor(4 * at)),
        "the monitor that starts": (70 * np.clip(8 * at, 0, 1), 330 * np.clip(8 * at, 0, 1)),
    }
    more_used, more_promised = ends[kind]
    return used + more_used, promised + more_promised


KINDS = (
    "idle",
    "a session that logs in",
    "a timer's job at the end",
    "a container that starts",
    "a runtime that warms up",
    "a cache that fills",
    "a build",
    "a balloon",
    "programs that start one by one",
    "the monitor that starts",
)


def _recorded(folder: Path, columns: Mapping[tuple[str, str], Floats], *, shared: bool) -> None:
    seconds = len(next(iter(columns.values())))
    plan = quick_plan(("local",), ("nginx",), duration=f"{seconds}s")
    with Record.create(folder) as record:
        facts = {"run": "quiet", "plan": plan_text(plan), "start_ns": str(T0), "ended_ns": str(T0 + seconds * SECOND)}
        for key, text in facts.items():
            record.set_meta(key, text)
        if shared:
            record.set_meta(SHARED_KEY, shared_text(["local"]))
        record.target("local", "dut")
        source = record.source("local", "local", "local/local", SECOND, required=True).id
        for second in range(seconds):
            at = T0 + second * SECOND
            samples = [Sample(metric, name, float(values[second]), at) for (metric, name), values in columns.items()]
            record.put([Poll(source, at, at, 1, PollOutcome.OK, None, Answer(tuple(samples), (), ()))])


def _host(kind: str, seconds: int, seed: int) -> dict[tuple[str, str], Floats]:
    used, promised = _shares(kind, seconds, np.random.default_rng(seed))
    return {
        ("system.memory.limit", ""): np.full(seconds, TOTAL),
        ("system.memory.usage", ""): used * MIB,
        ("system.memory.available", ""): TOTAL - used * MIB,
        ("system.memory.committed", ""): promised * MIB,
    }


def _raised(folder: Path) -> list[str]:
    """What fails or warns."""
    with RecordView.open(folder) as view:
        found = judge_record(view, ended=True).findings
    return [f"{f.outcome} {f.rule} {f.metric} {f.object}: {f.sentence}" for f in found if f.outcome in _ALARMS]


_ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})


@pytest.mark.parametrize("seconds", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_host_that_is_used_by_others_warns_in_a_short_run(tmp_path: Path, kind: str, seconds: int) -> None:
    for seed in range(3):
        _recorded(tmp_path / f"{seed}", _host(kind, seconds, seed), shared=True)
        assert _raised(tmp_path / f"{seed}") == []


def test_a_watched_process_that_leaks_there_still_fails(tmp_path: Path) -> None:
    """What the host does is not the device; what is watched on it is."""
    seconds = LENGTHS[1]
    leak = 100 * MIB * (1 + np.linspace(0, 1, seconds))
    columns = {**_host("idle", seconds, 1), ("process.memory.usage", "process=nginx,instance=0"): leak}
    _recorded(tmp_path / "run", columns, shared=True)
    raised = _raised(tmp_path / "run")
    assert any(words.startswith("fail memory_growth process.memory.usage") for words in raised)


def test_a_device_of_its_own_is_judged_as_ever(tmp_path: Path) -> None:
    _recorded(tmp_path / "run", _host("a build", LENGTHS[1], 1), shared=False)
    assert any("memory_growth system.memory.committed" in words for words in _raised(tmp_path / "run"))


def test_a_shared_host_that_holds_twice_as_much_is_still_named(tmp_path: Path) -> None:
    columns = _host("idle", LENGTHS[1], 1)
    columns["system.memory.usage", ""] = columns["system.memory.usage", ""] * np.linspace(1, 4, LENGTHS[1])
    _recorded(tmp_path / "run", columns, shared=True)
    assert any("memory_growth system.memory.usage" in words for words in _raised(tmp_path / "run"))

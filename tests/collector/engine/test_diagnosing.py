"""Looks at suspicion: of a real process of this machine, in the record, once each, without secrets."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import FAIL, T0, noting, plan
from tests.needs import needs

from soakwatch.cli.main import run as command
from soakwatch.core.redaction import redaction_of
from soakwatch.diagnose.kept import looks_of
from soakwatch.diagnose.look import KIND, Look, Runtime
from soakwatch.diagnose.wording import stacks_words
from soakwatch.engine.diagnosing import FAILED, LOOK, Diagnosing
from soakwatch.record import Artifact, Record, RecordView
from soakwatch_model.event import Event
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.sshd import SSHD, run_sshd

PROCESS = "process=app"
GROWS = replace(FAIL, object=PROCESS)
ON = "diagnose: {on: suspicion}"


@contextmanager
def program(**around: str) -> Iterator[int]:
    """A program that waits, and its pid."""
    words = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()", "hunter2hunter2"]
    with subprocess.Popen(words, stdin=-1, stdout=-1, env={**os.environ, **around}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def watched(record: Record, pid: int, at_ns: int = T0) -> None:
    """The record of a target whose process has this pid."""
    source = record.source("dut", "local", "local", 1_000_000_000, required=True)
    samples = (Sample("process.pid", PROCESS, float(pid), at_ns), Sample("process.up", PROCESS, 1.0, at_ns))
    record.put([Poll(source.id, at_ns, at_ns, 1, PollOutcome.OK, None, Answer(samples, (), ()))])


def looked(
    folder: Path,
    text: str,
    pid: int,
    *findings: Finding,
    targets: str = "{dut: {sources: [local]}}",
    seconds: int = 3600,
) -> tuple[list[Look], list[Artifact], list[Event]]:
    """What a run of some seconds took: the findings came at its begin, and it ended properly."""
    clock = [T0]
    with noting(folder) as (notes, record):
        watched(record, pid)
        made = plan(text, targets)
        record.set_meta("plan", made.text)

        async def main() -> None:
            diagnosing = Diagnosing(made, folder, notes, redaction_of(made.text), lambda: clock[0])
            for part in range(5):
                clock[0] = T0 + part * seconds * 10**9 // 4
                if part:
                    watched(record, pid, clock[0])
                diagnosing.on_findings(findings, T0 + seconds * 10**9)
                diagnosing.tick()
                while diagnosing._work is not None and not diagnosing._work.done():
                    await asyncio.sleep(0.01)
            await diagnosing.finish()
            await diagnosing.close()

        asyncio.run(main())
        events = [stored.event for stored in record.events_after(0)]
    with RecordView.open(folder) as view:
        return list(looks_of(view.artifact_entries(), view.artifact)), list(view.artifacts()), events


def test_a_growth_sets_off_looks_until_the_end(tmp_path: Path) -> None:
    """At suspicion, half-way, at the end: each in the record with what it cost, and an event; one finding of the same
    process more sets off nothing."""
    more = replace(GROWS, rule="growth", metric="process.open_files")
    with program() as pid:
        looks, files, events = looked(tmp_path / "run", ON, pid, GROWS, more)
    assert [(look.number, look.pid, look.target, look.process) for look in looks] == [
        (n, pid, "dut", PROCESS) for n in (1, 2, 3)
    ]
    assert [(look.time_ns - T0) // 10**9 for look in looks] == [0, 1800, 3600]
    first = looks[0]
    assert (first.rule, first.metric, first.runtime) == ("memory_growth", "process.memory.usage", Runtime.PYTHON)
    assert first.alive
    assert (first.resident or 0) > 1 << 20
    assert first.cost.seconds > 0
    assert first.cost.cpu_s is not None
    assert {"heap", "stack", "file: code"} <= {row.kind for row in first.mapped}
    assert {row.name for row in first.files} >= {"pipe"}
    assert sum(row.count for row in first.threads) == 1
    assert [(each.part, each.why.value) for each in first.absent] == [("gdb", "not allowed")]
    assert {each.kind for each in files} == {KIND}
    assert [event.kind for event in events] == [LOOK] * 3


@pytest.mark.parametrize(
    ("text", "finding", "targets"),
    [
        ("", GROWS, "{dut: {sources: [local]}}"),
        (ON, replace(GROWS, outcome=Outcome.PASS), "{dut: {sources: [local]}}"),
        (ON, replace(GROWS, metric="process.state"), "{dut: {sources: [local]}}"),
        (ON, replace(GROWS, target="gen"), "{dut: {sources: [local]}, gen: {role: generator, sources: [local]}}"),
    ],
)
def test_nothing_is_taken_without_leave_or_suspicion(text: str, finding: Finding, targets: str, tmp_path: Path) -> None:
    """Without the key, of what passes, of what is no growth, and of what is no device under test."""
    with program() as pid:
        assert looked(tmp_path / "run", text, pid, finding, targets=targets) == ([], [], [])


def test_a_growth_that_is_nearly_certain_is_a_suspicion(tmp_path: Path) -> None:
    """Though it is too early to judge."""
    early = replace(GROWS, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.TOO_SHORT, facts=(Certainty(0.97),))
    with program() as pid:
        looks, _, _ = looked(tmp_path / "run", "diagnose: {on: suspicion, at_most: 1}", pid, early)
    assert [look.number for look in looks] == [1]


def test_no_secret_is_in_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the environment or the command line of the process, nor of the plan."""
    monkeypatch.setenv("DUT_SECRET", "hunter2hunter2")
    text = f"{ON}\nhooks: [{{run: [echo, env:DUT_SECRET]}}]"
    with program(API_TOKEN="tokentokentoken") as pid:
        _, files, _ = looked(tmp_path / "run", text, pid, GROWS)
    assert files
    assert not [each.name for each in files if b"hunter2" in each.data or b"tokentoken" in each.data]


def test_a_process_that_is_gone_is_reported_once_a_look(tmp_path: Path) -> None:
    """The run goes on; a look that shows nothing says so."""
    with program() as pid:
        pass
    looks, _, events = looked(tmp_path / "run", "diagnose: {on: suspicion, at_most: 2}", pid, GROWS)
    assert [look.alive for look in looks] == [False, False]
    assert [event.kind for event in events] == [LOOK] * 2


def test_a_look_that_cannot_be_taken_is_an_event(tmp_path: Path) -> None:
    """With the reason: here nobody has read the pid."""
    with program() as pid:
        other = replace(GROWS, object="process=other")
        looks, _, events = looked(tmp_path / "run", "diagnose: {on: suspicion, at_most: 1}", pid, other)
    assert not looks
    assert [(event.kind, event.detail["reason"]) for event in events] == [
        (FAILED, "other is not running, or its pid is not read")
    ]


def test_of_a_host_that_grows_its_watched_processes_are_looked_at(tmp_path: Path) -> None:
    """Since nobody knows which."""
    host = replace(GROWS, metric="system.memory.usage", object="")
    with program() as pid:
        looks, _, _ = looked(tmp_path / "run", "diagnose: {on: suspicion, at_most: 2}", pid, host)
    assert [(look.process, look.metric) for look in looks] == [(PROCESS, "system.memory.usage")] * 2


def test_at_a_spike_of_cpu_stacks_are_sampled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the process of the finding, by what is installed; else it is said what is missing."""
    monkeypatch.setattr("soakwatch.diagnose.takers.stacks.SECONDS", 1)
    busy = replace(GROWS, rule="cpu_spike", metric="process.cpu.utilization")
    words = [sys.executable, "-c", "while True: sum(range(1000))"]
    with subprocess.Popen(words) as process:
        try:
            looks, _, events = looked(tmp_path / "run", ON, process.pid, busy)
        finally:
            process.kill()
    (look,) = looks
    assert (look.of_cpu, look.rule) == (True, "cpu_spike")
    assert look.sites or {each.part for each in look.absent} <= {"perf", "py-spy"}
    assert [event.kind for event in events] == [LOOK]
    assert command(["diagnose", str(tmp_path / "run")]) == 0
    assert f"dut app: {stacks_words(look, 10).words}" in capsys.readouterr().out


def test_a_look_is_taken_over_ssh(tmp_path: Path) -> None:
    """By the target's own source, on a real server: the same account as on this machine."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd") as server, program() as pid:
        keys = ", ".join(f"{key}: {value!r}" for key, value in server.keys.items())
        targets = f"{{dut: {{sources: [{{ssh: {{{keys}}}}}]}}}}"
        looks, _, _ = looked(tmp_path / "run", "diagnose: {on: suspicion, at_most: 1}", pid, GROWS, targets=targets)
    (look,) = looks
    assert (look.pid, look.alive, look.runtime) == (pid, True, Runtime.PYTHON)
    assert {"heap", "stack", "file: code"} <= {row.kind for row in look.mapped}

"""Records of devices under two releases: a process that grows in one of them, drops, and what nobody read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.record import Record
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window

SECOND = 10**9
T0 = 1_790_000_000 * SECOND  # 2026-09-21T14:13:20Z
NIGHT = 86_400 * SECOND
MIB = 2**20
POLLS = 60
Recorded = Callable[..., Path]


def recorder(folder: Path) -> Recorded:
    """Makes records in ``folder/runs``."""

    def record(name: str, **about: object) -> Path:
        return _record(folder / "runs" / name, **about)  # type: ignore[arg-type]

    return record


def _finding(outcome: Outcome, process: str, begin_ns: int, rule: str = "growth") -> Finding:
    window = Window(begin_ns, begin_ns + POLLS * SECOND)
    metric, place = "process.memory.usage", f"process={process},instance=0"
    why = InconclusiveReason.TOO_SHORT if outcome is Outcome.INCONCLUSIVE else None
    return Finding(
        *(rule, 1, outcome, "dut", metric, place, window, "a definition", f"{process}: {outcome.value}", POLLS),
        measured=MIB / 2 if outcome is Outcome.FAIL else 0.0,
        limit=MIB / 4,
        unit="By/h",
        why=why,
    )


def _record(
    folder: Path,
    *,
    release: str,
    device: str = "fw1",
    night: int = 0,
    grows: tuple[str, ...] = (),
    steady: tuple[str, ...] = ("sshd",),
    unsure: tuple[str, ...] = (),
    drops: int | None = 0,
    seal: bool = True,
    verdict: str | None = None,
) -> Path:
    """A sealed record: ``grows`` are processes that grew, ``steady`` those that did not, ``unsure`` those of which it
    was not decided; ``drops`` packets are dropped, None: the counter is read once."""
    begin_ns = T0 + night * NIGHT
    with Record.create(folder) as made:
        made.target("dut", "dut")
        made.target("gen", "generator")
        made.set_meta("labels", json.dumps({"release": release, "device": device}))
        made.set_meta("run", "night")
        made.set_meta("plan", "name: night\n")
        made.set_meta("start_ns", str(begin_ns))
        dut = made.source("dut", "local", "local", SECOND, required=True)
        gen = made.source("gen", "command", "load", SECOND, required=False)
        made.begin_phase("baseline", begin_ns)
        made.begin_phase("soak", begin_ns + POLLS // 2 * SECOND)
        taken = []
        for second in range(POLLS):
            due = begin_ns + second * SECOND
            if second % 10 == 9:
                taken.append(Poll(dut.id, due, due, SECOND // 2, PollOutcome.TIMEOUT, "no answer", NOTHING))
            else:
                samples = [
                    Sample(
                        "process.memory.usage",
                        f"process={process},instance=0",
                        100 * MIB + (MIB // 60 * second if process in grows else 0),
                        due,
                    )
                    for process in (*grows, *steady, *unsure)
                ]
                if drops is not None or second == 0:
                    counted = 1000 + (drops or 0) * (second > POLLS // 2)
                    where = "interface=eth0,direction=receive"
                    samples.append(Sample("system.network.packet.dropped", where, counted, due))
                taken.append(Poll(dut.id, due, due, 1, PollOutcome.OK, None, Answer(tuple(samples), (), ())))
            load = (Sample("load.rx.packet.rate", "", 1e6, due),)
            taken.append(Poll(gen.id, due, due, 1, PollOutcome.OK, None, Answer(load, (), ())))
        made.put(taken)
        end_ns = begin_ns + POLLS * SECOND
        made.end_phase(end_ns)
        findings = [
            *(_finding(Outcome.FAIL, process, begin_ns) for process in grows),
            *(_finding(Outcome.PASS, process, begin_ns) for process in steady),
            *(_finding(Outcome.INCONCLUSIVE, process, begin_ns) for process in unsure),
        ]
        made.put_findings(findings, live=False, judged_ns=end_ns)
        made.set_meta("ended_ns", str(end_ns))
        made.set_meta("verdict", verdict or ("fail" if grows else "pass"))
        made.set_meta("reason", "as it was")
        if seal:
            made.put_seal(end_ns)
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Makes a record in ``runs/NAME``."""
    return recorder(tmp_path)


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in this process, in an empty folder, and return what it printed."""
    return command_here(tmp_path)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs and an archive of two devices, not to be changed: in 7.1 sshd grew on one; in 7.2 bgpd grew on
    both, sshd on one, and so did snort and zebra, of which 7.1 does not say."""
    folder = tmp_path_factory.mktemp("archive")
    record = recorder(folder)
    record("a1", release="7.1", steady=("bgpd",), grows=("sshd",), unsure=("zebra",))
    record("a2", release="7.1", device="fw2", steady=("bgpd", "sshd"), drops=None)
    record("b1", release="7.2", night=1, grows=("bgpd", "snort"), drops=40)
    record("b2", release="7.2", night=1, device="fw2", grows=("bgpd", "sshd", "zebra"), steady=())
    done = command_here(folder)("archive", "add", "runs", "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def ask(made: Path) -> Command:
    """Run a command beside the archive that is not to be changed."""
    return command_here(made)


@pytest.fixture
def two_releases(made: Path, tmp_path: Path) -> Command:
    """Run a command beside a copy of that archive and its runs."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return command_here(tmp_path)

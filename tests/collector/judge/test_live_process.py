"""The live judge as a process: asked, killed, asked again; and the verdict, which knows nothing of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from soakwatch.core.forked_child import ForkedChild
from soakwatch.engine.finish import judged
from soakwatch.judge.live import client
from soakwatch.judge.live.client import JUDGE_EVERY_S, WOKEN_APART_S, JudgeProcess, LiveJudge, warm_judge
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch.report.json import render_json
from soakwatch.report.markdown import render_markdown
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_testing.records import SECOND, T0

WORKER = object_text(process="worker", instance="0")
PLAN = "name: run\nduration: 2h\ntargets: {dut: {sources: [local]}}\n"


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a look took on this machine is not what the judge rests by: as if each had taken no time."""
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: 0.0))


def _stopped() -> float:
    """A stopwatch that stands still: how long a look takes on this machine decides nothing here."""
    return 0.0


class Clock:
    """A time that is set by hand."""

    def __init__(self) -> None:
        self.second = 0

    def now_ns(self) -> int:
        """Seconds after T0, in nanoseconds."""
        return T0 + self.second * SECOND


def begun(folder: Path) -> tuple[Record, Callable[[int, int], None]]:
    """A new record, and what writes the polls of some seconds into it: a spike at 900 s, a restart at 1500 s."""
    record = Record.create(folder)
    for key, text in {"plan": PLAN, "run": "run"}.items():
        record.set_meta(key, text)
    record.target("dut", "dut")
    record.begin_span(T0)
    source = record.source("dut", "local", "local", 5 * SECOND, required=True).id
    record.begin_phase("soak", T0)

    def write(first: int, end: int) -> None:
        polls = []
        for second in range(first, end, 5):
            due = T0 + second * SECOND
            samples = (
                Sample("system.cpu.utilization", "", 1.0 if 900 <= second < 930 else 0.3 + 0.01 * (second % 3), due),
                Sample("system.memory.usage", "", 10**9 + 4096 * (second % 7), due),
                Sample("process.up", WORKER, 1, due),
                Sample("process.start_time", WORKER, 100.0 + 1400 * (second >= 1500), due),
            )
            polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
        record.put(polls)

    return record, write


def failed(live: LiveJudge) -> set[str]:
    """The rules that fail so far."""
    return {finding.rule for finding in live.findings if finding.outcome is Outcome.FAIL}


@pytest.mark.parametrize("begins", [nullcontext, lambda: warm_judge(())], ids=["started", "a copy of the run"])
def test_a_judge_that_is_killed_is_followed_by_another(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    begins: Callable[[], AbstractContextManager[ForkedChild | None]],
) -> None:
    """kill -9 costs one evaluation and a line in the log; the next process says what the first did, and what is new.
    The first may be a copy of the run's process."""

    async def main(warm: ForkedChild | None) -> None:
        record, write = begun(tmp_path / "run")
        clock = Clock()
        judge = JudgeProcess(tmp_path / "run", warm)
        live = LiveJudge(judge, clock.now_ns, stopwatch=_stopped)
        assert not await live.judge_when_due()
        write(0, 1200)
        clock.second = 1200
        assert await live.judge_when_due()
        assert failed(live) == {"cpu_spike"}
        assert live.unrecorded
        record.put_findings(live.findings, live=True, judged_ns=clock.now_ns())
        live.recorded()
        assert not live.unrecorded
        assert not await live.judge_when_due(), "it is not due yet"
        process = judge._child
        assert process is not None
        assert warm in {None, process}
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        write(1200, 1800)
        clock.second = 1800
        assert await live.judge_when_due(), "a process that is found dead is followed by another at once"
        assert failed(live) == {"cpu_spike", "process_restart"}
        again = judge._child
        assert again is not None
        assert again.pid != process.pid
        os.kill(again.pid, signal.SIGSTOP)
        later = asyncio.create_task(_later(live, clock))
        await asyncio.sleep(0.2)
        os.kill(again.pid, signal.SIGKILL)
        assert not await later, "it dies while it is asked"
        assert "live judging: the judge ended with exit code -9; the run goes on" in caplog.text
        assert failed(live) == {"cpu_spike", "process_restart"}, "what was said stands"
        clock.second += round(JUDGE_EVERY_S)
        assert await live.judge_when_due()
        assert failed(live) == {"cpu_spike", "process_restart"}
        with RecordView.open(tmp_path / "run") as view:
            assert view.withdrawn() == ()
        last = judge._child
        assert last is not None
        assert record.finish(), "it holds no snapshot, so the write-ahead log can go"
        await live.close()
        assert last.exit_code is not None
        record.close()

    async def _later(live: LiveJudge, clock: Clock) -> bool:
        clock.second += 60
        return await live.judge_when_due()

    with begins() as warm:
        asyncio.run(main(warm))


def test_a_restart_is_found_before_the_minute_is_over(tmp_path: Path) -> None:
    """The judge that is woken evaluates at once; it then rests, however often it is woken, and keeps its minute."""

    async def main() -> None:
        record, write = begun(tmp_path / "run")
        clock = Clock()
        judge = JudgeProcess(tmp_path / "run")
        live = LiveJudge(judge, clock.now_ns, stopwatch=_stopped)
        write(0, 1440)
        clock.second = 1440
        assert await live.judge_when_due()
        write(1440, 1510)  # the worker restarts at 1500 s
        clock.second = 1441
        assert not await live.judge_when_due()
        live.wake()
        assert not await live.judge_when_due(), "it rests"
        clock.second = 1440 + 30
        assert await live.judge_when_due(), "half a minute before its time"
        assert "process_restart" in failed(live)
        assert live.judged_ns == clock.now_ns()
        for _ in range(20):
            live.wake()
            assert not await live.judge_when_due()
        clock.second += round(WOKEN_APART_S)
        assert await live.judge_when_due()
        clock.second += round(JUDGE_EVERY_S) - 1
        assert not await live.judge_when_due(), "nobody woke it"
        await live.close()
        record.close()

    asyncio.run(main())


@pytest.mark.slow
def test_a_judge_without_a_record_does_not_hold_the_run_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It says why, is tried again ever more rarely, and nothing is found."""

    async def main() -> None:
        clock = Clock()
        live = LiveJudge(JudgeProcess(tmp_path / "nowhere"), clock.now_ns, stopwatch=_stopped)
        clock.second = 60
        assert not await live.judge_when_due()
        clock.second = 120
        assert not await live.judge_when_due()
        clock.second = 239
        assert not await live.judge_when_due()
        assert caplog.text.count("holds no record") == 2
        assert live.findings == ()
        assert not live.confirmed

    asyncio.run(main())


def test_a_failure_stops_a_run_only_if_it_is_not_withdrawn(tmp_path: Path) -> None:
    """With ``confirm`` a failure is evaluated again after ten seconds, and only then is confirmed."""

    async def main() -> None:
        record, write = begun(tmp_path / "run")
        clock = Clock()
        live = LiveJudge(JudgeProcess(tmp_path / "run"), clock.now_ns, confirm=True, stopwatch=_stopped)
        write(0, 960)
        clock.second = 960
        assert await live.judge_when_due()
        assert failed(live) == {"cpu_spike"}
        assert not live.confirmed
        write(960, 970)
        clock.second = 970
        assert await live.judge_when_due()
        assert live.confirmed
        await live.close()
        record.close()

    asyncio.run(main())


def test_the_end_withdraws_what_it_does_not_share(tmp_path: Path) -> None:
    """A warning of the last evaluation that is not in the verdict is kept as withdrawn at the end of the run."""
    record, write = begun(tmp_path / "run")
    write(0, 1200)
    record.end_phase(T0 + 1200 * SECOND)
    with RecordView.open(tmp_path / "run") as view:
        (spike,) = judge_record(view, only=["cpu_spike"]).findings
    leak = replace(spike, rule="growth", metric="system.memory.usage", outcome=Outcome.WARN, reason="so far")
    record.put_findings([spike, leak], live=True, judged_ns=T0)
    end_ns = T0 + 1200 * SECOND
    verdict = judged(tmp_path / "run", record, end_ns)
    record.finish()
    assert "cpu_spike" in {f.rule for f in verdict.findings if f.outcome is Outcome.FAIL}
    with RecordView.open(tmp_path / "run") as view:
        assert [(at_ns, f.rule) for at_ns, f in view.withdrawn()] == [(end_ns, "growth")]
        assert [f.rule for f in view.findings(live=True)] == ["cpu_spike"]
        assert "growth" in render_markdown(view, verdict)


@pytest.mark.slow
def test_the_verdict_is_the_same_however_it_was_watched(tmp_path: Path) -> None:
    """Judged live and then at the end, at the end only, and from a copy in a process of another kind: equal bytes."""

    async def main(folder: Path, *, watched: bool) -> str:
        record, write = begun(folder)
        clock = Clock()
        live = LiveJudge(JudgeProcess(folder), clock.now_ns, stopwatch=_stopped)
        for second in range(0, 7200, 600):
            write(second, second + 600)
            clock.second = second + 600
            if watched and await live.judge_when_due():
                record.put_findings(live.findings, live=True, judged_ns=clock.now_ns())
        await live.close()
        record.end_phase(T0 + 7200 * SECOND)
        record.finish()
        record.close()
        with RecordView.open(folder) as view:
            assert bool(view.findings(live=True)) == watched
            return render_json(judge_record(view))

    watched = asyncio.run(main(tmp_path / "watched", watched=True))
    unwatched = asyncio.run(main(tmp_path / "unwatched", watched=False))
    assert watched == unwatched
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "watched" / "record.sqlite", tmp_path / "copy" / "record.sqlite")
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from soakwatch.judge.record_verdict import judge_record\n"
        "from soakwatch.record import RecordView\nfrom soakwatch.report.json import render_json\n"
        "with RecordView.open(Path('copy')) as view:\n    sys.stdout.write(render_json(judge_record(view)))"
    )
    for seed, zone in (("7", "Asia/Tokyo"), ("4242", "America/St_Johns")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"}
        judged = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        assert judged.stdout == watched.encode()

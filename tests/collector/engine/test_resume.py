"""What is left of a run whose monitor died: before its first poll, and once its polling was over."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import FAIL, T0, finding, noting, plan

from soakwatch.cli.main import run
from soakwatch.core.clock import Clock, SteadyClock
from soakwatch.core.errors import RecordError
from soakwatch.engine.finish import why_unpolled
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.engine.promises import END, META, POLLED, Promises, hook_action
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin, resume
from soakwatch.judge.verdict import fold
from soakwatch.plan import plan_from_text
from soakwatch.record import Record, RecordView
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.stop_run import stop_run
from soakwatch_model.window import Window

PLAN = "name: p\nduration: 1h\ntargets: {dut: {sources: [local]}}\n"


def begun(folder: Path, text: str = PLAN) -> None:
    """A run whose monitor is killed right after it began."""
    _, record = begin(plan_from_text(text, "p.yaml"), folder, SteadyClock(), ["x"], stop_on_fail=False)
    record.close()


def events(folder: Path) -> list[tuple[str, int, int | None]]:
    """Kind, begin and end of every event."""
    with RecordView.open(folder) as view:
        return [(stored.event.kind, stored.event.begin_ns, stored.event.end_ns) for stored in view.events()]


def test_a_run_killed_before_its_first_poll_goes_on_with_a_gap_from_its_start(tmp_path: Path) -> None:
    """Its polls since then are missed, and it is not judged as if it had begun now."""
    begun(tmp_path / "run")
    course, record, clock = resume(tmp_path / "run", stop_on_fail=False)
    record.close()
    assert (course.resumed, course.last_due_ns, course.polled_ns) == (True, {}, None)
    assert why_unpolled(tmp_path / "run", 0, 1) == "over before its first poll: nothing was polled", "if it ended now"
    ((kind, begin_ns, end_ns),) = events(tmp_path / "run")
    assert (kind, begin_ns) == ("gap", course.start_ns)
    assert end_ns is not None
    assert course.start_ns < end_ns <= clock.now_ns()


def test_a_run_killed_while_it_waits_for_its_start_has_missed_nothing(tmp_path: Path) -> None:
    """It goes on waiting."""
    begun(tmp_path / "run", f"start: 2099-01-01T00:00:00Z\n{PLAN}")
    course, record, _ = resume(tmp_path / "run", stop_on_fail=False)
    record.close()
    assert course.start_ns == 4_070_908_800 * 10**9
    assert events(tmp_path / "run") == []


@pytest.mark.parametrize("resumed", [False, True])
def test_a_stop_that_is_asked_for_before_the_monitor_is_ready_ends_the_run(tmp_path: Path, *, resumed: bool) -> None:
    """The record is there, so that ``soakwatch stop`` takes the request, and the monitor opens its sources."""
    folder = tmp_path / "run"
    course, record = begin(plan_from_text(PLAN, "p.yaml"), folder, SteadyClock(), ["x"], stop_on_fail=False)
    clock: Clock = SteadyClock()
    if resumed:
        record.close()
        course, record, clock = resume(folder, stop_on_fail=False)
    with record:
        stop_run(folder, StateReader(folder).read(clock.now_ns()), "asked for early", "test")
        end_ns = asyncio.run(asyncio.wait_for(Soak(course, record, clock).watch(), 120))
    assert end_ns < course.start_ns + 120 * 10**9, "of an hour"


def test_a_monitor_killed_before_it_knows_its_plan_leaves_no_record(tmp_path: Path) -> None:
    """So there is nothing to be resumed, and the same folder can be used again."""

    def dies(record: Record) -> None:
        record.set_meta("run", "p")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Record.create(tmp_path / "run", dies)
    assert not (tmp_path / "run" / "record.sqlite").exists()
    begun(tmp_path / "run")
    with RecordView.open(tmp_path / "run") as view:
        assert view.meta("run") == "p"


def test_of_a_run_whose_polling_was_over_only_the_end_is_left(tmp_path: Path) -> None:
    """Nobody polls a run again that was stopped; once all is done nothing is left."""
    folder = tmp_path / "run"
    begun(folder)
    with Record.open(folder) as record:
        record.begin_phase("soak", T0)
        record.set_meta(POLLED, str(2 * T0))
    course, record, _ = resume(folder, stop_on_fail=False)
    with record:
        assert course.polled_ns == 2 * T0
        record.set_meta("ended_ns", str(2 * T0))
        record.set_meta("verdict", "fail")
    assert events(folder) == []
    course, record, _ = resume(folder, stop_on_fail=False)
    with record:
        assert course.polled_ns == 2 * T0, "it was judged, and its reports are not written"
        Promises.recorded(folder, record).done(END)
    with pytest.raises(RecordError, match="has ended, its verdict is fail, and nothing of it is left"):
        resume(folder, stop_on_fail=False)


def test_a_run_that_was_over_before_its_first_poll_says_so_when_it_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to judge: one sentence, and the exit code of an inconclusive run."""
    folder = tmp_path / "run"
    begun(folder)
    with Record.open(folder) as record:
        record.set_meta(POLLED, str(time.time_ns() + 10**9))
    assert run(["resume", str(folder), "--no-web"]) == 3
    assert "over before its first poll: nothing was polled" in capsys.readouterr().out
    with pytest.raises(RecordError, match="nothing of it is left"):
        resume(folder, stop_on_fail=False)


def test_a_hook_of_the_end_is_run_once_however_often_the_monitor_is_killed(tmp_path: Path) -> None:
    """One that was done is silent, one that was cut off is told of and not run again, one that had not begun is run."""
    text = "hooks: [{on: [fail, end], run: [sh, -c, 'echo $SOAKWATCH_ON $SOAKWATCH_RULE']}]"
    hang = finding("hang")
    verdict = fold("p", Window(T0, T0 + 1), {"dut": "dut"}, [FAIL, hang], (), ())
    told = []
    with noting(tmp_path / "run") as (notes, record):
        for actions in ('{"hook 1: end": "begun"}', None):
            record.set_meta(META, actions or record_text(tmp_path / "run"))
            promises = Promises.recorded(tmp_path / "run", record)
            hooks = hooks_of(plan(text), tmp_path, notes, lambda: T0, (), promises)
            asyncio.run(hooks.conclude(verdict))
            assert promises.is_done(hook_action(1, "end"))
            assert len(promises.doubts) == (actions is not None)
            with RecordView.open(tmp_path / "run") as view:
                told.append(sorted(kept.data.decode().strip() for kept in view.artifacts()))
                (failed,) = [stored.event for stored in view.events()]
    assert told == [["fail hang", "fail memory_growth"]] * 2
    assert failed.detail["reason"] == (
        "end of the run: it had been started when the monitor was killed and may have run: it is not run again"
    )


def record_text(folder: Path) -> str:
    """The actions that a record holds."""
    with RecordView.open(folder) as view:
        return view.meta(META) or ""

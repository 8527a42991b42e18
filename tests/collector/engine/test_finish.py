"""The end of a run: what is promised is marked as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import plan

from soakwatch.core.clock import SteadyClock
from soakwatch.engine.finish import Ending
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.engine.notify.setup import notifying_of
from soakwatch.engine.promises import META, REPORT, Promises, is_complete
from soakwatch.engine.start import begin
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record, RecordView
from soakwatch.record.queue import Committer, Notes
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_model.sample import NOTHING, Poll, PollOutcome


class _Sinks(SinkProcesses):
    """Sinks that have written everything, or not."""

    wrote = True

    def finish(self, wait_s: float = 0.0) -> bool:
        """Whether all is written, as if it had been waited for."""
        return self.wrote


def ended(
    folder: Path, show: Callable[[RecordView, Verdict], None] = lambda _view, _verdict: None, *, wrote: bool = True
) -> list[str]:
    """What is said at the end of a run of two polls in a folder."""
    planned, clock, said = plan(""), SteadyClock(), list[str]()
    context, record = begin(planned, folder, clock, ["x"], stop_on_fail=False)
    with record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", 10**9, required=True)
        start_ns = context.start_ns
        for due_ns in (start_ns, start_ns + 10**9):
            record.put([Poll(source.id, due_ns, due_ns, 1, PollOutcome.OK, None, NOTHING)])
        promises = Promises.recorded(context.folder, record)
        notes = Notes(record, Committer(record, clock.now_ns, threaded=False))
        hooks = hooks_of(planned, context.folder, notes, clock.now_ns, (), promises)
        notifying = notifying_of(planned, context.folder, start_ns, clock.now_ns, resumed=False, promises=promises)
        sinks = _Sinks({}, context.folder, record, clock.now_ns, said.append)
        sinks.wrote = wrote
        Ending(record, promises, hooks, notifying, sinks, said.append, said.append, show).make(start_ns + 2 * 10**9)
    return said


def test_the_reports_are_marked_before_the_verdict_is_shown(tmp_path: Path) -> None:
    """A view that is open meanwhile would hold the mark up for ten seconds, and then it would be lost."""
    shown: list[bool] = []
    said = ended(
        tmp_path / "run", lambda view, _: shown.append(Promises(None, view.meta(META)).is_done(REPORT)), wrote=True
    )
    assert (shown, said) == ([True], [])


@pytest.mark.parametrize("wrote", [True, False])
def test_a_run_whose_sinks_owe_something_is_not_over(tmp_path: Path, *, wrote: bool) -> None:
    """Its reports are written, and what its database did not take is sent when it is resumed."""
    ended(tmp_path / "run", wrote=wrote)
    with RecordView.open(tmp_path / "run") as view:
        metas = {key: view.meta(key) or "" for key in ("ended_ns", "verdict", META)}
    assert is_complete(metas) is wrote


def test_a_deed_stands_in_the_record_before_it_is_begun(tmp_path: Path) -> None:
    """A monitor that is killed while it does it leaves a doubt, and nobody does it a second time."""
    with Record.create(tmp_path / "run") as record:
        assert Promises(record).begin("hook 1: end")
        later = Promises.recorded(tmp_path / "run", record)
        assert later.in_doubt("hook 1: end")
        assert not later.begin("hook 1: end")

"""The end of a run: what is promised is marked as soon as it is done."""

from __future__ import annotations

from pathlib import Path

from tests.collector.engine.hooks.hooks_kit import plan

from soakwatch.core.clock import SteadyClock
from soakwatch.engine.finish import Ending
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.engine.notify.setup import notifying_of
from soakwatch.engine.promises import META, REPORT, Promises
from soakwatch.engine.start import begin
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RecordView
from soakwatch.record.queue import Committer, Notes
from soakwatch.sinks.supervisor import SinkProcesses
from soakwatch_model.sample import NOTHING, Poll, PollOutcome


def test_the_reports_are_marked_before_the_verdict_is_shown(tmp_path: Path) -> None:
    """A view that is open meanwhile would hold the mark up for ten seconds, and then it would be lost."""
    planned, clock, shown = plan(""), SteadyClock(), []

    def show(view: RecordView, _: Verdict) -> None:
        shown.append(Promises(None, view.meta(META)).is_done(REPORT))

    context, record = begin(planned, tmp_path / "run", clock, ["x"], stop_on_fail=False)
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
        said: list[str] = []
        sinks = SinkProcesses({}, context.folder, record, clock.now_ns, said.append)
        Ending(record, promises, hooks, notifying, sinks, said.append, said.append, show).make(start_ns + 2 * 10**9)
    assert (shown, said) == ([True], [])

"""Everything in a record that is no reading: events, phases, findings, artifacts, texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from soakwatch.core.errors import RecordError
from soakwatch.record import Artifact, Record, RecordView, add_outside_event, finding_from_json, finding_to_json
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, MarkKind, Outcome, Victim
from soakwatch_model.sample import Answer, Poll, PollOutcome
from soakwatch_model.window import Window

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
RSS = "process.memory.usage"


def new(folder: Path) -> tuple[Record, int]:
    """A record with one target and one source of 1 s."""
    record = Record.create(folder)
    record.target("dut", "dut")
    return record, record.source("dut", "local", "this machine", SECOND, required=True).id


def test_small_values_come_back(tmp_path: Path) -> None:
    """Meta, roles, sources, phases, spans, artifacts, cursors and events come back as they were given."""
    record, source = new(tmp_path)
    with record:
        record.set_meta("plan", "name: x\n")
        record.set_meta("plan", "name: y\n")
        assert record.source("dut", "local", "this machine", 5 * SECOND, required=False).id == source
        record.begin_span(T0)
        record.heartbeat(T0 + 7)
        record.begin_phase("baseline", T0)
        record.begin_phase("soak", T0 + 50)
        record.keep_artifact(Artifact("a.bin", "application/octet-stream", b"\0\1"))
        planned = Event("upgrade", "dut", "", T0, None, {"a": "ü"}, {"reboot": 1}, T0 + 600 * SECOND)
        number = record.add_event("dut", planned, "plan")
        seen = Event("process.restart", "", "process=a", T0 + 3, T0 + 4, {"pid": "7"})
        record.put([Poll(source, T0, T0 + 99, 1, PollOutcome.OK, None, Answer((), (seen,), ()))])
        outside = add_outside_event(tmp_path, "dut", Event("failover", "dut", "", T0 + 9, None))
        assert [(e.id, e.origin) for e in record.events_after(number)] == [(number + 1, "probe"), (outside, "user")]
        record.end_event(number, T0 + 5)
        with pytest.raises(RecordError, match="no event 99"):
            record.end_event(99, T0)
        assert record.last_ns == T0 + 100
        with RecordView.open(tmp_path) as view:
            assert view.meta("plan") == "name: y\n"
            assert view.meta("none") is None
            assert view.roles() == {"dut": "dut"}
            (recorded_source,) = view.sources()
            assert (recorded_source.interval_ns, recorded_source.required, recorded_source.role) == (
                5 * SECOND,
                False,
                "dut",
            )
            assert [(p.name, p.window) for p in view.phases()] == [
                ("baseline", Window(T0, T0 + 50)),
                ("soak", Window(T0 + 50, T0 + 101)),
            ]
            assert view.spans() == (Window(T0, T0 + 7),)
            assert view.artifacts() == (Artifact("a.bin", "application/octet-stream", b"\0\1"),)
            upgrade, restart, failover = (stored.event for stored in view.events())
        assert upgrade == Event("upgrade", "dut", "", T0, T0 + 5, {"a": "ü"}, {"reboot": 1}, T0 + 600 * SECOND)
        assert restart == Event("process.restart", "dut", "process=a", T0 + 3, T0 + 4, {"pid": "7"})
        assert failover.kind == "failover"
        record.end_phase(T0 + 200)
        assert record.finish()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["record.lock", "record.sqlite"]


FULL = Finding(
    "memory_growth",
    3,
    Outcome.FAIL,
    "dut",
    RSS,
    "process=a",
    Window(T0, T0 + 5),
    "definition é",
    "reason",
    7,
    9,
    1 / 3,
    float("inf"),
    (-0.0, 5e-324),
    "By/h",
    float("nan"),
    "By",
    "wait",
    (Mark(1, None, "m"), Mark(1, 2, "n", MarkKind.SILENCE, planned=True, victim=Victim("a b", "7", "/c/x"))),
    {"slope": 0.1, "n": 3},
    ("doubt",),
)


def test_findings_come_back_without_loss() -> None:
    """A finding is the same after JSON, non-finite numbers and numpy's numbers included."""
    back = finding_from_json(finding_to_json(FULL))
    assert repr(back) == repr(FULL)
    bare = Finding("r", 1, Outcome.PASS, "t", "m", "", Window(0, 1), "d", "r", 0, measured=np.float64(0.1))
    assert finding_from_json(finding_to_json(bare)) == bare


def test_live_findings_are_replaced_and_alarms_kept_as_withdrawn(tmp_path: Path) -> None:
    """Each judging replaces the one before; a live failure that is not found again stays as withdrawn."""
    fine = Finding("cpu", 1, Outcome.PASS, "dut", "m", "", Window(0, 1), "d", "r", 1)
    record, _ = new(tmp_path)
    with record:
        record.put_findings([FULL, fine], live=True, judged_ns=1)
        record.put_findings([FULL, fine], live=True, judged_ns=2)
        with RecordView.open(tmp_path) as view:
            assert [f.rule for f in view.findings(live=True)] == ["memory_growth", "cpu"]
            assert view.withdrawn() == ()
        record.put_findings([fine], live=True, judged_ns=3)
        record.put_findings([FULL], live=False, judged_ns=4)
        with RecordView.open(tmp_path) as view:
            assert view.findings(live=True) == (fine,)
            assert [f.rule for f in view.findings(live=False)] == ["memory_growth"]
            assert [(index, f.rule) for index, f in view.withdrawn()] == [(3, "memory_growth")]

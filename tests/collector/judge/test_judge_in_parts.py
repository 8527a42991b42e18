"""A long record is judged in several processes: the verdict is that of one, bit for bit, whatever becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.bench.accuracy.garbled import well
from tests.bench.accuracy.night import write_run

from soakwatch.cli.main import run
from soakwatch.core.workers import local
from soakwatch.core.workers.executor import JobLostError
from soakwatch.judge import in_parts, plausible
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.in_parts import FoundInPart, InParts, divided
from soakwatch.judge.judge import cases_of, found_in
from soakwatch.judge.record_verdict import rules_for
from soakwatch.record import RecordView, SeriesKey
from soakwatch_model.series import Series

DROPPED = "system.network.packet.dropped", "interface=eth1,direction=receive"


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """The record of a night in which one reading cannot be."""
    drawn = well(4)
    value = drawn.of(*DROPPED)
    value[:] = 100.0
    value[50] += 2.0**32
    write_run(drawn, tmp_path / "record")
    return tmp_path / "record"


def verdict(night: Path) -> str:
    """The verdict.json that the command writes."""
    out = night.parent / "verdict.json"
    assert run(["judge", str(night), "--json", str(out)]) in {0, 1, 3}
    return out.read_text(encoding="utf-8")


def in_so_many(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a short record is judged in so many processes."""
    monkeypatch.setattr(in_parts, "_WORTH_S", 0.001)
    monkeypatch.setattr(in_parts, "_HEAD_START_S", 0.0)
    monkeypatch.setattr(local, "processors", lambda: processes)


def test_two_processes_say_what_one_says(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = verdict(night)
    begun: list[Future[FoundInPart] | None] = []
    begin = InParts._begun

    def counted(*given: object) -> Future[FoundInPart] | None:
        begun.append(begin(*given))  # type: ignore[arg-type]
        return begun[-1]

    monkeypatch.setattr(InParts, "_begun", counted)
    assert verdict(night) == alone
    assert not begun, "a short record is judged here"
    in_so_many(2, monkeypatch)
    assert verdict(night) == alone
    (other,) = begun
    assert other is not None
    assert 0 < len(other.result().findings) < alone.count('"rule": "')
    assert '"set_aside": [\n    {' in alone


def test_what_a_process_leaves_is_judged_here(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = verdict(night)
    began: list[object] = []
    lost: Future[FoundInPart] = Future()
    lost.set_exception(JobLostError("judging has no result: the process that worked on it was killed by SIGKILL"))
    in_so_many(3, monkeypatch)

    def never(*given: object) -> Future[FoundInPart] | None:
        began.append(given)
        return lost if len(began) == 1 else None

    monkeypatch.setattr(InParts, "_begun", never)
    assert verdict(night) == alone
    assert len(began) == 2


def test_parts_take_about_as_long_and_no_series_is_in_two(night: Path) -> None:
    with RecordView.open(night) as view:
        cases = cases_of(CaseBuilder(view), rules_for(view), None)
    for most in (1, 2, 3, 8):
        parts = divided(cases, {case.place: 1.0 for case in cases}, most)
        assert len(parts) == most
        assert sorted(case.place for part in parts for case in part) == list(range(len(cases)))
        assert max(map(len, parts)) - min(map(len, parts)) <= 16
        series = [{case.about.keys[0] for case in part if case.rule.scope != "target"} for part in parts]
        assert all(not one & other for number, one in enumerate(series) for other in series[:number])


class _Counting(RecordView):
    reads: Counter[SeriesKey]

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        self.reads[key] += 1
        return super().series(key, begin_ns, end_ns)


def test_a_series_is_read_once_for_all_rules_that_judge_it(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few series only, as of a record of days; and those that rest take no room."""
    with _Counting.open(night) as view:
        assert isinstance(view, _Counting)
        view.reads = Counter()
        largest = max(view.series(key).value.nbytes for key in view.keys(None))
        monkeypatch.setattr(plausible, "_KEPT_BYTES", 8 * largest)
        view.reads.clear()
        case_builder = CaseBuilder(view)
        alone: Sequence[object] = [use for use in rules_for(view) if use.rule.scope != "target"]
        found_in(case_builder, cases_of(case_builder, alone, None), None)  # type: ignore[arg-type]
        assert sum(view.reads.values()) <= 1.2 * len(view.reads)
        resting = [key for key in view.reads if len(set(view.series(key).value.tolist())) == 1]
        assert len(resting) > 3
        assert sum(series.held_bytes for series in case_builder.plausible._still.values()) <= 8 * len(view.keys(None))

"""Nights in virtual time: the same everywhere, and what must hold in each of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from soakwatch.engine.live_judging import LiveJudging
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.follow import polls_due
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import MONITOR
from soakwatch_testing.night.__main__ import command
from soakwatch_testing.night.checks import broken, differences, lost_nothing, polled_alike
from soakwatch_testing.night.faults import Fault, Kind, Night, draw
from soakwatch_testing.night.lives import Lives, NightResult

REPOSITORY = Path(__file__).parents[4]


def lived(night: Night, place: Path, *, reports: bool = False) -> NightResult:
    """A night, lived."""
    return Lives(night, place, reports=reports).live()


def killed(second: float, *, down_s: float = 0.3, steps: int = 0, torn: float = 1.0) -> Fault:
    """The monitor dies at this second."""
    return Fault(second, second, Kind.KILL, size=down_s, steps=steps, torn=torn)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (5, 9))])
def test_what_must_hold_in_every_night_holds(tmp_path: Path, seed: int) -> None:
    """A quarter of an hour with whatever its seed brings; `tests/night --count` lives thousands of longer ones."""
    night = draw(seed, 0.25, 3, list(Kind))
    assert night.faults, "a seed without a fault shows nothing"
    assert broken(night, lived(night, tmp_path)) == []


def test_one_seed_is_one_night_byte_for_byte() -> None:
    """In two processes whose sets have other orders, by the command, which tells the digests last: that of a checkout,
    which prepares what it needs as `tests/run` does, and here."""
    words = ["--seed", "7", "--hours", "0.25", "--targets", "2"]
    hashing = "1" if os.environ.get("PYTHONHASHSEED", "random") in {"0", "random"} else "0"
    done = subprocess.run(
        [str(REPOSITORY / "tests/night"), *words],
        env={**os.environ, "PYTHONHASHSEED": hashing},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [done.stdout, CliRunner().invoke(command, words).stdout]
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]
    words = said[0].splitlines()[-1].split()
    assert (words[0], words[2], len(words[1]), len(words[3])) == ("record", "verdict", 64, 64)
    assert "should show" in said[0]
    assert "verdict: " in said[0]


def test_a_night_that_nothing_befalls_passes_and_has_its_reports(tmp_path: Path) -> None:
    """The hooks of its begin and its end are run, and the promise of its reports is kept in the record."""
    result = lived(Night(1, 0.25, 2, ()), tmp_path, reports=True)
    assert (result.verdict.outcome, result.lives, dict(result.deeds)) == (Outcome.PASS, 1, {"start": 1, "end": 1})
    assert {"report.html", "verdict.json", "junit.xml", "report.md"} <= {file.name for file in result.folder.iterdir()}


@pytest.mark.parametrize("torn", [pytest.param(1.0, marks=pytest.mark.slow), 0.5])
def test_a_resumed_night_keeps_grid_and_verdict(tmp_path: Path, torn: float) -> None:
    """Killed between two polls, resumed before the next is due: nothing is lost, and every poll is on the grid of the
    first life."""
    alive = Night(3, 0.25, 2, (Fault(700, 700, Kind.RESTART, "dut-1"),))
    night = Night(3, 0.25, 2, (killed(603.5, torn=torn), *alive.faults))
    result = lived(night, tmp_path / "a")
    assert (result.lives, broken(night, result), lost_nothing(result)) == (2, [], True)
    other = lived(alive, tmp_path / "b")
    assert differences(result, other) == []
    assert result.verdict.outcome is Outcome.FAIL
    with RecordView.open(result.folder) as view:
        for source in view.sources():
            due = polls_due(result.folder, source.id, 0, 2**62).due_ns
            assert {int(step) for step in due[1:] - due[:-1]} == {source.interval_ns}
            assert list(due) == list(polls_due(other.folder, source.id, 0, 2**62).due_ns), "to the poll at the very end"


@pytest.mark.parametrize("steps", [pytest.param(n, marks=[pytest.mark.slow] * (n % 12 > 0)) for n in range(0, 24, 4)])
def test_kills_at_every_step_of_a_commit_lose_at_most_that_batch(tmp_path: Path, steps: int) -> None:
    """Between any two statements of it; the record of before is whole in each resumed run."""
    night = Night(11, 0.25, 2, (killed(299.9, steps=steps, torn=0.7),))
    result = lived(night, tmp_path)
    assert broken(night, result) == []
    with RecordView.open(result.folder) as view:
        for source in view.sources():
            assert (polls_due(result.folder, source.id, 0, 2**62).outcome != 0).sum() <= 1, source.target


def test_a_run_that_is_killed_before_its_first_poll_keeps_its_grid(tmp_path: Path) -> None:
    """What was due meanwhile is a gap on the grid of the begin, and the resumed run goes on on it."""
    night = Night(2968, 0.25, 2, (killed(0.431, down_s=12.3, steps=20),))
    result = lived(night, tmp_path)
    assert not any(result.saved[0].values()), "it had a poll when it was killed"
    assert broken(night, result) == []


def test_a_run_that_is_resumed_after_its_end_is_judged_up_to_its_end(tmp_path: Path) -> None:
    """The monitor dies behind its last poll, and is resumed when the night is over: what follows is no silence."""
    night = Night(3478, 0.25, 2, (killed(890.906, down_s=100.775, steps=74),))
    result = lived(night, tmp_path / "killed")
    assert lost_nothing(result)
    assert differences(result, lived(Night(3478, 0.25, 2, ()), tmp_path / "alive")) == []


def test_a_monitor_that_dies_at_the_very_end_has_no_poll_of_then(tmp_path: Path) -> None:
    """The poll that is due at the end is begun and not committed; its night is held against none that has it."""
    night = Night(3989, 0.25, 2, (killed(880.342, steps=112),))
    result = lived(night, tmp_path / "killed")
    assert broken(night, result) == []
    other = lived(Night(3989, 0.25, 2, ()), tmp_path / "alive")
    assert (lost_nothing(result), polled_alike(result, other)) == (True, False)


@pytest.mark.parametrize("step_s", [86400.0, pytest.param(-3600.0, marks=pytest.mark.slow)])
def test_a_clock_that_was_set_before_the_monitor_died_moves_nothing(tmp_path: Path, step_s: float) -> None:
    """The resumed run goes on with the time of the run, not with the wall clock's: the gap is as long as it was."""
    night = Night(4, 0.25, 2, (Fault(200, 200, Kind.CLOCK, size=step_s), killed(500, down_s=20)))
    result = lived(night, tmp_path)
    assert broken(night, result) == []
    with RecordView.open(result.folder) as view:
        gaps = [e.event for e in view.events() if e.event.kind == "gap"]
        assert [19 < ((gap.end_ns or 0) - gap.begin_ns) * 1e-9 < 32 for gap in gaps] == [True]
        offset = view.series(SeriesKey(MONITOR, "monitor.clock.offset", "")).values
        assert abs(float(offset[-1]) - step_s) < 1


@pytest.mark.slow
def test_a_full_disk_loses_no_poll(tmp_path: Path) -> None:
    """They wait in memory, minutes long, and are written when there is room."""
    night = Night(6, 0.25, 3, (Fault(200, 500, Kind.DISK),))
    result = lived(night, tmp_path)
    assert (broken(night, result), result.verdict.outcome) == ([], Outcome.PASS)
    assert lost_nothing(result)


@pytest.mark.parametrize("target", [pytest.param("dut-1", marks=pytest.mark.slow), "generator"])
def test_a_device_that_is_silent_too_long_is_no_pass(tmp_path: Path, target: str) -> None:
    """A fifth of the night, of a device or of the generator."""
    night = Night(8, 0.25, 2, (Fault(300, 480, Kind.SILENCE, target),))
    result = lived(night, tmp_path)
    assert broken(night, result) == []
    assert result.verdict.outcome is not Outcome.PASS


def test_a_device_that_drops_packets_is_not_excused_by_the_restart_of_another(tmp_path: Path) -> None:
    """The load is shared, and its own counters say who lost it."""
    faults = (Fault(310, 310, Kind.RESTART, "dut-1"), Fault(500, 600, Kind.LOSS, "dut-2", size=0.9))
    result = lived(Night(9, 0.25, 3, faults), tmp_path)
    failed = {(f.target, f.rule) for f in result.verdict.findings if f.outcome is Outcome.FAIL}
    assert {("dut-1", "process_restart"), ("dut-2", "drops"), ("dut-2", "loss")} <= failed


def test_what_does_not_hold_is_told(tmp_path: Path) -> None:
    """The checks are no decoration: a night judged as another one's is broken in each point that differs."""
    quiet = lived(Night(1, 0.25, 3, ()), tmp_path / "quiet")
    leaky = Night(1, 0.25, 3, (Fault(300, 301, Kind.RESTART, "dut-1"),))
    assert any("passes, although" in sentence for sentence in broken(leaky, quiet))
    failing = lived(leaky, tmp_path / "failing")
    assert any("nothing befell a device" in sentence for sentence in broken(Night(1, 0.25, 3, ()), failing))
    assert differences(quiet, failing)


def test_a_restart_that_no_poll_follows_is_not_asked_for(tmp_path: Path) -> None:
    """The monitor died before it and was resumed when the night was over: that is inconclusive, and no pass."""
    night = Night(3079, 0.25, 2, (killed(600, down_s=305), Fault(660, 660, Kind.RESTART, "dut-1")))
    result = lived(night, tmp_path)
    assert broken(night, result) == []
    assert result.verdict.outcome is Outcome.INCONCLUSIVE


def test_a_defect_that_the_monitor_outlives_breaks_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A live judge that raises at each look ends no run, but no night hides it."""

    def broken_evaluate(_: LiveEvaluator) -> None:
        raise TypeError("a defect")

    monkeypatch.setattr(LiveEvaluator, "evaluate", broken_evaluate)
    result = lived(Night(1, 0.25, 2, ()), tmp_path)
    assert result.verdict.outcome is Outcome.PASS
    assert result.broken == ["a job of the monitor raised TypeError: a defect"]


def test_what_the_live_judge_found_is_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that shows its findings to nobody is a broken night."""

    async def forgets(live: LiveJudging, judged_ns: int) -> None:
        del live, judged_ns

    night = Night(1, 0.25, 2, (Fault(300, 301, Kind.RESTART, "dut-1"),))
    assert lived(night, tmp_path / "well").broken == []
    monkeypatch.setattr(LiveJudging, "record", forgets)
    (sentence, *_) = lived(night, tmp_path / "forgetful").broken
    assert "the record lacks what the live judge found at its look before" in sentence


@pytest.mark.parametrize("wrong", [["--faults", "rain"], ["--hours", "0"], ["--count", "5", "--shrink"]])
def test_wrong_words_are_refused_in_one_sentence(wrong: list[str]) -> None:
    """With what there is to choose from."""
    done = CliRunner().invoke(command, wrong)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")


@pytest.mark.slow
def test_a_clock_that_is_set_while_no_monitor_runs_moves_nothing(tmp_path: Path) -> None:
    """The gap is as long as nobody watched, and what came meanwhile is no burst of load."""
    night = Night(4, 0.25, 2, (Fault(310, 310, Kind.CLOCK, size=-86400.0), killed(300, down_s=60)))
    result = lived(night, tmp_path)
    assert broken(night, result) == []
    with RecordView.open(result.folder) as view:
        ((begin_ns, end_ns),) = [(e.event.begin_ns, e.event.end_ns) for e in view.events() if e.event.kind == "gap"]
        assert 59 < ((end_ns or 0) - begin_ns) * 1e-9 < 72
    assert result.verdict.outcome is not Outcome.FAIL


def test_a_poll_that_ends_when_the_next_is_due_is_no_late_monitor(tmp_path: Path) -> None:
    """The device was slow, and the account says so, whichever life of the monitor polled it."""
    night = Night(4, 0.25, 2, (Fault(300, 420, Kind.SLOW, "dut-1", size=25.0),))
    result = lived(night, tmp_path)
    with RecordView.open(result.folder) as view:
        (ledger,) = [one for one in view.ledgers(view.window()) if one.target == "dut-1"]
    assert "missed" not in ledger.lost, ledger.lost
    assert ledger.lost["overrun"] > 0

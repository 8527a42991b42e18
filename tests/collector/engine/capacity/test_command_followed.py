"""A search whose generator does not send what it is asked for: now and then, always, or only up to its own limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.engine.capacity.virtual_load import GOAL, run

from soakwatch.judge.capacity import SearchState

COUNTED = ("load.tx.packets", "load.rx.packets")
TELLS = (*COUNTED, "load.offered.packet.rate")


def stray(starts: dict[int, float]) -> Callable[[int], float]:
    """What is sent at each start of what was asked for: all of it, but at these."""
    return lambda start: starts.get(start, 1.0)


@pytest.mark.parametrize(
    "starts", [{2: 1.35}, {2: 1.35, 3: 1.05}, {3: 0.8, 5: 1.35, 6: 1.35}, {1: 1.35, 2: 0.8, 6: 0.9, 9: 1.04}]
)
def test_a_generator_that_strays_now_and_then_finds_the_same_capacity(
    starts: dict[int, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends a third more, or a fifth less: those trials are made again, and the capacity is found within the width
    that was asked for."""
    ran = run(tmp_path / "run", monkeypatch, tells=TELLS, strays=stray(starts))
    (goal,) = ran.search.goals
    assert ran.search.state is SearchState.FOUND
    assert goal.limit == ""
    assert goal.rate == pytest.approx(6234, rel=0.02)
    assert any("of what it was asked for" in words for words in ran.words("capacity.repeated"))
    assert sum(trial.repeats for trial in ran.search.trials) == len(ran.words("capacity.repeated"))
    (note,) = ran.search.notes
    assert "less than 97 % or more than 103 % of what it was asked for" in note


@pytest.mark.parametrize("start", [4, 5, 6])
def test_a_generator_that_does_not_report_its_command_is_known_by_its_other_trials(
    start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What most loads have in common is its full rate."""
    ran = run(tmp_path / "run", monkeypatch, tells=COUNTED, strays=stray({start: 1.35}))
    (goal,) = ran.search.goals
    assert goal.rate == pytest.approx(6234, rel=0.02)
    assert ran.search.notes


@pytest.mark.parametrize("factor", [1.2, 0.85])
def test_a_generator_that_always_strays_is_no_measure(
    factor: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trial is made three times and then refused: no capacity is found, and one sentence gives the share."""
    ran = run(tmp_path / "run", monkeypatch, tells=TELLS, strays=lambda _: factor)
    (goal,) = ran.search.goals
    assert goal.bound(ran.search.state) is None
    (words,) = ran.words("capacity.result")
    assert f"{100 * factor:.0f} % of what it was asked for" in words
    assert all(trial.refused for trial in ran.search.trials if trial.offered >= 200)


def test_a_generator_at_its_own_limit_is_not_called_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches 5,000 packets/s of 10,000, and the device would carry 6,234: at least 5,000."""
    ran = run(tmp_path / "run", monkeypatch, tells=TELLS, most=5000.0)
    (goal,) = ran.search.goals
    assert goal.lower is not None
    assert goal.rate == pytest.approx(5000, rel=0.04)
    assert goal.lower == pytest.approx(0.5, rel=0.04)  # a phase at 80 % of it sends 80 % of it
    assert "of what it was asked for" in goal.limit
    assert ran.words("capacity.result")[0].startswith("at least ")


def test_a_generator_above_its_limit_still_finds_a_capacity_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches 8,000 packets/s: loads above lose anyway, are bounds as they are, and are not made again."""
    ran = run(tmp_path / "run", monkeypatch, tells=TELLS, most=8000.0)
    (goal,) = ran.search.goals
    assert (ran.search.state, goal.limit) == (SearchState.FOUND, "")
    assert goal.rate == pytest.approx(6234, rel=0.02)
    assert not ran.words("capacity.repeated")


def test_a_trial_that_loses_a_packet_now_and_then_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other start loses 40 packets, whatever the load: by one trial a load that is none that holds, and with one
    more try at the same rate the capacity is found."""
    goal = GOAL.replace("sum: 8s", "sum: 4s, exceed: 0%").replace("loss: 0", "loss: 0.05%")
    phases = "[{{capacity: {}}}, {{soak: {{for: 20s, load: 50% of capacity}}}}]"

    def drops(start: int) -> int:
        return 40 * (start % 2)

    once = run(tmp_path / "once", monkeypatch, phases.format(goal), drops=drops)
    assert (once.search.goals[0].rate or 0.0) < 5900
    again = run(tmp_path / "again", monkeypatch, phases.format(goal.replace("}", ", retry: 1}")), drops=drops)
    (found,) = again.search.goals
    assert found.rate == pytest.approx(6234, rel=0.02)
    assert any(trial.retries for trial in again.search.trials)
    assert any("is tried once more" in words for words in again.words("capacity.repeated"))


@pytest.mark.parametrize(("late_poll", "of_three", "tells"), [(1, 2, TELLS), (1, 1, COUNTED), (3, 2, TELLS)])
def test_polls_that_are_read_late_do_not_change_the_capacity(
    late_poll: int, of_three: int, tells: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine reads a poll of one or two starts of three 0.4 s after its time: between two readings the rate
    then seems a quarter lower or higher than it is, and what was counted says otherwise."""

    def late(start: int, poll: int) -> float:
        return 0.4 * (poll == late_poll and 0 < start % 3 <= of_three)

    ran = run(tmp_path / "run", monkeypatch, tells=tells, late=late)
    (goal,) = ran.search.goals
    assert ran.search.state is SearchState.FOUND
    assert goal.limit == ""
    assert goal.rate == pytest.approx(6234, rel=0.02)

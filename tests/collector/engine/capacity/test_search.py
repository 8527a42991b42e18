"""Searches for the capacity in whole runs: what is found, what limits it, and what disturbs a search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.collector.engine.capacity.virtual_load import GOAL, run

from soakwatch.judge.capacity import SearchState
from soakwatch.record import RecordView
from soakwatch_model.finding import Outcome

CAPACITIES = ("load.capacity.packet.rate", "load.capacity.level")


def test_the_capacity_is_found_and_the_next_phase_takes_a_share_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The phase ends when it is found, the soak follows at once at 80 % of it, and the record has it as readings."""
    ran = run(tmp_path / "run", monkeypatch)
    (goal,) = ran.search.goals
    assert goal.lower is not None
    assert goal.upper is not None
    assert goal.throughput is not None
    assert goal.lower <= 0.6234 < goal.upper
    assert goal.upper - goal.lower <= 0.02 * goal.upper
    assert (ran.search.state, goal.limit, ran.search.unit) == (SearchState.FOUND, "", "packet")
    assert ran.phases()[0][1] < 120
    assert ran.phases()[1] == ("soak", 60.0)
    assert ran.load.levels[-1][1] == pytest.approx(0.8 * goal.throughput)
    assert ran.words("capacity.result")[0].startswith("capacity at loss 0: 6,1")
    assert len(ran.words("capacity.trial")) == len(ran.search.trials)
    (turn,) = ran.events("phase.turn")
    assert turn.detail["reason"] == "the search for the capacity was over"
    with RecordView.open(ran.folder) as view:
        keys = {(key.metric, key.object): key for key in view.keys(CAPACITIES)}
        rate = view.series(keys["load.capacity.packet.rate", "loss=0,bound=found"])
    assert rate.values.tolist() == pytest.approx([goal.rate])


def test_the_loss_of_an_overload_is_judged_by_the_capacity_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device at 120 % of its capacity has to lose a sixth: the search says so, the plan need not state it."""
    after = "{soak: {for: 60s, load: 80% of capacity}}, {spike: {for: 60s, load: 75%}}"
    phases = f"[{{capacity: {GOAL}}}, {after}]"
    ran = run(tmp_path / "run", monkeypatch, phases)
    (judged,) = [finding for finding in ran.verdict().findings if finding.rule == "overload_loss"]
    assert judged.outcome is Outcome.PASS, judged.sentence
    assert judged.numbers["capacity"] == pytest.approx(6234, rel=0.01)
    assert judged.numbers["capacity_error"] == pytest.approx(0.02 / 12**0.5, rel=0.5)


def test_several_loss_ratios_have_bounds_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10 % allowed the load is 1/0.9 times as high, and a phase may name which of the two it means."""
    goal = GOAL.replace("loss: 0", "loss: [10%, 0]")
    phases = f"[{{capacity: {goal}}}, {{soak: {{for: 20s, load: 50% of capacity at 10%}}}}]"
    ran = run(tmp_path / "run", monkeypatch, phases)
    strict, loose = ran.search.goals
    assert (strict.loss, loose.loss) == (0.0, 0.1)
    assert loose.lower is not None
    assert loose.throughput is not None
    assert loose.lower == pytest.approx(0.6234 / 0.9, rel=0.02)
    assert loose.throughput == pytest.approx(0.6234, rel=0.02)
    assert ran.load.levels[-1][1] == pytest.approx(0.5 * loose.throughput)


@pytest.mark.parametrize("tells", [("load.requests", "load.failures"), ("load.tx.packet.rate", "load.rx.packet.rate")])
def test_requests_and_bare_rates_are_counted_too(
    tells: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of requests the failed ones are lost; a load that reports rates alone has them summed up over time."""
    ran = run(tmp_path / "run", monkeypatch, tells=tells)
    (goal,) = ran.search.goals
    assert goal.rate == pytest.approx(6234, rel=0.03)
    assert ran.search.unit == ("request" if "load.requests" in tells else "packet")


def test_a_noisy_device_is_found_within_its_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a load's trials may exceed the loss ratio: a capacity that scatters by 0.5 % is found within 3 %."""
    ran = run(tmp_path / "run", monkeypatch, noise=0.005)
    (goal,) = ran.search.goals
    assert ran.search.state is SearchState.FOUND
    assert goal.rate == pytest.approx(6234, rel=0.03)


@pytest.mark.parametrize(
    ("load", "ceilings", "why"),
    [
        ({"capacity": 50_000.0}, {}, "was lost at the highest load of the search"),
        ({"most": 5000.0}, {}, "was lost at the highest load of the search"),
        ({}, {"load.ceiling.packet.rate": 6300.0}, "the bounds reach the generator's own ceiling of 6,300 packets/s"),
    ],
)
def test_the_limit_of_the_generator_is_no_capacity_of_the_device(
    load: dict[str, Any], ceilings: dict[str, float], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called a least value, with the reason, and is marked so in the readings."""
    ran = run(tmp_path / "run", monkeypatch, ceilings=ceilings, **load)
    (goal,) = ran.search.goals
    assert why in goal.limit
    (words,) = ran.words("capacity.result")
    assert words.startswith("at least ")
    assert "the generator's limit, not the device's capacity" in words
    with RecordView.open(ran.folder) as view:
        bounds = {key.object for key in view.keys(CAPACITIES) if key.metric == "load.capacity.level"}
    assert bounds == {"loss=0,bound=at least"}


def test_a_trial_with_a_missing_poll_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load does not answer for 20 s in the middle of the search: nothing of that counts as a trial without loss."""
    ran = run(tmp_path / "run", monkeypatch, silent=lambda second: 11 < second < 31)
    (goal,) = ran.search.goals
    assert goal.lower is not None
    assert goal.upper is not None
    assert goal.lower <= 0.6234 < goal.upper
    assert sum(trial.repeats for trial in ran.search.trials) > 0
    assert any("no answer from 198.51.100.7" in words for words in ran.words("capacity.repeated"))
    assert not [trial for trial in ran.search.trials if trial.level > 0.6234 and trial.lost == 0]


def test_a_load_that_does_not_follow_makes_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It rests while it should send: nothing was sent, and that is not a trial without loss."""
    ran = run(tmp_path / "run", monkeypatch, deaf=lambda second: 5 < second < 40)
    (goal,) = ran.search.goals
    assert goal.rate == pytest.approx(6234, rel=0.03)
    assert ran.words("capacity.repeated")


def test_a_search_that_takes_too_long_keeps_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak has a share of the lower bound so far, which is said, and the run cannot pass."""
    goal = GOAL.replace("at_most: 20m", "at_most: 25s")
    phases = f"[{{capacity: {goal}}}, {{soak: {{for: 20s, load: 50% of capacity}}}}]"
    ran = run(tmp_path / "run", monkeypatch, phases)
    (known,) = ran.search.goals
    assert (ran.search.state, ran.search.reason) == (
        SearchState.CUT,
        "its longest time (at_most) was over",
    )
    assert known.provisional
    assert known.throughput is not None
    assert ran.phases() == [("capacity", 25.0), ("soak", 20.0)]
    assert ran.load.levels[-1][1] == pytest.approx(0.5 * known.throughput)
    assert "at least" in ran.words("capacity.load")[0]
    (finding,) = [f for f in ran.verdict().findings if f.rule == "capacity"]
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert ran.verdict().outcome is Outcome.INCONCLUSIVE


def test_without_any_known_loss_nothing_is_searched_and_nothing_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search ends at once with a sentence, and the soak rests: never at full load."""
    ran = run(tmp_path / "run", monkeypatch, tells=("load.tx.packets",))
    assert ran.search.state is SearchState.CUT
    assert ran.search.reason.startswith("no driven load counts what it loses")
    assert ran.phases()[0][1] < 30
    assert ran.words("capacity.load") == ["soak: 80% of capacity: no capacity is known, so nothing is sent"]
    assert ran.load.levels[-1][1] == 0.0
    assert ran.verdict().outcome is Outcome.INCONCLUSIVE


def test_a_device_that_loses_at_every_load_has_no_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the lowest load of the search nothing is known, and nothing is sent afterwards."""
    ran = run(tmp_path / "run", monkeypatch, capacity=20.0)
    (goal,) = ran.search.goals
    assert (ran.search.state, goal.lower, goal.throughput) == (SearchState.FOUND, None, None)
    assert ran.words("capacity.result")[0].startswith("no capacity at loss 0")
    assert ran.load.levels[-1][1] == 0.0


def test_a_run_that_is_ended_in_the_search_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials and bounds so far are in the record, with the reason."""
    ran = run(tmp_path / "run", monkeypatch, stop_after_s=25)
    assert (ran.search.state, ran.search.reason) == (SearchState.CUT, "the run was ended")
    assert ran.search.trials
    assert ran.search.goals[0].lower is not None


def test_a_search_cut_by_a_dead_monitor_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes all of its trials anew, in what is left of its time, and says so."""
    run(tmp_path / "run", monkeypatch, kill_after_s=25)
    ran = run(tmp_path / "run", monkeypatch, again=True)
    (goal,) = ran.search.goals
    assert goal.rate == pytest.approx(6234, rel=0.03)
    assert ran.search.trials[0].warmup
    assert ran.search.notes == ("the monitor was interrupted; the search began again",)
    assert ran.phases()[1] == ("soak", 60.0)


def test_a_capacity_that_was_found_is_used_again_by_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monitor died in the soak: no search is made again, and the soak goes on at the same load."""
    before = run(tmp_path / "run", monkeypatch, kill_after_s=60)
    level = before.load.levels[-1][1]
    ran = run(tmp_path / "run", monkeypatch, again=True)
    assert ran.search == before.search
    assert [level for _, level in ran.load.levels] == [pytest.approx(level)]


def test_a_capacity_of_both_directions_is_told_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Port 0 sends two thirds, port 1 the rest: the words, the readings, verdict.json and each trial have both."""
    ran = run(tmp_path / "run", monkeypatch, first=2 / 3)
    (goal,) = ran.search.goals
    assert goal.rate is not None
    assert [(way.port, way.to) for way in goal.ways] == [("0", "1"), ("1", "0")]
    assert [way.offered for way in goal.ways] == pytest.approx([goal.rate * 2 / 3, goal.rate / 3], rel=0.001)
    (words,) = ran.words("capacity.result")
    assert re.search(r"packets/s in all, 4,1\d\d from port 0 to port 1, 2,0\d\d from port 1 to port 0 \(", words)
    lossy = next(trial for trial in ran.search.trials if trial.lost)
    assert sum(way.lost or 0.0 for way in lossy.ways) == pytest.approx(lossy.lost, abs=3)
    with RecordView.open(ran.folder) as view:
        keys = {key.object: key for key in view.keys(["load.port.capacity.packet.rate"])}
        assert set(keys) == {"loss=0,bound=found,port=0", "loss=0,bound=found,port=1"}
        assert view.series(keys["loss=0,bound=found,port=0"]).values.tolist() == [pytest.approx(goal.ways[0].offered)]

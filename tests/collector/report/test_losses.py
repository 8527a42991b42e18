"""Lost polls: exact stretches, and the strip that shows them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.record import Record, RecordView
from soakwatch.record.source import PollOutcomes
from soakwatch.report.sections.coverage import cells_of, losses_of, within
from soakwatch_model.sample import NOTHING, Poll, PollOutcome
from soakwatch_model.window import Window

SECOND = 10**9
BEGIN = 1_795_200_000 * SECOND
WORDS = ("ok", "failed", "timeout")


def polls(outcomes: list[int] | np.ndarray[tuple[int], np.dtype[np.int64]], every: int = 1) -> PollOutcomes:
    """Polls that were due once every so many seconds."""
    outcome = np.asarray(outcomes, dtype=np.int64)
    return PollOutcomes(BEGIN + np.arange(outcome.size, dtype=np.int64) * every * SECOND, outcome, WORDS)


def over(seconds: float) -> Window:
    """So many seconds from the begin."""
    return Window(BEGIN, BEGIN + int(seconds * SECOND))


def test_neighbouring_losses_are_one_stretch() -> None:
    """Lost polls side by side are one stretch, however they ended; an answer parts two."""
    losses, more = losses_of(polls([0, 1, 2, 2, 0, 1]), 8)
    assert [(loss.polls, loss.words) for loss in losses] == [(3, "1 failed, 2 timed out"), (1, "1 failed")]
    assert (losses[0].begin_ns, losses[0].end_ns, more) == (BEGIN + SECOND, BEGIN + 3 * SECOND, 0)


def test_the_longest_stretches_are_reported_and_the_others_counted() -> None:
    """Of a quarter of a million polls, every second of them lost, the longest gaps are reported in order of time."""
    outcome = np.arange(259_200, dtype=np.int64) % 2
    outcome[200_000:200_100] = 2
    outcome[1000:1050] = 2
    losses, more = losses_of(polls(outcome), 2)
    assert [loss.polls for loss in losses] == [51, 101]
    assert more == 129_600 - 51 - 26  # single ones, less those that the two long ones took in
    assert len(cells_of(polls(outcome), over(259_200), 600, SECOND)) <= 600


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=200), st.integers(1, 100))
def test_a_strip_hides_no_loss(outcomes: list[int], cells: int) -> None:
    """Every lost poll lies in a piece of the strip that is not "ok", and the pieces neither overlap nor leave it."""
    drawn = cells_of(polls(outcomes), over(max(len(outcomes), 1)), cells, SECOND)
    edges = [(float(cell.left), float(cell.left) + float(cell.width), cell.word) for cell in drawn]
    for layer in ([cell for cell in edges if cell[2] == "ok"], [cell for cell in edges if cell[2] != "ok"]):
        assert all(a[1] <= b[0] + 0.002 for a, b in pairwise(layer))
    assert all(right <= 100.002 for _, right, _ in edges)
    for index in np.flatnonzero(outcomes):
        percent = 100 * index / len(outcomes)
        assert any(left - 0.002 <= percent < right + 0.002 and word != "ok" for left, right, word in edges)


def test_one_lost_poll_among_many_is_on_the_strip() -> None:
    """A single failure in 72 hours has a piece of its own with its time."""
    outcome = np.zeros(259_200, dtype=np.int64)
    outcome[100_000] = 1
    drawn = cells_of(polls(outcome), over(259_200), 600, SECOND)
    assert [cell.word for cell in drawn] == ["ok", "failed"]
    assert [cell.height for cell in drawn] == [100, 45]
    assert drawn[1].title.startswith("1 failed, ")


def test_rare_polls_stand_for_their_interval() -> None:
    """A poll an hour fills its hour of the strip; where none was due there is nothing, not a pass."""
    drawn = cells_of(polls([0, 1, 0], every=3600), over(6 * 3600), 60, 3600 * SECOND)
    assert [(cell.left, cell.width, cell.word) for cell in drawn] == [
        ("0.000", "16.667", "ok"),
        ("33.333", "16.667", "ok"),
        ("16.667", "16.667", "failed"),
    ]


def test_the_height_tells_the_share_that_was_lost() -> None:
    """A source that lost one poll in a hundred throughout does not look like one that lost them all."""
    outcome = np.zeros(10_000, dtype=np.int64)
    outcome[::100] = 2
    assert {cell.height for cell in cells_of(polls(outcome), over(10_000), 50, SECOND) if cell.word != "ok"} == {45}
    outcome[::4] = 2
    assert {cell.height for cell in cells_of(polls(outcome), over(10_000), 50, SECOND) if cell.word != "ok"} == {70}
    (whole,) = cells_of(polls(outcome * 0 + 1), over(10_000), 50, SECOND)
    assert (whole.word, whole.height, whole.width) == ("failed", 100, "100.000")


def test_polls_outside_the_window_are_left_out() -> None:
    """Only polls that were due in the window count."""
    assert within(polls([1, 1, 1, 1]), Window(BEGIN + SECOND, BEGIN + 3 * SECOND)).due_ns.size == 2
    assert cells_of(polls([]), over(10), 60, SECOND) == ()
    assert losses_of(polls([]), 8) == ((), 0)


@pytest.mark.parametrize("count", [50, 9000])
def test_a_record_knows_how_each_poll_ended(tmp_path: Path, count: int) -> None:
    """Every poll comes back with its due time and outcome in order of time, from compacted blocks and recent rows."""
    kinds = (PollOutcome.OK, PollOutcome.FAILED, PollOutcome.GAP)
    with Record.create(tmp_path / "run") as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", SECOND, True)
        for first in range(0, count, 500):
            turns = [(n, kinds[n % 3], BEGIN + n * SECOND) for n in range(first, min(first + 500, count))]
            record.put([Poll(source.id, due, due, 0, how, "no" if n % 3 else None, NOTHING) for n, how, due in turns])
        with RecordView.open(tmp_path / "run") as view:
            outcomes = view.poll_outcomes(source.id)
            assert view.poll_outcomes(99).due_ns.size == 0
    assert np.array_equal(outcomes.due_ns, BEGIN + np.arange(count) * SECOND)
    assert [outcomes.words[number] for number in outcomes.outcome[:3].tolist()] == ["ok", "failed", "gap"]

"""Stairs: steps are found where they are, a few have ended, and a habit of steps goes on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.series_shapes import edge, table
from soakwatch_rules.stats.stairs import Stairs, stairs
from soakwatch_rules.stats.tolerance import Tolerance
from soakwatch_rules.stats.trend_answer import TrendAnswer

Floats = NDArray[np.float64]
DAY = 86400.0
T = np.asarray(np.arange(1440) * 60.0, dtype=np.float64)


def flat(seed: int, sd: float = 1.0) -> Floats:
    """A day of white noise around 100."""
    result: Floats = 100 + np.random.default_rng(seed).normal(0, sd, T.size)
    return result


def judged(value: Floats) -> TrendAnswer:
    """The answer for a day by the minute, 5 % of the level allowed."""
    return judge_trend(T, value, allowed=Tolerance(0.05), span_s=(0.0, DAY))


def _pursued(value: Floats) -> list[Stairs]:
    """Stairs of a series without a memory."""
    shapes = table(value.size)
    white = value - value.mean()
    along = (shapes.steps[:1] @ white[:, None])[:, :, 0]
    return list(stairs(along, shapes.gram[:1], np.array([white @ white]), value.size, 1e-9))


def test_steps_are_found_where_they_are() -> None:
    """Of three steps all squares are explained, the last at its place; three are a few events, whatever their size."""
    u = np.arange(96)
    value = np.asarray(5.0 * (u >= 20) + 1.0 * (u >= 33) + 3.0 * (u >= 70), dtype=np.float64)
    two, three, *_ = _pursued(value)
    whole = float(((value - value.mean()) ** 2).sum())
    assert (two.steps, three.steps) == (2, 3)
    assert two.explained[0] < whole
    assert three.explained[0] == pytest.approx(whole)
    assert three.last[0] + edge(96) == 70
    assert three.habit(0) is None


@pytest.mark.parametrize(
    ("places", "heights", "goes_on"),
    [
        ((12, 32, 52, 72), (2, 2, 2, 2), True),
        ((12, 32, 52, 72), (-2, -2, -2, -2), True),
        ((12, 32, 52, 72), (8, 4, 2, 1), False),
        ((12, 32, 52, 72), (2, 2, -2, 2), False),
        ((12, 22, 32, 42), (2, 2, 2, 2), False),
        ((12, 15, 52, 72), (2, 2, 2, 2), False),
    ],
)
def test_steps_that_are_a_habit(places: tuple[int, ...], heights: tuple[int, ...], goes_on: bool) -> None:
    """Four even steps go on at height over tread; shrinking, turning, ended and bunched ones do not."""
    u = np.arange(96)
    value = np.asarray(sum(h * (u >= p) for p, h in zip(places, heights, strict=True)), dtype=np.float64)
    four = _pursued(value)[2]
    habit = four.habit(0)
    assert (habit is not None) is goes_on
    if habit is not None:
        assert habit[0] == pytest.approx(heights[0] / 20 * 96)
        assert habit[1] == pytest.approx(0.1 * abs(habit[0]))


def test_a_few_steps_are_no_leak_and_many_are() -> None:
    """Three uneven steps upwards and the shrinking stairs of a cache are inconclusive or pass; five even ones fail."""
    for seed in range(6):
        three = flat(seed) + sum(4.0 * (at_s < T / DAY) for at_s in (0.2, 0.5, 0.7))
        assert judged(np.asarray(three)).outcome is Outcome.INCONCLUSIVE
        cache = flat(seed) + sum(8 * 0.6**k * (0.08 + 0.1 * k < T / DAY) for k in range(9))
        assert judged(np.asarray(cache)).outcome is not Outcome.FAIL
        five = judged(flat(seed, 0.3) + 2.0 * np.floor(T / DAY * 5 + 0.4))
        assert (five.outcome, five.shape) == (Outcome.FAIL, "leak in steps")

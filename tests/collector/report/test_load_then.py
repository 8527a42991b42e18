"""The load at a moment: what went through before it, and nothing where nothing was read."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch.report.headline import load_then
from soakwatch.report.load import LoadTrace, TrafficGenerator
from soakwatch_rules.signals import readings

S = 10**9


def generator(answered: np.ndarray, offered: float | None = None) -> TrafficGenerator:
    """A generator that reports each second what was answered, and perhaps what it was to send."""
    asked = None if offered is None else readings("load.offered.rate", np.full(answered.size, offered), 1.0)
    return TrafficGenerator(
        "tg",
        "",
        None if asked is None else LoadTrace("offered", asked),
        LoadTrace("answered", readings("load.request.rate", answered, 1.0)),
        None,
        None,
        (),
        (),
    )


@pytest.mark.parametrize(("offered", "words"), [(100.0, "100 requests/s"), (None, "101 requests/s")])
def test_the_target_is_told_where_about_as_much_went_through(offered: float | None, words: str) -> None:
    answered = np.where(np.arange(600) % 2, 106.0, 96.0)
    assert load_then([generator(answered, offered)], 300 * S) == words


def test_a_generator_that_ended_does_not_send_what_it_says() -> None:
    answered = np.where(np.arange(600) < 200, 100.0, 0.0)
    assert load_then([generator(answered, 100.0)], 150 * S) == "100 requests/s"
    assert load_then([generator(answered, 100.0)], 400 * S) == "0 requests/s"


def test_of_a_moment_long_after_the_last_reading_no_load_is_known() -> None:
    assert load_then([generator(np.full(60, 100.0), 100.0)], 300 * S) == ""
    assert load_then([], 300 * S) == ""
    assert load_then([generator(np.full(60, 100.0))], None) == ""


def test_the_reading_of_a_failure_is_not_the_load_under_which_it_failed() -> None:
    """A reading a minute: in that of the failure a third went through, as much as was to be sent in the one before."""
    minutes = np.array([100.0, 100.0, 30.0, 100.0])
    answered = readings("load.request.rate", minutes, 60.0)
    offered = readings("load.offered.rate", np.full(4, 100.0), 60.0)
    seen = TrafficGenerator(
        "tg", "", LoadTrace("offered", offered), LoadTrace("answered", answered), None, None, (), ()
    )
    assert load_then([seen], 120 * S) == "100 requests/s"


@pytest.mark.parametrize("order", [(1000.0, 10.0), (10.0, 1000.0)])
def test_between_two_readings_that_differ_widely_the_load_is_the_higher(order: tuple[float, float]) -> None:
    """Their median is like neither, and the mean of no reading was no number."""
    answered = readings("load.request.rate", np.array(order), 1.0)
    seen = TrafficGenerator("tg", "", None, LoadTrace("answered", answered), None, None, (), ())
    assert load_then([seen], S) == "1,000 requests/s"

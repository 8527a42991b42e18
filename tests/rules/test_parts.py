"""The parts that rules share: sight, labels, incidents, and the signals themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch_model.label import label
from soakwatch_model.sample import object_labels, object_text
from soakwatch_model.window import Window
from soakwatch_rules.events.incidents import Witness, incidents
from soakwatch_rules.sampling import unseen
from soakwatch_rules.signals import busy, counter, noise, raised
from soakwatch_rules.stats.hysteresis import stretches


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(["process", "instance", "folder"]), st.text(alphabet="ab,=\\ ", max_size=8)))
def test_labels_are_read_as_they_were_written(labels: dict[str, str]) -> None:
    """Any label text survives the way to an object's text and back, and agrees with the agent's reading."""
    text = object_text(**labels)
    for key in ("process", "instance", "folder"):
        assert label(text, key) == object_labels(text).get(key)


def test_unseen_ends_of_a_window() -> None:
    """Readings must reach both ends, give or take 5 % or three readings."""
    window = Window(0, 1000)
    assert unseen(np.arange(0, 1000, 10), window) == ""
    assert unseen(np.arange(40, 970, 10), window) == ""
    assert "before" in unseen(np.arange(60, 1000, 10), window)
    assert "after" in unseen(np.arange(0, 900, 10), window)
    assert unseen(np.array([5]), window)
    assert unseen(np.array([0, 500]), window) == "", "two readings far apart reach far"


def test_incidents_join_sources_and_keep_repetitions_apart() -> None:
    """Different sources join, the same source never does, distance keeps apart."""

    def witness(source: str, begin: int, end: int) -> Witness:
        return Witness(source, begin, end, source)

    assert len(incidents([witness("a", 0, 10), witness("b", 12, 12), witness("c", 5, 5)], 2)) == 1
    assert len(incidents([witness("a", 0, 10), witness("b", 13, 13)], 2)) == 2
    assert (
        len(
            incidents(
                [witness("a", 0, 1), witness("a", 1, 2), witness("a", 2, 3), witness("b", 1, 1), witness("b", 3, 3)], 2
            )
        )
        == 3
    )
    storm = [witness("a", i, i) for i in range(50_000)] + [witness("b", i, i) for i in range(50_000)]
    assert len(incidents(storm, 100)) == 50_000


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.sampled_from([0.1, 0.84, 0.85, 0.9, 0.95, 1.0]), max_size=40))
def test_stretches_agree_with_a_loop(values: list[float]) -> None:
    """The vectorised hysteresis is the one that a loop over readings gives."""
    expected, begin = [], None
    for i, value in enumerate(values):
        if begin is None and value >= 0.95:
            begin = i
        elif begin is not None and value < 0.85:
            expected.append([begin, i])
            begin = None
    if begin is not None:
        expected.append([begin, len(values)])
    assert stretches(np.array(values), 0.95, 0.85).tolist() == expected


def test_signals_are_seeded_and_true() -> None:
    """The same seed gives the same signal, another seed another; edges of a raise get their share; counters wrap."""
    assert np.array_equal(noise(1, seconds=600).value, noise(1, seconds=600).value)
    assert not np.array_equal(noise(1, seconds=600).value, noise(2, seconds=600).value)
    wavering = noise(3, seconds=86400 * 10, phi=0.9, sd=0.01).values
    assert float(np.std(wavering) / np.mean(wavering)) == pytest.approx(0.01, rel=0.1)
    half = raised(busy(1, 0.5, 0.0, 100), 10.5, 2.0, 1.0).values
    assert half[10:14].tolist() == [0.5, 0.75, 1.0, 0.75] or half[11:14].tolist() == [0.75, 1.0, 0.75]
    wrapped = counter("system.kernel.alarms", np.array([1, 1, 1]), 1.0, start=2**32 - 2, bits=32)
    assert wrapped.increments().value.tolist() == [1.0, 1.0, 1.0]

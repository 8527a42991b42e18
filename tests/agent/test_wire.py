"""Poll <-> one line: nothing is lost, and what is no poll is refused in one sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch_agent.wire import VERSION, WireError, decode, encode
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_TIME = st.integers(0, 2**63)
_VALUE = st.one_of(st.integers(0, 2**64), st.floats(allow_nan=False, allow_infinity=False))
_ANSWER = st.builds(
    Answer,
    st.lists(st.builds(Sample, _TEXT, _TEXT, _VALUE, _TIME), max_size=5).map(tuple),
    st.lists(st.builds(Event, _TEXT, st.just(""), _TEXT, _TIME, st.none() | _TIME, st.dictionaries(_TEXT, _TEXT))).map(
        tuple
    ),
    st.lists(st.builds(Fault, _TEXT, _TEXT, _TEXT), max_size=3).map(tuple),
)
_POLL = st.builds(Poll, _TIME, _TIME, _TIME, _TIME, st.sampled_from(PollOutcome), st.none() | _TEXT, _ANSWER)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(_POLL)
def test_a_poll_comes_back_whole(poll: Poll) -> None:
    """Every field of every poll survives, and the line is one line."""
    line = encode(poll)
    assert "\n" not in line
    assert decode(line) == poll


def test_large_counters_keep_every_digit() -> None:
    """An integer beyond 2**53 comes back as it went, as an integer."""
    sample = Sample("system.network.io", "", 2**64 - 1, 5)
    back = decode(encode(Poll(0, 5, 5, 1, PollOutcome.OK, None, Answer((sample,), (), ())))).answer.samples[0].value
    assert (back, type(back)) == (2**64 - 1, int)


def test_a_newer_version_is_refused_with_the_remedy() -> None:
    """A line of a later agent is not guessed at."""
    with pytest.raises(WireError, match=f"speaks version {VERSION + 1} and this side {VERSION}: update this side"):
        decode(json.dumps({"v": VERSION + 1, "anything": []}))


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "null", "{}", '{"v":true}', '{"v":1}', '{"v":1,"samples":3}', "[" * 100_000, '{"v":1,"start":NaN}'],
)
def test_what_is_no_poll_is_refused(line: str) -> None:
    """Cut, foreign and hostile lines give one sentence."""
    with pytest.raises(WireError) as caught:
        decode(line)
    assert "\n" not in str(caught.value)


def test_a_value_that_is_not_finite_never_goes_out() -> None:
    """NaN and infinity are not readings: the sender gets an error."""
    sample = Sample("m", "", float("nan"), 5)
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Poll(0, 5, 5, 1, PollOutcome.OK, None, Answer((sample,), (), ())))

"""The text that must be there before a pattern is tried: never wrong, whatever the pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.receivers.log_event import literal_of


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"%SYS-5-RELOAD: (?P<reason>.*)", "%SYS-5-RELOAD: "),
        (r"(?P<p>[^\s\[\]]+)\[(?P<pid>\d+)\]: segfault at (?P<a>\S+)", "]: segfault at "),
        (r"ab{2,3}cd+e?f", "cd"),
        (r"(?i)panic", ""),
        (r"panic|oops", ""),
        (r"(panic|oops) now", " now"),
        (r"[]a]x\.y\d", "x.y"),
        (r"\bcore\b", "core"),
        (r"", ""),
    ],
)
def test_what_every_match_contains(pattern: str, literal: str) -> None:
    """The longest text outside of groups and classes."""
    assert literal_of(re.compile(pattern)) == literal


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.data())
def test_a_text_that_matches_contains_it(data: st.DataObject) -> None:
    """Patterns put together at random, and texts made from them."""
    parts = [
        r"a",
        r"b+",
        r"c?",
        r"(x|y)",
        r"[de]",
        r"\.",
        r"f{2}",
        r"g*",
        r"\d",
        r"h{0,1}",
        r"(?:i|jk)?",
        r"[^\]a]",
        " ",
    ]
    pattern = re.compile("".join(data.draw(st.lists(st.sampled_from(parts), max_size=8))))
    text = data.draw(st.from_regex(pattern))
    assert pattern.search(text)
    assert literal_of(pattern) in text


def test_most_patterns_of_the_shipped_profiles_have_one() -> None:
    """Shipped patterns are searched quickly: six in ten patterns have a text of four characters or more."""
    profiles = load_profiles()
    patterns = {pattern.match for name in ("linux", "cisco-asa", "cisco-ios") for pattern in profiles[name].logs}
    long = sum(len(literal_of(pattern)) >= 4 for pattern in patterns)
    assert long >= 0.6 * len(patterns)

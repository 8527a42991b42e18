"""Expressions that command lines are searched for: they find what Python's find in ASCII, and none holds the agent."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from tests.collector.core.test_regex import EXPRESSIONS, TEXTS

from soakwatch_agent.command_pattern import search_of
from soakwatch_agent.context import watch


@given(EXPRESSIONS, TEXTS)
def test_a_command_line_is_found_as_python_finds_it(expression: str, text: str) -> None:
    """Whatever is repeated, alternative, at an end or at the border of a word."""
    try:
        python = re.compile(expression, re.ASCII)
    except re.error:
        with pytest.raises(ValueError, match="is not a regular expression"):
            search_of(expression)
        return
    assume(text or r"\B" not in expression)  # before 3.14 Python's own finds none in an empty text
    try:
        found = search_of(expression)
    except ValueError as error:
        refused = str(error)
        assert "has a look-around" in refused
        return
    assert found(text) == (python.search(text) is not None)


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*)(.*)(.*)(.*)b", "(?:a?){500}a{500}b", "^(?!.*b).*c"])
def test_no_expression_holds_the_agent(expression: str) -> None:
    """On a command line of 20 kB."""
    assert not search_of(expression)("a" * 20_000 + "!")


def test_the_sets_of_states_that_are_kept_are_bounded() -> None:
    """An expression with 2^200 sets of states, on texts that are never alike: it goes on, and so does what it finds."""
    found = search_of("a.{200}x")
    texts = ["".join("ab"[(seed * place >> 3) % 7 % 2] for place in range(3000)) for seed in range(3, 9)]
    assert [found(text + "a" + "b" * 200 + "x") for text in texts] == [True] * 6
    assert [found(text) for text in texts] == [False] * 6


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("java(?= )", r"^cmdline:java\(\?= \) has a look-around, back-reference, condition, atomic group or"),
        (r"(a)\1", "has a look-around"),
        ("(?:a{1000}){1000}", "has more than 10000 states: repeat fewer times"),
        ("(", r"^cmdline:\( is not a regular expression: missing \)"),
        ("[[a]", "is not a regular expression: Possible nested set"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        watch("worm", "cmdline", expression)

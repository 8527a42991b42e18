"""Regular expressions of users: what RE2 and Python mean alike, what they do not, and what is refused, and why."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from soakwatch.core.regex import Found, Pattern, user_regex

_ATOMS = st.sampled_from(
    [
        *"abx 1_-:^$.",
        *[
            "[ab]",
            "[^a]",
            "[]a]",
            "[a[]",
            r"[\d_]",
            r"[\b]",
            r"\d",
            r"\D",
            r"\w",
            r"\W",
            r"\s",
            r"\S",
            r"\.",
            r"\_",
            r"\x41",
        ],
        *[r"\u0061", r"\n", r"\b", r"\B", r"\A", r"\Z", "(?i:A)", "(?s:.)", "(?-i:b)", "(?#note)"],
    ]
)
_TIMES = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{,2}", "{1,}", "{1,3}", "*?", "+?", "??", "{1,2}?"])


def _compounds(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(parts, min_size=1, max_size=3).map("".join)
    return st.one_of(
        st.tuples(st.sampled_from(["(", "(?:"]), st.lists(joined, min_size=1, max_size=3).map("|".join), _TIMES).map(
            lambda made: f"{made[0]}{made[1]}){made[2]}"
        ),
        joined,
    )


_ATOM = st.tuples(_ATOMS, _TIMES).map("".join)
EXPRESSIONS = st.tuples(
    st.sampled_from(["", "", "", "^(?!ab)", "^(?!a$|1)", r"\A(?![ab]1)", "(?m)", "(?s)", "(?x)"]),
    st.recursive(_ATOM, _compounds, max_leaves=6),
).map("".join)
TEXTS = st.text("aAbx 1_-:.\n", max_size=12)


def _span(found: re.Match[str] | Found | None) -> object:
    return None if found is None else (found.start(), found[0], found.groupdict())


@given(EXPRESSIONS, TEXTS)
def test_an_expression_finds_what_python_finds_in_ascii(expression: str, text: str) -> None:
    """Where, and which text: searched for, at the begin, of the whole. What is refused is so in a sentence."""
    try:
        python = re.compile(expression, re.ASCII)
        assume(text or r"\B" not in expression)  # before 3.14 Python's own finds none in an empty text
    except re.error:
        with pytest.raises(ValueError, match="is not a regular expression"):
            user_regex(expression)
        return
    try:
        ours = user_regex(expression)
    except ValueError as error:
        refused = str(error)
        assert " has a look-ahead, " in refused or " is not a regular expression of RE2, " in refused
        return
    assert ours.groups == python.groups
    # Of a repeated group that may be empty RE2 takes another one of the matches; whether there is one is the same.
    told: Callable[[re.Match[str] | Found | None], object] = bool if re.search(r"\)[*+?{]", expression) else _span
    assert told(ours.search(text)) == told(python.search(text))
    assert bool(ours.match(text)) == bool(python.match(text))
    if "$" not in expression or not text.endswith("\n"):
        assert bool(ours.fullmatch(text)) == bool(python.fullmatch(text))


def _first(pattern: Pattern | re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("expression", "text", "ours", "python"),
    [
        (r"(\d+)$", "sessions: 42\n", "42", "42"),
        (r"\d+\Z", "sessions: 42\n", None, None),
        (r"(?m)^\w+$", "up\ndown\n", "up", "up"),
        (r"\d", "\u0663", None, "\u0663"),
        (r"\w+", "gr\u00fc\u00dfe", "gr", "gr\u00fc\u00dfe"),
        (r"a\sb", "a\u00a0b", None, "a\u00a0b"),
        (r"a\b", "a\u00fc", "a", None),
        (r"(?i)GR\u00dcN", "gr\u00fcn", "gr\u00fcn", "gr\u00fcn"),
        ("[\u00e0-\u00ff]+", "gr\u00fcn", "\u00fc", "\u00fc"),
        (".", "\U0001f600", "\U0001f600", "\U0001f600"),
        ("(?x) up [ ] now  # what it prints", "up now", "up now", "up now"),
        ("a{,2}b", "aab", "aab", "aab"),
        ("[a[:digit:]b]", "1", None, None),
        (r"b.", "a\udc80b\udc80", "b?", "b\udc80"),
        (r"\0x", "a\0x", "\0x", "\0x"),
    ],
)
def test_what_differs_from_python_is_known(expression: str, text: str, ours: str | None, python: str | None) -> None:
    """Classes and the border of a word are of ASCII, and half of a character is a question mark; nothing else."""
    assert _first(user_regex(expression), text) == ours
    assert _first(re.compile(expression), text) == python


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (
            "up(?= now)",
            "has a look-ahead, (?=: write the text that stands there, with ( ) around the part that",
        ),
        ("(?<=Version )7", "has a look-behind, (?<=: write the text that stands there"),
        ("(?<!x)7", "has a look-behind, (?<!: write what may stand there, such as (?:^|[^;])"),
        ("a(?!b)", "has a look-ahead, (?!: write what may stand there, such as [^;], or ^(?!...) at the begin"),
        ("^(?!a)b|c", "has a look-ahead, (?!"),
        ("(?m)^(?!a)b", "has a look-ahead, (?!"),
        ("^(?!(a))b", "has a group in its look-ahead, which takes no part in a match: write (?: there"),
        (r"(a)\1", r"has a back-reference, \1: write the text itself"),
        ("(?P<n>a)(?P=n)", "has a back-reference, (?P=: write the text itself"),
        ("(a)?(?(1)b|c)", "has a condition, (?(: write both cases, parted by |"),
        ("(?>a+)b", "has an atomic group, (?>: write (?: instead"),
        ("a++b", "has a possessive repetition, ++: write + instead"),
        ("(?:a{1000}){1000}", "is not a regular expression of RE2, which runs in linear time: invalid repetition size"),
        ("(?u)a", "is not a regular expression of RE2, which runs in linear time: invalid perl operator: (?u"),
        (".{900}.{900}", " states, and 10000 is the limit: repeat fewer times, or without a number (* or +)"),
        ("a" * 1001, "key has more than 1000 characters: write a shorter one"),
        ("\udc80", "is not a regular expression: it has half of a character"),
        ("(", "is not a regular expression: missing ), unterminated subpattern at position 0"),
    ],
)
def test_what_is_refused_has_its_remedy(expression: str, why: str) -> None:
    """In one sentence that begins with the key and the expression."""
    with pytest.raises(ValueError, match=r"^key ") as refused:
        user_regex(expression, "key")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|ab)+$", "(a|aa)+$", "(.*)(.*)(.*)(.*)(.*)b", "(?:a?){500}a{500}b"]
)
def test_no_expression_holds_a_search(expression: str) -> None:
    """Python looks at each of these texts for longer than anybody lives."""
    pattern = user_regex(expression)
    text = "a" * 20_000 + "!"
    assert pattern.search(text) is None
    assert pattern.match(text) is None
    assert pattern.fullmatch(text) is None
    assert list(pattern.finditer(text)) == []


def test_an_expression_goes_to_another_process_with_all_it_has() -> None:
    """Its flags too: work is done in several processes."""
    pattern = pickle.loads(pickle.dumps(user_regex("^(?!down)UP$", flags="i")))
    assert (pattern.pattern, bool(pattern.search("up\n")), pattern.search("down")) == ("^(?!down)UP$", True, None)

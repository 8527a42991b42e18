"""Values, arithmetic and labels: exact where they can be, a sentence where they cannot, and never anything else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from soakwatch.sources.profiles.evaluate import increment, scale
from soakwatch.sources.profiles.expression import FUNCTIONS, MissingError, UndefinedError
from soakwatch.sources.profiles.expression import parse as parse_expression
from soakwatch.sources.profiles.label_template import parse as parse_template
from soakwatch.sources.profiles.value import Value, number, text

NAMES = {"a": 7, "b": 0, "c": None, "big": 2**64 - 1, "small": -3.5}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("a", 7),
        ("a * 2 + 1", 15),
        ("-a + 10", 3),
        ("(a + 1) / 2", 4),
        ("max(a, b, 9)", 9),
        ("first(c, b)", 0),
        ("first(c, a) - 1", 6),
        ("pow10(2)", 100),
        ("scaled(235, 9, 1)", 23.5),
        ("scaled(41, 10, 0)", 41000),
        ("u32(-1)", 4294967295),
        ("big", 2**64 - 1),
    ],
)
def test_arithmetic(words: str, value: float) -> None:
    assert parse_expression(words, NAMES).run(NAMES) == value


def test_a_counter_keeps_every_digit() -> None:
    result = parse_expression("big", NAMES).run(NAMES)
    assert isinstance(result, int)
    assert result == 18446744073709551615


def test_what_is_not_there_is_missing_and_what_cannot_be_is_reported() -> None:
    for words in ("c", "c + 1", "first(c, c)", "max(a, c)"):
        with pytest.raises(MissingError):
            parse_expression(words, NAMES).run(NAMES)
    for words in ("a / b", "pow10(a * 1000)", "big * big * big * big * big", "1.0e308 * 1.0e308"):
        with pytest.raises(UndefinedError):
            parse_expression(words, NAMES).run(NAMES)


ODD = [
    "",
    "a b",
    "a; b",
    "__import__('os')",
    "a.real",
    "a[0]",
    "lambda: 1",
    "a ** 9",
    "a if b else c",
    "f'{a}'",
    "True",
    "1e999",
    "(" * 300 + "a" + ")" * 300,
    "a" * 500,
    "a and b",
    "1j",
    "'x'",
    "max(a)",
]


@pytest.mark.parametrize("words", ODD)
def test_nothing_else_can_be_in_a_value(words: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_expression(words, NAMES)


ATOMS = st.sampled_from([*NAMES, "1", "0", "2.5", "1e300", "99999999999999999999"])


def _join(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
    call = st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner, inner, inner).map(
        lambda p: f"{p[0]}({', '.join(p[1 : 1 + FUNCTIONS[p[0]][0]])})"
    )
    return binary | call


def examples(fast: int, slow: int) -> pytest.MarkDecorator:
    """How many examples: some in each run of the tests, all in the slow set."""
    return pytest.mark.parametrize("count", [fast, pytest.param(slow, marks=pytest.mark.slow)])


@examples(80, 400)
def test_any_arithmetic_over_any_values_is_a_number_or_a_sentence(count: int) -> None:
    @seed(4)
    @settings(max_examples=count, deadline=None, database=None)
    @given(
        st.recursive(ATOMS, _join, max_leaves=12),
        st.dictionaries(st.sampled_from(list(NAMES)), st.integers(-(2**64), 2**64) | st.floats()),
    )
    def holds(words: str, values: dict[str, float]) -> None:
        try:
            parsed = parse_expression(words, NAMES)
        except ValueError:
            return
        with suppress(MissingError, UndefinedError):
            assert parsed.run(values) is not None

    holds()


@examples(60, 300)
def test_any_text_is_an_expression_and_a_template_or_refused(count: int) -> None:
    @seed(4)
    @settings(max_examples=count, deadline=None, database=None)
    @given(st.text(max_size=60))
    def holds(words: str) -> None:
        for parse in (parse_expression, parse_template):
            with suppress(ValueError):
                assert parse(words, NAMES).text in {words, words.strip()}

    holds()


VALUES: st.SearchStrategy[Value] = (
    st.integers(-(2**70), 2**70) | st.floats() | st.binary(max_size=300) | st.text(max_size=50)
)


@examples(80, 400)
def test_any_value_is_text_on_one_short_line_and_a_number_or_a_sentence(count: int) -> None:
    @seed(4)
    @settings(max_examples=count, deadline=None, database=None)
    @given(VALUES, st.sampled_from(["hex", "ip", "text", None]))
    def holds(value: Value, form: str | None) -> None:
        words = text(value, form)
        assert len(words) <= 400
        assert words.isprintable() or not words.isascii()
        assert "\n" not in words
        with suppress(ValueError):
            assert abs(number(value)) <= 2**64

    holds()


def test_values_as_text() -> None:
    assert text(b"eth0\x00\xff\x1b[2J") == "eth0 \ufffd [2J"
    assert text(b"\x00\x1b\x21", "hex") == "00:1b:21"
    assert text(b"\x20\x01" + b"\x00" * 13 + b"\x01", "ip") == "2001::1"
    assert number(b"\x9f\x78\x04\x3f\x80\x00\x00") == 1.0, "net-snmp's float in an Opaque"
    assert number(b" 42\x00") == 42
    with pytest.raises(ValueError, match="'45 C' is not a number"):
        number(b"45 C")


@pytest.mark.parametrize(
    ("first", "last", "bits", "grown"),
    [
        (10, 15, None, 5),
        (2**32 - 10, 5, 32, 15),
        (2**32 - 10, 5, None, 15),
        (2**64 - 10, 5, 64, 15),
        (2**40, 5, None, None),  # a 64-bit counter that fell began anew
        (2**40, 5, 32, None),  # and one that cannot be 32 bits wide as well
        (1000, 5, 32, None),
        (2**31 + 5, 0, 32, 2**31 - 5),
    ],
)
def test_a_wrap_is_distinguished_from_a_restart(first: int, last: int, bits: int | None, grown: int | None) -> None:
    assert increment(first, last, bits) == grown


def test_scales_are_exact() -> None:
    assert [scale(percent, 0.01) for percent in range(101)] == [percent / 100 for percent in range(101)]
    assert scale(2**40, 1024) == 2**50
    assert isinstance(scale(3, 1000.0), int)


def test_labels() -> None:
    values = {"name": "Gi0/1", "empty": ""}
    template = parse_template("{empty|name} q{index.-1}", values)
    assert template.render("7.3", values.__getitem__) == "Gi0/1 q3"
    assert template.names == ("empty", "name")
    assert parse_template("{index.text}", ()).render("3.102.111.111", str) == "foo"

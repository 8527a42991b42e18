"""What must be known of a PromQL text: whether it is a plain selector, and how old the values may be that it uses.

An instant selector takes the newest value of the last five minutes, whether or not anybody scraped since: a series that
ended would go on as a flat line. ``bounded`` gives each such selector a range, so that a step without a scrape is
empty, on every server (``lookback_delta`` of a request is known to Prometheus from 2.44 on, and to few others).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|\#[^\n]*)+)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
  | (?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\.\d\w*)
  | (?P<name>[A-Za-z_:][\w:]*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_GROUPED = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = frozenset({"and", "or", "unless", "atan2", "bool", "offset", "inf", "nan"})
_AGGREGATIONS = frozenset(
    (
        *("sum", "avg", "min", "max", "count", "stddev", "stdvar", "topk", "bottomk", "quantile"),
        *("count_values", "group", "limitk", "limit_ratio"),
    )
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Selector:
    """A selector: tokens from ``begin`` to ``end`` (its modifiers with it), a range or the modifiers from ``rest``."""

    begin: int
    rest: int
    end: int
    ranged: bool


def is_selector(query: str) -> bool:
    """Whether a query is one instant selector and nothing else, whose raw samples can be read.

    >>> is_selector('node_load1{instance="a:9100"}'), is_selector('{job="node"}'), is_selector("up")
    (True, True, True)
    >>> [is_selector(text) for text in ("rate(x[1m])", "x offset 5m", "a + b", "x[5m]", "1")]
    [False, False, False, False, False]
    """
    tokens = _tokens(query.strip())
    found = list(_selectors(tokens))
    used = [number for number, token in enumerate(tokens) if token.kind != "space"]
    return (
        len(found) == 1
        and not found[0].ranged
        and bool(used)
        and found[0].begin == used[0]
        and used[-1] < found[0].rest
        and found[0].end == found[0].rest
    )


def bounded(query: str, age_s: float) -> str:
    """The query with instant selectors that take no value older than ``age_s`` seconds.

    >>> bounded("sum by (job) (up{job='x'}) / on (job) rate(c[1m])", 15)
    "sum by (job) (last_over_time(up{job='x'}[15000ms])) / on (job) rate(c[1m])"
    >>> bounded("x offset -5m > bool 1.5e3", 1), bounded("max_over_time(x[1h:1m])", 60)
    ('last_over_time(x[1000ms] offset -5m) > bool 1.5e3', 'max_over_time(last_over_time(x[60000ms])[1h:1m])')
    >>> bounded("time() - timestamp(x)", 1), bounded("avg({a='}'} @ end())", 1)
    ('time() - timestamp(x)', "avg(last_over_time({a='}'}[1000ms] @ end()))")
    """
    tokens = _tokens(query)
    parts: list[str] = []
    done = 0
    for found in _selectors(tokens):
        if found.ranged or _called(tokens, found.begin) == "timestamp":
            continue
        parts += [token.text for token in tokens[done : found.begin]]
        name = "".join(token.text for token in tokens[found.begin : found.rest])
        modifiers = "".join(token.text for token in tokens[found.rest : found.end])
        parts.append(f"last_over_time({name}[{round(age_s * 1000)}ms]{modifiers})")
        done = found.end
    return "".join([*parts, *(token.text for token in tokens[done:])])


def _tokens(query: str) -> list[_Token]:
    return [_Token(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(query)]


def _selectors(tokens: Sequence[_Token]) -> Iterator[_Selector]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        after = _next(tokens, at + 1)
        follows = tokens[after].text if after < len(tokens) else ""
        if token.kind == "name" and token.text.lower() in _GROUPED:
            at = _closed(tokens, after) if follows == "(" else at + 1
        elif token.kind == "name" and (
            token.text.lower() in _WORDS or token.text.lower() in _AGGREGATIONS or follows == "("
        ):
            at += 1
        elif token.kind == "name" or token.text == "{":
            found = _selector(tokens, at)
            yield found
            at = max(found.end, at + 1)
        elif token.text == "[":
            at = _closed(tokens, at)
        else:
            at += 1


def _selector(tokens: Sequence[_Token], begin: int) -> _Selector:
    rest = begin + 1 if tokens[begin].kind == "name" else _closed(tokens, begin)
    after = _next(tokens, rest)
    if tokens[begin].kind == "name" and after < len(tokens) and tokens[after].text == "{":
        rest = _closed(tokens, after)
        after = _next(tokens, rest)
    if after < len(tokens) and tokens[after].text == "[":
        end = _closed(tokens, after)
        if not any(":" in token.text for token in tokens[after:end]):
            return _Selector(begin, rest, end, ranged=True)
        return _Selector(begin, rest, rest, ranged=False)  # a subquery of an instant selector
    return _Selector(begin, rest, _modified(tokens, rest), ranged=False)


def _modified(tokens: Sequence[_Token], at: int) -> int:
    """The end of the modifiers ``offset 5m`` and ``@ 1609746000`` that follow, if any."""
    end = at
    while (word := _next(tokens, end)) < len(tokens) and tokens[word].text.lower() in {"offset", "@"}:
        value = _next(tokens, word + 1)
        if value < len(tokens) and tokens[value].text in {"-", "+"}:
            value = _next(tokens, value + 1)
        if value >= len(tokens):
            return end
        end = value + 1
        if tokens[value].text in {"start", "end"}:
            end = _closed(tokens, _next(tokens, end))
    return end


def _next(tokens: Sequence[_Token], at: int) -> int:
    while at < len(tokens) and tokens[at].kind == "space":
        at += 1
    return at


def _closed(tokens: Sequence[_Token], at: int) -> int:
    """The place after the bracket that closes the one at ``at``; the end where none does."""
    depth = 0
    while at < len(tokens):
        if tokens[at].text in _CLOSING:
            depth += 1
        elif tokens[at].text in _CLOSING.values():
            depth -= 1
            if depth <= 0:
                return at + 1
        at += 1
    return at


def _called(tokens: Sequence[_Token], at: int) -> str:
    """The function whose argument begins at ``at``; "" for none."""
    before = [token.text for token in tokens[:at] if token.kind != "space"][-2:]
    return before[0] if len(before) == 2 and before[1] == "(" else ""

"""Finding to JSON text and back, without loss; floats that JSON lacks (NaN, infinities) go as text."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import cast

from soakwatch_model.fact import KINDS, Fact, Stage
from soakwatch_model.finding import (
    Finding,
    Forecast,
    InconclusiveReason,
    Mark,
    MarkKind,
    Outcome,
    Place,
    Ruling,
    Victim,
)
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window

_MARK_KINDS = "mark_kinds"
"""What each mark is, in the order of ``marks``."""
_VICTIMS = "mark_victims"
"""Process, pid and core file of each mark, null for a mark without; left out if no mark has them."""
_FACTS: Mapping[str, Callable[..., Fact]] = {kind.__name__: kind for kind in KINDS}
"""The kinds of facts by their names in a record."""
_FACTS_KEY = "facts"
_ALARMS = tuple(f'"outcome":"{outcome.value}"' for outcome in (Outcome.FAIL, Outcome.WARN))
"""In the text of every failure and warning."""
_NOT_JSON = ("nan", "inf", "-inf")
"""The texts for floats that JSON lacks."""


def finding_to_json(finding: Finding) -> str:
    """Strict JSON of a finding; the inverse of ``finding_from_json``."""
    f = finding
    body: dict[str, Tree] = {
        "rule": f.rule,
        "version": int(f.version),
        "outcome": f.outcome.value,
        "target": f.target,
        "metric": f.metric,
        "object": f.object,
        "window": [int(f.window.begin_ns), int(f.window.end_ns)],
        "definition": f.definition,
        "reason": f.reason,
        "samples": int(f.samples),
        "expected": None if f.expected is None else int(f.expected),
        "measured": _out(f.measured),
        "limit": _out(f.limit),
        "interval": None if f.interval is None else [_out(bound) for bound in f.interval],
        "unit": f.unit,
        "smallest_detectable": _out(f.smallest_detectable),
        "detectable_unit": f.detectable_unit,
        "settle": f.settle,
        "marks": [[int(m.begin_ns), None if m.end_ns is None else int(m.end_ns), m.text] for m in f.marks],
        _MARK_KINDS: [[m.kind.value, bool(m.planned)] for m in f.marks],
        "numbers": {name: _out(value) for name, value in f.numbers.items()},
        "doubts": list(f.doubts),
        "why": None if f.why is None else f.why.value,
        "forecast": None
        if f.forecast is None
        else [
            f.forecast.what,
            *(_out(x) for x in (f.forecast.after_s, f.forecast.low_s, f.forecast.high_s)),
            _out(f.forecast.confidence),
        ],
    }
    if any(mark.victim is not None for mark in f.marks):
        body[_VICTIMS] = [None if (v := mark.victim) is None else [v.process, v.pid, v.core_file] for mark in f.marks]
    body[_FACTS_KEY] = [_fact_out(fact) for fact in f.facts]
    if f.rulings:
        body["rulings"] = [
            [r.by, r.outcome.value, None if r.why is None else r.why.value, r.text, r.was.value, r.place.value]
            for r in f.rulings
        ]
    return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def finding_from_json(text: str) -> Finding:
    """Parse a text of ``finding_to_json``. Raises ValueError or KeyError for anything else."""
    body = cast("dict[str, Tree]", json.loads(text))
    interval = cast("list[Tree] | None", body["interval"])
    begin_ns, end_ns = cast("list[int]", body["window"])
    return Finding(
        rule=_shared(body["rule"]),
        version=cast("int", body["version"]),
        outcome=Outcome(cast("str", body["outcome"])),
        target=_shared(body["target"]),
        metric=_shared(body["metric"]),
        object=_shared(body["object"]),
        window=Window(begin_ns, end_ns),
        definition=_shared(body["definition"]),
        reason=_shared(body["reason"]),
        samples=cast("int", body["samples"]),
        expected=cast("int | None", body["expected"]),
        measured=_in(body["measured"]),
        limit=_in(body["limit"]),
        interval=None if interval is None else (_number(interval[0]), _number(interval[1])),
        unit=_shared(body["unit"]),
        smallest_detectable=_in(body["smallest_detectable"]),
        detectable_unit=_shared(body["detectable_unit"]),
        settle=_shared(body["settle"]),
        marks=_marks(body),
        numbers={intern(name): _number(value) for name, value in cast("Mapping[str, Tree]", body["numbers"]).items()},
        doubts=tuple(cast("list[str]", body["doubts"])),
        why=None if body.get("why") is None else InconclusiveReason(cast("str", body["why"])),
        forecast=_forecast(body.get("forecast")),
        facts=tuple(_facts(body[_FACTS_KEY])),
        rulings=tuple(_rulings(body.get("rulings"))),
    )


def _shared(text: Tree) -> str:
    """A text that many findings have, such as the definition of a rule: one for all of them."""
    return intern(cast("str", text))


def _fact_out(fact: Fact) -> Tree:
    values = {each.name: getattr(fact, each.name) for each in dataclasses.fields(fact)}
    return [type(fact).__name__, {name: _out(v) if isinstance(v, float) else v for name, v in values.items()}]


def _facts(body: Tree) -> Iterator[Fact]:
    """The facts whose kinds are known here."""
    for name, values in cast("list[tuple[str, dict[str, Tree]]]", body):
        kind = _FACTS.get(name)
        if kind is not None:
            yield kind(**{key: _fact_in(key, value) for key, value in values.items()})


def _fact_in(name: str, value: Tree) -> Tree:
    if name == "stage" and isinstance(value, str):
        return Stage(value)
    return float(value) if isinstance(value, str) and value in _NOT_JSON else value


def _rulings(body: Tree) -> Iterator[Ruling]:
    """The rulings in their order; left out where there is none."""
    for by, outcome, why, text, was, place in cast("list[tuple[str, str, str | None, str, str, str]]", body or []):
        reason = None if why is None else InconclusiveReason(why)
        yield Ruling(by, Outcome(outcome), reason, text, Outcome(was), Place(place))


def _marks(body: Mapping[str, Tree]) -> tuple[Mark, ...]:
    """The marks, each with its kind."""
    marks = cast("list[tuple[int, int | None, str]]", body["marks"])
    kinds = cast("list[tuple[str, bool]]", body[_MARK_KINDS])
    victims = cast("list[tuple[str, str, str] | None]", body.get(_VICTIMS, [None] * len(marks)))
    return tuple(
        Mark(*mark, kind=MarkKind(kind), planned=planned, victim=None if victim is None else Victim(*victim))
        for mark, (kind, planned), victim in zip(marks, kinds, victims, strict=True)
    )


def _forecast(body: Tree) -> Forecast | None:
    if not isinstance(body, list):
        return None
    after_s, low_s, high_s, confidence = (_number(value) for value in body[1:])
    return Forecast(cast("str", body[0]), after_s, low_s, high_s, confidence)


def gone_alarms(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Of the texts of earlier findings the failures and warnings that are not among later ones."""
    alarms = [(line, identity) for line in before if (identity := _identity_of_alarm(line))]
    found = {_identity_of_alarm(line) for line in now} if alarms else set()
    return [line for line, identity in alarms if identity not in found]


def _identity_of_alarm(text: str) -> str:
    """The identity of a failure or warning; "" for any other finding, most of which are not even parsed."""
    if not any(word in text for word in _ALARMS):
        return ""
    finding = finding_from_json(text)
    return identity_of(finding) if finding.outcome in {Outcome.FAIL, Outcome.WARN} else ""


def identity_of(finding: Finding) -> str:
    """The identity by which findings of successive judgings are the same one."""
    parts = [finding.rule, finding.target, finding.metric, finding.object, finding.outcome.value]
    return json.dumps(parts, ensure_ascii=True)


def _out(value: float | None) -> Tree:
    if value is None:
        return None
    if isinstance(value, int):
        return int(value)  # also for bool
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _in(value: Tree) -> float | None:
    return None if value is None else _number(value)


def _number(value: Tree) -> float:
    if isinstance(value, int | float):
        return value
    return float(cast("str", value))

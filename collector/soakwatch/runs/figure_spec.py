"""The expression of a key figure: ``max(load.latency{quantile="p99"})``, what it means, and which way is better."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.plan.phase import PHASES
from soakwatch.sources.tables.columns import IMPORTED
from soakwatch_model.flow import BACK, PACKETS
from soakwatch_model.metric import BY_NAME, COUNTER, DOWN, GAUGE, STATE, UP, Metric, flows
from soakwatch_model.metric_queries import words_of
from soakwatch_model.roles import ROLES

Better = Literal["higher", "lower", ""]

ALL_PHASES = "all"
"""The value of the label ``phase`` that stands for the whole run."""
CHOOSERS = ("target", "role", "phase", "object")
"""Labels that every metric has: whose series, in which phase, and the object's text as it is recorded."""
ALTERNATIVES = ("quantile", "minutes", "window", "loss", "bound")
"""Labels whose values tell the same thing in other ways: they are never added up."""
STATISTICS: Mapping[str, str] = {
    "mean": "mean",
    "median": "median",
    "min": "lowest",
    "max": "highest",
    "last": "at the end",
    "total": "total",
    "rate": "mean rate",
    "slope": "slope",
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
}
"""Every statistic, with its words."""
_OF_COUNTERS = ("rate", "total")
_USUAL = {"quantile": "p99", "bound": "found"}  # where an expression names none; a least value is no capacity
CAPACITY = "load.capacity."
"""What a search for the capacity found: read once, behind the search, and so a figure of the whole run."""
_WATTS = ("W", "J")

_NAME = r"[A-Za-z_][A-Za-z0-9_.:/-]*"
_SELECTOR = re.compile(rf"\s*({_NAME})\s*(?:\{{(.*)\}})?\s*", re.DOTALL)
_CALL = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*\((.*)\)\s*", re.DOTALL)
_LABEL = re.compile(r"""\s*([A-Za-z_][A-Za-z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*""")
_EXAMPLE = 'max(load.latency{quantile="p99"})'


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """Which number: ``statistic`` of the series of ``metric`` that have ``labels`` (``target``, ``phase``, ``role`` and
    ``object`` are labels too). ``text`` is the expression, ``name`` the same in words."""

    text: str
    statistic: str
    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    per: FigureSpec | None = field(default=None, repr=False)
    """What it is divided by, where it is a ratio of two figures; all else is said of the one above the line."""


@dataclass(frozen=True, slots=True)
class FigureValue:
    """The number in ``unit``, or None with the ``reason`` why the run has none. ``better`` is the good direction."""

    value: float | None
    unit: str
    better: Better = ""
    reason: str = ""


def parse_figure(text: str) -> FigureSpec:
    """The figure that an expression means: ``METRIC``, ``STATISTIC(METRIC)``, each with ``{label="value", …}`` behind
    the metric, as in PromQL, or one of these ``/`` another, with blanks around the stroke.

    A metric alone has its usual statistic: of a counter the rate, of one that counts what must not happen the total, of
    a level the mean, of a state the last. A latency without ``quantile`` is its 99th percentile, a capacity without
    ``bound`` one that was found between two bounds (``bound="at least"`` is the generator's limit). Metrics that an
    import kept under their own names (``imported.…``) have the mean. Raises SoakwatchError, one sentence with what is nearest.

    >>> parse_figure("load.rx.packets")
    FigureSpec(text='load.rx.packets', statistic='rate', metric='load.rx.packets', labels={}, name='packets received, mean rate')
    >>> parse_figure('max(load.latency{quantile="p50", phase="stress"})').name
    'latency p50, highest, in stress'
    >>> parse_figure("system.power / load.rx.packet.rate").name
    'energy per packet'
    """  # noqa: E501 - one line of output
    shown = " ".join(text.split())
    above, per = _divided(text)
    if per:
        over, under = parse_figure(above), parse_figure(per)
        if under.per is not None:
            raise SoakwatchError(f"{shown!r} divides twice: a figure has one line")
        return replace(over, text=shown, name=_ratio_name(over, under), per=under)
    call = _CALL.fullmatch(text)
    statistic, inner = (call[1], call[2]) if call else ("", text)
    selector = _SELECTOR.fullmatch(inner)
    if selector is None:
        raise SoakwatchError(f"{shown!r} is no figure: write METRIC or STATISTIC(METRIC), such as {_EXAMPLE}")
    if call and statistic not in STATISTICS:
        raise SoakwatchError(f"unknown statistic {statistic!r} in {shown!r}{hint(statistic, STATISTICS)}")
    metric = selector[1]
    entry = BY_NAME.get(metric)
    if entry is None and not metric.startswith(IMPORTED):
        raise SoakwatchError(f"unknown metric {metric!r} in {shown!r}{_near(metric)}")
    labels = _labels(selector[2] or "", shown, entry)
    if entry is not None:
        statistic = statistic or default_statistic(entry)
        if statistic in _OF_COUNTERS and entry.kind != COUNTER:
            raise SoakwatchError(
                f"{statistic} in {shown!r} needs a counter, but {metric} is a {entry.kind}: write mean"
            )
        if "object" not in labels:
            usual = {name: value for name, value in _USUAL.items() if name in entry.labels and name not in labels}
            labels = {**labels, **usual}
    statistic = statistic or "mean"
    return FigureSpec(shown, statistic, metric, labels, name_of(statistic, metric, labels))


def _divided(text: str) -> tuple[str, str]:
    """The two parts of a ratio, split at the first ``/`` between blanks; the whole text and an empty one where there is
    no such ``/``."""
    depth, quoted = 0, ""
    for place, letter in enumerate(text):
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "\"'":
            quoted = letter
        elif letter in "({":
            depth += 1
        elif letter in ")}":
            depth -= 1
        elif (
            letter == "/" and not depth and text[place - 1 : place].isspace() and text[place + 1 : place + 2].isspace()
        ):
            return text[:place], text[place + 1 :]
    return text, ""


def _ratio_name(over: FigureSpec, under: FigureSpec) -> str:
    if over.metric == "system.power" and under.metric in flows(BACK, PACKETS):
        place = over.name.removeprefix("power, mean")
        return f"energy per packet{place}" if place != over.name else f"{over.name}, per packet"
    return f"{over.name} / {under.name}"


def ratio_unit(over: str, under: str) -> str:
    """The unit of a ratio of two figures: watts over a rate are joules each.

    >>> ratio_unit("W", "{packet}/s"), ratio_unit("By", "{session}"), ratio_unit("s", "s"), ratio_unit("W", "")
    ('J/{packet}', 'By/{session}', '1', 'W')
    """
    if over == under:
        return "1"
    if over == "W" and under.endswith("/s"):
        return f"J/{under.removesuffix('/s')}"
    return f"{over}/{under}" if under and under != "1" else over


def default_statistic(entry: Metric) -> str:
    """The statistic of a metric that stands without one.

    >>> [default_statistic(BY_NAME[name]) for name in ("load.rx.bytes", "queue.dropped", "load.loss", "process.up")]
    ['rate', 'total', 'mean', 'last']
    """
    if entry.kind == COUNTER:
        return entry.statistic or ("total" if UP in (entry.growth, entry.worse) else "rate")
    return "last" if entry.kind == STATE else "mean"


def better_of(metric: str, statistic: str, unit: str = "", growth: str | None = None) -> Better:
    """Which direction is better for a figure. ``unit`` and ``growth`` are those of the record, for metrics outside of
    the catalogue.

    >>> better_of("load.rx.packets", "rate"), better_of("load.latency", "max"), better_of("load.tx.packets", "rate")
    ('higher', 'lower', '')
    >>> better_of("system.sessions", "mean"), better_of("system.sessions", "slope")
    ('', 'lower')
    """
    entry = BY_NAME.get(metric)
    if entry is not None and entry.by_load and statistic != "slope":
        return ""
    worse = growth if entry is None else entry.worse or entry.growth
    if worse is None and entry is None and unit in _WATTS:
        worse = UP
    return "lower" if worse == UP else "higher" if worse == DOWN else ""


def name_of(statistic: str, metric: str, labels: Mapping[str, str]) -> str:
    """A figure in words.

    >>> name_of("slope", "process.memory.usage", {"process": "bgpd"})
    'memory of the process bgpd, slope'
    """
    whose = [
        f"at loss {value}" if key == "loss" else value
        for key, value in labels.items()
        if key not in {"phase", "role"} and (key, value) != ("bound", _USUAL["bound"])
    ]
    phase = labels.get("phase", "")
    role = labels.get("role", "")
    entry = BY_NAME.get(metric)
    words = words_of(metric)
    if entry is not None and entry.words and "process" in entry.labels:
        words = f"{words} of the process"
    plain = statistic == "total" and entry is not None and default_statistic(entry) == "total"
    plain = plain or (metric.startswith(CAPACITY) and statistic == "last")
    said = STATISTICS[statistic]
    if statistic == "mean" and entry is not None and entry.kind == GAUGE and entry.unit.endswith("/s"):
        said = STATISTICS["rate"]
    parts = [" ".join([words, *whose]), "" if plain else said]
    parts.append(f"at the {role}" if role else "")
    parts.append("" if not phase else "whole run" if phase == ALL_PHASES else f"in {phase}")
    return ", ".join(part for part in parts if part)


def _labels(text: str, shown: str, entry: Metric | None) -> dict[str, str]:
    """Reads the labels between the braces. Raises SoakwatchError."""
    labels: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _LABEL.match(text, position)
        if match is None:
            raise SoakwatchError(f'the labels of {shown!r} cannot be read: write {{name="value"}}')
        if match[2] != "=":
            raise SoakwatchError(f"{match[2]} in {shown!r} is not supported: a label is chosen by =")
        name, value = match[1], re.sub(r"\\(.)", r"\1", match[3][1:-1])
        known = (*CHOOSERS, *entry.labels) if entry is not None else ()
        if known and name not in known:
            raise SoakwatchError(f"{entry.name if entry else ''} has no label {name!r}{hint(name, known)}")
        if name in labels:
            raise SoakwatchError(f"the label {name!r} stands twice in {shown!r}")
        if name == "role" and value not in ROLES:
            raise SoakwatchError(f"unknown role {value!r} in {shown!r}{hint(value, ROLES)}")
        if name == "phase" and value not in (*PHASES, ALL_PHASES):
            raise SoakwatchError(f"unknown phase {value!r} in {shown!r}{hint(value, (*PHASES, ALL_PHASES))}")
        labels[name] = value
        position = match.end()
        rest = text[position:].lstrip()
        if rest and not rest.startswith(","):
            raise SoakwatchError(f"a comma is missing between the labels of {shown!r}")
        position = len(text) - len(rest) + 1 if rest else len(text)
    return labels


def _near(metric: str) -> str:
    near = hint(metric, BY_NAME)
    return near if near.startswith("; did you mean") else "; see 'soakwatch metrics'"

"""Columns of an imported table that no rule judged: a verdict must not pass without mentioning them.

The verdict is inconclusive if no rule judges a column named like a resource (memory, latency, drops …), if unjudged
columns make up more than half of the table, or if more than a tenth of a column's samples were impossible (−5 bytes,
300 %) and left out. A column that is constant or only numbers its lines is not a measurement; columns excluded with
``--skip`` are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.meta import IMPORTED_KEY, LEFT_OUT, UNREAD
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.wording.quantities import first_few, percent

RULE = "coverage"
_VERSION = 1
_SHOWN = 6
_MAX_UNJUDGED_SHARE = 0.5  # share of a target's columns
_MAX_LEFT_OUT_SHARE = 0.1  # share of a column's samples
_DEFINITION = (
    "every column of samples is judged by a rule: one that is named like a resource and not judged by any, or "
    "more than half of them, make it inconclusive"
)
_RESOURCE = frozenset(
    (
        *("memory", "mem", "heap", "rss", "pss", "vsz", "swap", "cpu", "load", "util", "utilization", "utilisation"),
        *(
            "latency",
            "delay",
            "response",
            "rt",
            "rtt",
            "jitter",
            "ping",
            "pause",
            "pauses",
            "busy",
            "used",
            "available",
        ),
        *("drop", "drops", "dropped", "loss", "lost", "error", "errors", "err", "fail", "fails", "failed", "failure"),
        *("failures", "retrans", "retransmits", "timeout", "timeouts", "restarts", "crashes", "usage", "free"),
        *("throughput", "tps", "qps", "rps", "pps", "bps", "mbps", "gbps", "bandwidth", "requests", "packets"),
        *("connections", "conns", "conn", "sessions", "session", "flows", "queue", "qlen", "backlog", "fd", "fds"),
        *("files", "threads", "disk", "temperature", "temp"),
    )
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class MetaReader(Protocol):
    """What this module reads of a record."""

    def meta(self, key: str) -> str | None:
        """A text that the run stored under ``key``, or None."""
        ...


def measures(value: NDArray[np.generic]) -> bool:
    """Whether these values measure something: neither constant nor a count of lines.

    >>> measures(np.array([3.0, 3.0])), measures(np.arange(9.0)), measures(np.array([1.0, 5.0, 2.0]))
    (False, False, True)
    """
    steps = np.diff(value.astype(np.float64))
    return bool(steps.size) and bool(np.any(steps != steps[0]))


def unjudged_columns(
    record: MetaReader, rules: Sequence[Rule], findings: Iterable[Finding], window: Window, *, insisted: bool
) -> list[Finding]:
    """Per target one inconclusive finding on the unjudged columns that block a pass, and one on the other unjudged
    columns.

    Empty for a record that was not imported. With ``insisted``, only columns that the named rules could judge count.
    """
    files = json.loads(record.meta(IMPORTED_KEY) or "[]")
    columns = [column for file in files for column in file.get(UNREAD, [])]
    unjudged = [_left_out(column, window) for file in files for column in file.get(LEFT_OUT, [])]
    judged = {(f.target, f.metric) for f in findings if f.outcome is not Outcome.NOT_APPLICABLE}
    asked = {metric for rule in rules for metric in rule.metrics}
    for target in sorted({str(column["target"]) for column in columns}):
        own = [c for c in columns if c["target"] == target and (target, c["metric"]) not in judged]
        if not own:
            continue
        known = [c for c in own if c["measures"] and (c["wanted"] in asked if insisted else _resource(c))]
        readings = sum(int(file.get("readings", {}).get(target, 0)) for file in files)
        some = [c for c in own if c["measures"] and not insisted]
        if len(some) > _MAX_UNJUDGED_SHARE * readings:
            known = some
        rest = [c for c in own if c not in known]
        if known:
            unjudged.append(_finding(target, window, known, Outcome.INCONCLUSIVE))
        if rest and not insisted:
            unjudged.append(_finding(target, window, rest, Outcome.NOT_APPLICABLE))
    return unjudged


def _resource(column: Mapping[str, object]) -> bool:
    """Whether a column is named like a resource, a latency or an error count."""
    words = {word.lower() for word in _WORD.findall(str(column["column"]))}
    return bool(column["wanted"]) or bool(words & _RESOURCE)


def _left_out(column: Mapping[str, object], window: Window) -> Finding:
    """A finding on the samples of a column that were left out: inconclusive above ``_MAX_LEFT_OUT_SHARE``."""
    name, share = str(column["column"]), float(str(column["share"]))
    many = share > _MAX_LEFT_OUT_SHARE
    return Finding(
        rule=RULE,
        version=_VERSION,
        outcome=Outcome.INCONCLUSIVE if many else Outcome.NOT_APPLICABLE,
        target=str(column["target"]),
        metric="",
        object=f"column {name}",
        window=window,
        definition="values that their metric cannot have are left out; more than "
        f"{100 * _MAX_LEFT_OUT_SHARE:g} % of a column make it inconclusive",
        reason=f"column {name}: {column['why']}, {percent(share)} of its samples",
        samples=0,
        why=InconclusiveReason.UNREAD if many else None,
        settle=f"say its unit with --unit '{name}=UNIT', or leave it out with --skip '{name}'" if many else "",
    )


def _finding(target: str, window: Window, columns: Sequence[Mapping[str, object]], outcome: Outcome) -> Finding:
    names = list(dict.fromkeys(str(column["column"]) for column in columns))
    shown = first_few(names, _SHOWN)
    wanted = [column for column in columns if column["wanted"]]
    what = "column" if len(names) == 1 else "columns"
    reason = f"{what} {shown}: judged by no rule"
    if outcome is Outcome.INCONCLUSIVE and wanted:
        first = wanted[0]
        unit = BY_NAME[str(first["wanted"])].unit
        example = {"By": "MB", "1": "%", "s": "ms"}.get(unit, unit)
        reason += f"; without a unit {first['column']} is not known to be {first['wanted']}"
        settle = f"say --unit '{first['column']}={example}'"
    else:
        settle = f"name a rule, such as --rule growth, or say with --map '{names[0]}=METRIC' what it is"
    return Finding(
        rule=RULE,
        version=_VERSION,
        outcome=outcome,
        target=target,
        metric="",
        object=f"{what} {shown}",
        window=window,
        definition=_DEFINITION,
        reason=reason,
        samples=0,
        why=InconclusiveReason.UNREAD if outcome is Outcome.INCONCLUSIVE else None,
        settle=f"{settle}, or leave it out with --skip '{names[0]}'" if outcome is Outcome.INCONCLUSIVE else "",
    )


def account(columns: Iterable[tuple[str, str, str, str, NDArray[np.generic]]]) -> list[dict[str, object]]:
    """What a record stores of columns outside of the catalogue.

    Each column: name, target, metric, the catalogue metric that it is named like (or ""), and samples.
    """
    return [
        {"column": column, "target": target, "metric": metric, "wanted": wanted, "measures": measures(value)}
        for column, target, metric, wanted, value in columns
    ]

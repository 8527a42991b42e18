"""What an imported table holds and no rule judged: it cannot pass in silence.

A column of readings that goes by the name of a resource (memory, latency, drops …) and that no rule read holds the
verdict up, and so do columns of readings that nothing is known of, where they are more than half of the table, and
columns of which more than a tenth of the readings were left out because they cannot be (−5 bytes, 300 %). What
never changes, or only counts its lines, is no reading; a column that was left out with ``--skip`` is not asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.meta import IMPORTED_KEY, LEFT_OUT, UNREAD
from soakwatch_agent.metric import BY_NAME
from soakwatch_rules.rule import Finding, InconclusiveReason, Outcome, Rule, Window

RULE = "coverage"
_VERSION = 1
_SHOWN = 6
_MOST = 0.5  # of a target's columns of readings
_FEW = 0.1  # of a column's readings: so many may be left out
_DEFINITION = (
    "every column of readings is judged by a rule: one that goes by the name of a resource and is judged by none, or "
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


class Told(Protocol):
    """The part of a record that is read here."""

    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...


def measures(value: NDArray[np.generic]) -> bool:
    """Whether these are readings of something: not one value for ever, and no number of the line.

    >>> measures(np.array([3.0, 3.0])), measures(np.arange(9.0)), measures(np.array([1.0, 5.0, 2.0]))
    (False, False, True)
    """
    steps = np.diff(value.astype(np.float64))
    return bool(steps.size) and bool(np.any(steps != steps[0]))


def unread(
    record: Told, rules: Sequence[Rule], findings: Iterable[Finding], window: Window, *, insisted: bool
) -> list[Finding]:
    """One finding a target for what holds the verdict up, and one for what does not; none for what is no import.

    With ``insisted``, the rules that were named are all that was asked for: only what they would judge counts.
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
        if len(some) > _MOST * readings:
            known = some
        rest = [c for c in own if c not in known]
        if known:
            unjudged.append(_finding(target, window, known, Outcome.INCONCLUSIVE))
        if rest and not insisted:
            unjudged.append(_finding(target, window, rest, Outcome.NOT_APPLICABLE))
    return unjudged


def _resource(column: Mapping[str, object]) -> bool:
    """Whether a column goes by the name of something that devices run out of, or are slow or wrong in."""
    words = {word.lower() for word in _WORD.findall(str(column["column"]))}
    return bool(column["wanted"]) or bool(words & _RESOURCE)


def _left_out(column: Mapping[str, object], window: Window) -> Finding:
    """Readings of one column that were left out: a doubt of the verdict where they are more than a few."""
    name, share = str(column["column"]), float(str(column["share"]))
    many = share > _FEW
    return Finding(
        rule=RULE,
        version=_VERSION,
        outcome=Outcome.INCONCLUSIVE if many else Outcome.NOT_APPLICABLE,
        target=str(column["target"]),
        metric="",
        object=f"column {name}",
        window=window,
        definition=f"readings that their metric cannot have are left out; more than {100 * _FEW:g} % of a column make "
        "it inconclusive",
        reason=f"column {name}: {column['why']}, {100 * share:.2g} % of its readings",
        samples=0,
        why=InconclusiveReason.UNREAD if many else None,
        settle=f"say its unit with --unit '{name}=UNIT', or leave it out with --skip '{name}'" if many else "",
    )


def _finding(target: str, window: Window, columns: Sequence[Mapping[str, object]], outcome: Outcome) -> Finding:
    names = list(dict.fromkeys(str(column["column"]) for column in columns))
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
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
    """What a record keeps of columns outside of the catalogue, from their name, target, metric, the metric whose name
    they bear without being known to be it, and readings."""
    return [
        {"column": column, "target": target, "metric": metric, "wanted": wanted, "measures": measures(value)}
        for column, target, metric, wanted, value in columns
    ]

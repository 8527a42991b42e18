"""The codec between a poll and one line of JSON, versioned: what the agent spools and sends to a collector.

``{"v":1,"source":0,"due":…,"start":…,"took":…,"outcome":"ok","error":null,"samples":[[metric,[[object,value],…]],…],
"events":[[kind,object,begin,end,detail],…],"faults":[[metric,object,text],…]}``; times in nanoseconds. A sample's
time is the poll's start unless a third element of its row says otherwise. Consecutive samples of one metric share one
row.
"""

from __future__ import annotations

import json
from typing import Dict, List, Mapping, Optional

from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample
from soakwatch_model.tree import Tree

VERSION = 1


class WireError(ValueError):
    """A line that is not a poll, or of a newer agent; the message says why in one sentence."""


def encode(poll: Poll) -> str:
    """A poll as one line without newline. Raises ValueError for a value that is not finite."""
    rows: List[Tree] = []
    last: Optional[str] = None
    group: List[Tree] = []
    for sample in poll.answer.samples:
        if sample.metric != last:
            last, group = sample.metric, []
            rows.append([sample.metric, group])
        if sample.time_ns == poll.start_ns:
            group.append([sample.object, sample.value])
        else:
            group.append([sample.object, sample.value, sample.time_ns])
    tree: Dict[str, Tree] = {
        "v": VERSION,
        "source": poll.source,
        "due": poll.due_ns,
        "start": poll.start_ns,
        "took": poll.duration_ns,
        "outcome": poll.outcome.value,
        "error": poll.error,
        "samples": rows,
        "events": [[e.kind, e.object, e.begin_ns, e.end_ns, dict(e.detail)] for e in poll.answer.events],
        "faults": [[f.metric, f.object, f.text] for f in poll.answer.faults],
    }
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def decode(line: str) -> Poll:
    """Parses a line. Integers keep every digit. Raises WireError, in one sentence."""
    try:
        tree: Tree = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise WireError("the line is not JSON: the agent's output is cut or mixed with other text") from None
    if not isinstance(tree, dict):
        raise WireError("the line is not a poll: it does not hold a JSON object")
    version = tree.get("v")
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise WireError(f"the agent speaks version {version} and this side {VERSION}: update this side")
    if version != VERSION or isinstance(version, bool):
        raise WireError(f"the line is not a poll of version {VERSION}")
    try:
        return _poll(tree)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise WireError(f"the poll is malformed: {error}") from None


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _poll(tree: Mapping[str, Tree]) -> Poll:
    start = _int(tree["start"])
    samples = []
    for row in _list(tree["samples"]):
        metric, group = _list(row)
        name = _str(metric)
        for entry in _list(group):
            cell = _list(entry)
            when = _int(cell[2]) if len(cell) > 2 else start
            samples.append(Sample(name, _str(cell[0]), _number(cell[1]), when))
    events = []
    for row in _list(tree["events"]):
        kind, label, begin, end, detail = _list(row)
        if not isinstance(detail, dict):
            raise ValueError("the detail of an event must be an object")
        text = {key: _str(value) for key, value in detail.items()}
        events.append(Event(_str(kind), "", _str(label), _int(begin), None if end is None else _int(end), text))
    faults = [Fault(*(_str(word) for word in _list(row))) for row in _list(tree["faults"])]
    error = tree["error"]
    return Poll(
        _int(tree["source"]),
        _int(tree["due"]),
        start,
        _int(tree["took"]),
        PollOutcome(tree["outcome"]),
        None if error is None else _str(error),
        Answer(tuple(samples), tuple(events), tuple(faults)),
    )


def _int(tree: Tree) -> int:
    if isinstance(tree, bool) or not isinstance(tree, int):
        raise ValueError("a whole number was expected")
    return tree


def _number(tree: Tree) -> float:
    if isinstance(tree, bool) or not isinstance(tree, (int, float)):
        raise ValueError("a number was expected")
    if tree in (float("inf"), float("-inf")):
        raise ValueError("a reading is a finite number")
    return tree


def _str(tree: Tree) -> str:
    if not isinstance(tree, str):
        raise ValueError("text was expected")
    return tree


def _list(tree: Tree) -> List[Tree]:
    if not isinstance(tree, list):
        raise ValueError("a list was expected")
    return tree

"""Hardware sensors of the kernel (/sys/class/hwmon): chips, their inputs, and the limits a chip states."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from soakwatch_agent.context import HostContext, ProbeAnswer, why
from soakwatch_agent.procfs import read_line, read_text
from soakwatch_model.metric import fault_of

_BOARD_CHIPS = re.compile(r"(?:nct6|nct7|it8|w836|f71|f81|sch5|smsc|dme1737|vt1211)")
_INPUT = re.compile(r"([a-z]+\d+)_(?:input|average)$")


@dataclass(frozen=True)
class Input:
    """One sensor input: the ``name`` shown, the file of its reading, and the ``stem`` of its other files.

    ``trusted`` is False for the monitoring chip of a PC board: its limits and voltage scaling are power-on defaults
    that nobody configured.
    """

    __slots__ = ("name", "path", "stem", "trusted")
    name: str
    path: str
    stem: str
    trusted: bool

    def number(self, what: str) -> Optional[int]:
        """The whole number in another file of this input (``crit``, ``max``, ``fault``); None if there is none."""
        text = read_line(f"{self.stem}_{what}")
        try:
            return None if text is None else int(text)
        except ValueError:
            return None


def listing(folder: str) -> List[str]:
    """Names in a folder in natural order (cpu2 before cpu10); none if it cannot be read."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(names, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)])


def inputs(context: HostContext, kind: str) -> List[Input]:
    """All inputs of a kind (``temp``, ``fan``, ``in``, ``power``, ``energy``), also under a chip's ``device`` folder.

    From the second on, inputs of one name are numbered in the kernel's order. If an input has a present reading and an
    average, the present one is used.
    """
    found: Dict[str, Input] = {}
    for name, path, stem, trusted in _every(context.path("/sys/class/hwmon"), kind):
        shown, number = name, 1
        while shown in found:
            number += 1
            shown = f"{name} #{number}"
        found[shown] = Input(shown, path, stem, trusted)
    return list(found.values())


def read_input(notes: ProbeAnswer, metric: str, label: str, source: Input, divisor: int) -> None:
    """Adds a reading (the file's number over ``divisor``) as a sample of ``metric``, or a fault that says why not."""
    try:
        value = int(read_text(source.path)) / divisor
    except OSError as error:
        notes.fault(metric, label, f"the sensor cannot be read: {why(error)}")
        return
    except ValueError:
        notes.fault(metric, label, "the sensor gives no number")
        return
    fault = fault_of(metric, value)
    if fault is None:
        notes.sample(metric, label, value)
        notes.recovered(metric, label)
    else:
        notes.fault(metric, label, f"the sensor lies: {fault}")


def _every(folder: str, kind: str) -> Iterator[Tuple[str, str, str, bool]]:
    for chip in listing(folder):
        for base in (f"{folder}/{chip}", f"{folder}/{chip}/device"):
            files: Dict[str, str] = {}
            for name in listing(base):
                match = _INPUT.match(name)
                if match and match[1].rstrip("0123456789") == kind:
                    files[match[1]] = max(files.get(match[1], ""), name)  # _input comes after _average
            title = read_line(f"{base}/name") or chip
            for stem, name in files.items():
                label = read_line(f"{base}/{stem}_label") or stem
                yield f"{title} {label}", f"{base}/{name}", f"{base}/{stem}", not _BOARD_CHIPS.match(title)
            if files:
                break  # device/ shows the same inputs again

"""How long the tests of each file take, as a whole run measured it: the order of the files, and which are quick.

``tests/run --record`` measures, and writes ``tests/durations.json``. A file that is not in it counts as a middling one.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".json")
QUICK_S = 50.0
"""So much work of one core ``tests/run --fast`` does in tests: with two, and what it does beside, that is 90 s."""
TRIED = "tried"
LONGEST_OF_MINE_S = 10.0
"""Tests that were just written or changed run at the desk, whatever they start, if they take no longer."""
_COLLECTING_S = 0.03  # of a file, before its first test
Item = TypeVar("Item")


class Duration(NamedTuple):
    """Seconds of a file's tests: by the clock, of the processor in pytest's own process, and in those it started."""

    wall: float
    cpu: float
    children: float


def kept(path: Path = KEPT) -> dict[str, Duration]:
    """By file, as the last recorded run had them; empty if there was none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else "{}"
    return {name: Duration(*seconds) for name, seconds in json.loads(text).items()}


class Outcome(NamedTuple):
    """What became of one test."""

    test: str
    outcome: str
    seconds: Duration
    tried: Sequence[tuple[str, int, int]]
    """What it tried many times (fixture ``tally``), how often, and how often that failed."""

    @property
    def file(self) -> str:
        """Where it stands."""
        return self.test.partition("::")[0]


def outcomes(path: Path) -> list[Outcome]:
    """All that ended, as ``--outcomes`` wrote it; a line that a kill cut off is none."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            test, outcome, seconds, tried = json.loads(line)
            found.append(Outcome(test, outcome, Duration(*seconds), [(str(what), *counts) for what, *counts in tried]))
    return found


@dataclass(eq=False)
class OutcomeWriter:
    """The plugin behind ``--outcomes``: a line for each test when it ends, from whichever process ran it."""

    path: Path
    _said: dict[str, str] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measures the test with its fixtures."""
        before, began = os.times(), time.monotonic()
        self._said.pop(item.nodeid, None)
        result = yield
        wall, after = time.monotonic() - began, os.times()
        cpu = after.user + after.system - before.user - before.system
        children = after.children_user + after.children_system - before.children_user - before.children_system
        seconds = [round(value, 3) for value in (wall, cpu, children)]
        tried = [value for name, value in item.user_properties if name == TRIED]
        row = [item.nodeid, self._said.get(item.nodeid, "failed"), seconds, tried]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(row)}\n")  # the line before it may be one that a kill cut off
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """As its last part ended; that its fixtures were taken down well says nothing of it."""
        if report.when != "teardown" or not report.passed:
            self._said[report.nodeid] = report.outcome


def ordered(files: Iterable[str], durations: Mapping[str, Duration], last: frozenset[str] = frozenset()) -> list[str]:
    """The longest first, so that nothing long is left over for the end; those of ``last`` behind all others.

    >>> known = {"long": Duration(9, 1, 0), "other": Duration(5, 1, 0), "short": Duration(1, 1, 0)}
    >>> ordered(["new", "short", "long"], known)
    ['long', 'new', 'short']
    """
    middle = statistics.median(each.wall for each in durations.values()) if durations else 0.0
    return sorted(files, key=lambda name: (name in last, -(durations[name].wall if name in durations else middle)))


def shuffled(items: Mapping[str, Sequence[Item]], seed: int) -> list[Item]:
    """The files in an order that the seed gives, and the tests of each file too; a file stays together."""
    dice = random.Random(seed)
    files = dice.sample(sorted(items), len(items))
    return [item for name in files for item in dice.sample(items[name], len(items[name]))]


def quick(durations: Mapping[str, Duration], budget_s: float = QUICK_S) -> list[str]:
    """The files whose tests start no process and wait for nothing, the shortest first, as many as the budget allows.

    Examples in modules of the product are left out: pytest takes a module that is named for a file of tests.
    """
    found, left_s = [], budget_s
    for name, seconds in sorted(durations.items(), key=lambda each: each[1].cpu):
        waits = seconds.wall > 0.5 + 3 * seconds.cpu  # on a busy machine arithmetic takes longer, too
        if waits or seconds.children >= 0.01 or not name.startswith("tests/") or not (ROOT / name).is_file():
            continue
        left_s -= seconds.cpu + _COLLECTING_S
        if left_s < 0:
            break
        found.append(name)
    return found


def by_file(ended: Iterable[Outcome]) -> dict[str, Duration]:
    """The sums of each file."""
    sums: dict[str, Duration] = {}
    for one in ended:
        before = sums.get(one.file, Duration(0, 0, 0))
        sums[one.file] = Duration(*(round(a + b, 2) for a, b in zip(before, one.seconds, strict=True)))
    return sums


def record(ended: Iterable[Outcome], path: Path = KEPT) -> None:
    """Writes what a run measured; files that it did not run keep what they had, those that are gone lose it."""
    together = {name: seconds for name, seconds in kept(path).items() if (ROOT / name).is_file()} | by_file(ended)
    rows = (f"{json.dumps(name)}: {json.dumps(list(together[name]))}" for name in sorted(together))
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--quick"]:
        known = kept()
        mine = [name for name in sys.argv[2:] if name not in known or known[name].wall < LONGEST_OF_MINE_S]
        sys.stdout.write("".join(f"{name}\n" for name in dict.fromkeys([*mine, *quick(known)])))
    else:
        record(outcomes(Path(sys.argv[1])))

"""What holds for every profile that is shipped: it loads, is chosen by its own selectors, and no line holds it up."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
from collections.abc import Iterator
from functools import cache
from types import FrameType

import pytest

from soakwatch.core.regex import Pattern
from soakwatch.sources.profiles import load_profiles, match
from soakwatch.sources.profiles.compile import GIVEN
from soakwatch.sources.profiles.profile_model import Clause, Profile, ProfileHead
from soakwatch_model.metric import BY_NAME

PROFILES = load_profiles()
NAMES = PROFILES.names(parts=True)
HEADS = PROFILES.heads()
LINE = 8192  # the longest line that RFC 5424 receivers are asked to take is shorter
CPU_S = 3.0  # of one pattern over all its hostile lines; the slowest needs some hundredths


@cache
def _all() -> dict[str, Profile]:
    """Every profile and every part; read by the tests that want it, not by whoever collects them."""
    return {name: PROFILES.part(name) for name in NAMES}


def _patterns(profile: Profile) -> Iterator[Pattern]:
    """Every regular expression that meets a device's text."""
    for log in profile.logs:
        yield log.match
    for clause in profile.select:
        yield from (
            pattern for pattern in (clause.description, clause.not_description, clause.text) if pattern is not None
        )
    for group in profile.groups:
        yield from (
            condition.pattern for condition in (*group.where, *group.where_not) if condition.pattern is not None
        )
        yield from (line.match for line in group.lines if line.match is not None)


def _hostile(pattern: str) -> Iterator[str]:
    """Long lines in which the pattern begins to match again and again, and never ends."""
    plain = re.sub(r"\\[dwsSDWb]|\(\?P<\w+>|\(\?[:<=!]+|\\(.)", r" \1", pattern)
    words = re.findall(r"[A-Za-z0-9%_<>=\"':,.\[\]/-]{2,}", plain)[:8]
    starts = ["".join(words[:count]) for count in range(1, len(words) + 1)]
    starts += [" ".join(words[:count]) for count in range(2, len(words) + 1)]
    for start in (*words, *starts, "a", " ", "1", "a ", "a:", "([", "%A-1-B: ", "kernel: ", "\\"):
        for gap in ("", " ", "a"):
            yield ((start + gap) * (LINE // len(start + gap) + 1))[:LINE]


class _StuckError(Exception):
    pass


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise _StuckError


@pytest.mark.slow
def test_no_line_blocks_a_listener() -> None:
    """Each pattern is tried on 8 kB lines made against it, within an allowance of processor time, not of the clock."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    tried: set[str] = set()
    try:
        for name, profile in _all().items():
            for pattern in _patterns(profile):
                if pattern.pattern in tried:
                    continue
                tried.add(pattern.pattern)
                lines = list(_hostile(pattern.pattern))
                signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
                try:
                    for line in lines:
                        pattern.search(line)
                except _StuckError:
                    pytest.fail(
                        f"{name}: {pattern.pattern!r} takes over {CPU_S:g} s of processor time on {line[:60]!r}"
                    )
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert len(tried) > 500


def test_no_pattern_begins_with_an_endless_run() -> None:
    r"""A pattern that begins with ``\S+`` is tried again at each position of a long line."""
    endless = re.compile(r"(\(\?P<\w+>|\(\?:|\()*(\\[SWw]|\.|\[\^[^]]*\])[+*]")
    offenders = [
        f"{name}: {log.match.pattern}"
        for name, profile in _all().items()
        for log in profile.logs
        if endless.match(log.match.pattern)
    ]
    assert offenders == []


def test_no_name_is_cut_to_its_last_letter() -> None:
    r"""A greedy ``.*`` before a name such as ``(?P<process>\S+)`` leaves it one letter."""
    cut = re.compile(r"\.(\*|\+|\{\d+,\d+\})\(\?P<\w+>(\\[Sw]|\[[^]]*\])(\+|\{1,\d+\})")
    offenders = [
        f"{name}: {log.match.pattern}"
        for name, profile in _all().items()
        for log in profile.logs
        if cut.search(log.match.pattern)
    ]
    assert offenders == []


def _bare(head: ProfileHead) -> Iterator[str]:
    """The object ids by which alone a profile is chosen."""
    for clause in head.select:
        if clause.description is None and clause.present is None:
            yield from clause.object_ids


BARE = [(head.name, oid) for head in HEADS for oid in _bare(head)]


def test_a_number_that_stands_alone_leads_to_its_profile() -> None:
    """And so does any number below it; a device that says more may be better known to another profile."""

    async def absent(_: str) -> str | None:
        return None

    async def misled() -> list[str]:
        return [
            f"{below}: {chosen.name} instead of {name}"
            for name, oid in BARE
            for below in (oid, f"{oid}.4294967295")
            if (chosen := await match(below, "", absent, HEADS)).name != name
        ]

    assert len(BARE) > 200
    assert asyncio.run(misled()) == []


def test_no_two_profiles_are_chosen_by_the_same() -> None:
    """The name would decide, which is chance."""

    def key(clause: Clause, oid: str | None, rank: int) -> tuple[object, ...]:
        texts = (clause.description, clause.not_description, clause.text)
        return (oid, clause.present, rank, *(None if text is None else text.pattern for text in texts))

    owners: dict[tuple[object, ...], str] = {}
    twice = []
    for head, clause in itertools.chain.from_iterable(
        ((head, clause_of_head) for clause_of_head in head.select) for head in HEADS
    ):
        for oid in clause.object_ids or (None,):
            owner = owners.setdefault(key(clause, oid, head.rank), head.name)
            if owner != head.name:
                twice.append(f"{owner} and {head.name}: {oid} {clause.description}")
    assert twice == []


def test_its_metrics_have_the_labels_of_the_catalogue() -> None:
    for name, profile in _all().items():
        for group in profile.groups:
            given = GIVEN.get(group.watch or "", frozenset())
            for line in group.lines:
                labels = {label for label, _ in line.labels}
                assert labels | given >= set(BY_NAME[line.metric].labels), f"{name}: {group.name}: {line.metric}"
                assert labels <= set(BY_NAME[line.metric].labels), f"{name}: {group.name}: {line.metric}"
        for path in profile.gnmi:
            assert set(path.labels) == set(BY_NAME[path.metric].labels), f"{name}: {path.path}"

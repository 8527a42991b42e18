"""The fingerprints of a run's targets, fetched from its sources in the background at the begin, and at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.event_kinds import SETUP_CHANGE
from soakwatch.core.fingerprints import BEGIN_KEY, END_KEY, NOTES, differences, event_detail, merged, reporters
from soakwatch.core.redaction import Redaction
from soakwatch.engine.run_record import RunRecord
from soakwatch.record import RecordView
from soakwatch.sources.abc import Fingerprints, SourceError, SourceUnreadyError
from soakwatch_model.event import Event
from soakwatch_model.tree import Tree, parse_json

ASK_S = 60.0
"""Time limit for one source at the begin, in the background."""
END_S = 10.0
"""Time limit for all sources together at the end of a run."""
AT_ONCE = 8
"""Sources asked concurrently: each may read some hundred files."""
MAX_TREE = 2_000_000
"""Maximum characters of one source's fingerprint as JSON."""

Trees = dict[str, dict[str, Tree]]


class Reporting(Protocol):
    """A source with its wrapper."""

    @property
    def answering(self) -> bool:
        """True if its last poll was answered."""
        ...

    @property
    def fingerprints(self) -> Fingerprints | None:
        """The source if it is connected and can report a fingerprint, else None."""
        ...


@dataclass(frozen=True, slots=True)
class Reporter:
    """A source that may report a fingerprint of ``target``; ``label`` names the source."""

    target: str
    label: str
    source: Reporting


class Fingerprinting:
    """Asks each source after its first answered poll and again at the end; stores the fingerprints in the record.

    No poll is delayed: sources answer beside their polls, and only the end of the run waits for them. A failure becomes
    a note in the target's tree; a difference between begin and end becomes an event.
    """

    def __init__(self, out: RunRecord, redaction: Redaction) -> None:
        self._out, self._redaction = out, redaction
        self._kept: Trees = {}  # fingerprints already in the record of a resumed run
        self._begin: dict[tuple[str, str], Mapping[str, Tree]] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._unwritten = False

    async def start(self, folder: Path, *, resumed: bool) -> None:
        """Called before the first poll: a resumed run keeps the fingerprints of its begin."""
        if resumed:
            self._kept = await self._out.queue.call(_recorded, folder)

    async def tick(self, sources: Sequence[Reporter]) -> None:
        """Called each second: asks sources that connected meanwhile, and stores what came."""
        for reporter in sources:
            key = (reporter.target, reporter.label)
            if key in self._asking or not reporter.source.answering or self._has_reported(reporter):
                continue
            if (source := reporter.source.fingerprints) is not None:
                self._asking[key] = asyncio.create_task(self._ask_begin(key, source))
        if self._unwritten and all(task.done() for task in self._asking.values()):
            await self._write_begin(sources)

    async def finish(self, sources: Sequence[Reporter], end_ns: int) -> None:
        """Called at the end: asks again, stores both, records differences as events. Takes about ``END_S`` at most."""
        deadline = asyncio.get_running_loop().time() + END_S
        await self.tick(sources)
        early = {key for key, task in self._asking.items() if task.done()}
        await self._wait(self._asking.values(), deadline)
        for key, task in self._asking.items():
            if key not in self._begin and not task.done():
                self._begin[key] = {NOTES: [f"{key[1]} had not reported yet what it is when the run ended"]}
                self._unwritten = True
            task.cancel()
        end: dict[tuple[str, str], Mapping[str, Tree]]
        end = {key: self._begin[key] for key in self._asking if key in self._begin and key not in early}
        asked = {
            (reporter.target, reporter.label): source
            for reporter in sources
            if (reporter.target, reporter.label) not in end
            and reporter.source.answering
            and (source := reporter.source.fingerprints) is not None
        }
        tasks = {key: asyncio.create_task(self._answer(key[1], source, END_S)) for key, source in asked.items()}
        await self._wait(tasks.values(), deadline)
        for key, answer in tasks.items():
            tree = answer.result() if answer.done() else None
            end[key] = _silent(key[1], END_S) if tree is None else tree
            answer.cancel()
        if self._unwritten:
            await self._write_begin(sources)
        await self._write_end(sources, {key: tree for key, tree in end.items() if tree}, end_ns)

    async def close(self) -> None:
        """Cancels what still runs."""
        tasks = [task for task in self._asking.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _has_reported(self, reporter: Reporter) -> bool:
        by = reporters(self._kept.get(reporter.target, {}))
        return any(reporter.label in str(each).split(", ") for each in by.values())

    async def _ask_begin(self, key: tuple[str, str], source: Fingerprints) -> None:
        async with self._room:
            tree = await self._answer(key[1], source, ASK_S, again=True)
        if tree is None:
            del self._asking[key]
        elif tree:
            self._begin[key] = tree
            self._unwritten = True

    async def _answer(
        self, label: str, source: Fingerprints, limit_s: float, *, again: bool = False
    ) -> Mapping[str, Tree] | None:
        """What a source reports, or a note why not; None if it is not ready and may be asked ``again``."""
        try:
            async with asyncio.timeout(limit_s):
                text = json.dumps(await source.fingerprint())
        except TimeoutError:
            return _silent(label, limit_s)
        except (SourceError, SoakwatchError) as failure:
            if again and isinstance(failure, SourceUnreadyError):
                return None
            return _note(label, self._redaction.text(str(failure)))
        except Exception as failure:  # noqa: BLE001 - as for a poll; its type only: its text may quote a secret
            return _note(label, f"its poller raised {type(failure).__name__}")
        if len(text) > MAX_TREE:
            return _note(label, f"what it reported is longer than {MAX_TREE} characters")
        tree = parse_json(self._redaction.text(text))
        return tree if isinstance(tree, dict) else _note(label, "what it reported is no tree")

    async def _wait(self, tasks: Iterable[asyncio.Task[object]], deadline: float) -> None:
        waiting = [task for task in tasks if not task.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))

    async def _write_begin(self, sources: Sequence[Reporter]) -> None:
        if await self._write(BEGIN_KEY, self._merged(sources, self._begin, self._kept)):
            self._unwritten = False

    async def _write_end(
        self, sources: Sequence[Reporter], end: Mapping[tuple[str, str], Mapping[str, Tree]], end_ns: int
    ) -> None:
        begin, now = self._merged(sources, self._begin, self._kept), self._merged(sources, end, {})
        await self._write(END_KEY, now)
        for target, tree in now.items():
            if differing := differences(begin.get(target, {}), tree):
                event = Event(SETUP_CHANGE, target, "", end_ns, end_ns, event_detail(differing))
                await self._out.notes.event(event)

    def _merged(
        self, sources: Sequence[Reporter], by_source: Mapping[tuple[str, str], Mapping[str, Tree]], kept: Trees
    ) -> Trees:
        """One tree per target; its sources in the order of the plan."""
        trees: Trees = dict(kept)
        for target in dict.fromkeys(reporter.target for reporter in sources):
            answers = [
                (reporter.label, by_source[target, reporter.label])
                for reporter in sources
                if reporter.target == target and (target, reporter.label) in by_source
            ]
            if answers:
                trees[target] = merged(answers, kept.get(target))
        return trees

    async def _write(self, key: str, trees: Trees) -> bool:
        """Whether the record took them; if the disk is full, the polls report that."""
        try:
            await self._out.queue.call(self._out.record.set_meta, key, json.dumps(trees))
        except RecordError:
            return False
        return True


def _silent(label: str, limit_s: float) -> Mapping[str, Tree]:
    return _note(label, f"no answer within {limit_s:g} s")


def _note(label: str, why: str) -> Mapping[str, Tree]:
    return {NOTES: [f"{label} did not report what it is: {why}"]}


def _recorded(folder: Path) -> Trees:
    try:
        with RecordView.open(folder) as view:
            trees = parse_json(view.meta(BEGIN_KEY))
    except RecordError:
        return {}
    return {name: tree for name, tree in trees.items() if isinstance(tree, dict)} if isinstance(trees, dict) else {}

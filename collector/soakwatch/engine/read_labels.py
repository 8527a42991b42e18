"""Labels that are read at the start of a run: from a local command, or from a package's version on a target."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.core.event_kinds import LABEL_UNREAD
from soakwatch.core.labels import LABELS_KEY, PENDING_KEY, label_text, labels_in, labels_json
from soakwatch.core.redaction import Redaction, redaction_of
from soakwatch.core.regex import user_regex
from soakwatch.core.run_command import run_command
from soakwatch.core.text import one_line
from soakwatch.core.units import show_seconds
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.plan import LabelPlan, Plan, TargetPlan
from soakwatch.plan.label_plan import LabelSource
from soakwatch.record import RecordView
from soakwatch_model.event import Event
from soakwatch_model.roles import DUT

if TYPE_CHECKING:
    from soakwatch.engine.run_record import RunRecord

_MAX_OUTPUT = 64 << 10
_MAX_REASON = 300
_INSTALLED = "installed "
_ABSENT = ("not installed", "not-installed", "config-files", "no packages found")


class UnreadLabelError(Exception):
    """A label could not be read; the message says why."""


class LabelReader:
    """Reads the labels of a run beside its polls: call ``start`` once; ``finish`` waits for it, ``close`` ends it."""

    def __init__(self, site: LabelSite, out: RunRecord, now_ns: Callable[[], int]) -> None:
        self._site, self._out, self._now_ns = site, out, now_ns
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """True while labels are being read."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Starts reading, unless the record has the labels already (a resumed run)."""
        if any(label.source is not None for label in self._site.plan.labels):
            self._task = asyncio.create_task(self._read_all())

    async def finish(self) -> None:
        """Waits until every label is read or given up; each has its own time limit."""
        if self._task is not None:
            await self._task

    async def close(self) -> None:
        """Ends what still runs, without storing a label."""
        self._site.over.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _read_all(self) -> None:
        metas, labels = await asyncio.to_thread(_metas, self._site.folder), self._site.plan.labels
        if not metas.get(PENDING_KEY):
            return
        found = labels_in(metas.get(LABELS_KEY))
        wanted = [label for label in labels if label.source is not None]
        for label, text in zip(wanted, await asyncio.gather(*map(self._read, wanted)), strict=True):
            if text:
                found[label.name] = text
        if self._site.over.is_set():
            return
        ordered = {label.name: found[label.name] for label in labels if label.name in found}
        try:
            await self._out.queue.call(self._out.record.set_meta, LABELS_KEY, labels_json(ordered))
            await self._out.queue.call(self._out.record.set_meta, PENDING_KEY, "")
        except RecordError:
            return  # the disk is full; the polls report it

    async def _read(self, label: LabelPlan) -> str:
        """The text of a label; "" if it could not be read, which is recorded as an event."""
        try:
            return await self._site.text_of(label)
        except UnreadLabelError as error:
            reason = str(error)
        if not self._site.over.is_set():
            now_ns = self._now_ns()
            detail = {"label": label.name, "reason": reason}
            await self._out.notes.event(Event(LABEL_UNREAD, "", label.name, now_ns, now_ns, detail))
        return ""


@dataclass(frozen=True, slots=True)
class LabelSite:
    """Where labels are read: the plan with its targets, the run's folder, the commands' environment; ``over`` ends
    them."""

    plan: Plan
    folder: Path
    environment: Mapping[str, str]
    redaction: Redaction
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def text_of(self, label: LabelPlan) -> str:
        """The text of a label, read now if it must be. Raises UnreadLabelError, in a sentence without secrets."""
        if label.source is None:
            return label.text
        try:
            text = await (self._printed(label.source) if label.source.command else self._version(label.source))
            return label_text(label.name, text)
        except (UnreadLabelError, ValueError) as error:
            raise UnreadLabelError(one_line(self.redaction.text(str(error)), _MAX_REASON)) from None

    async def _printed(self, source: LabelSource) -> str:
        assert source.command is not None
        what = one_line(shlex.join(source.command), 80)
        result = await run_command(
            source.command, self.environment, source.timeout, self.over, self.redaction, _MAX_OUTPUT
        )
        if result.failure:
            started = not result.failure.startswith("cannot start")
            raise UnreadLabelError(f"{what}: {result.failure}" if started else result.failure)
        return found_in(result.output.decode("utf-8", "replace"), source.pattern, what)

    async def _version(self, source: LabelSource) -> str:
        from soakwatch.engine.hooks.capturing import host_of  # imports SSH, which few runs need

        assert source.package is not None
        target = _target(self.plan, source.target)
        about = f"{source.package} on {target.name}"
        opened = host_of(target, self.folder)
        if opened is None:
            raise UnreadLabelError(f"{about}: no command can be run there: it has no source ssh, and is elsewhere")
        try:
            async with asyncio.timeout(source.timeout), opened as host:
                output, failure = await host.run(version_command(source.package, _root(target)), source.timeout)
        except TimeoutError:
            raise UnreadLabelError(f"{about}: no answer within {show_seconds(source.timeout)}") from None
        except (HookFailedError, PlanError) as error:
            raise UnreadLabelError(f"{about}: {error}") from None
        return version_in(output.decode("utf-8", "replace"), source.package, target.name, failure)


async def labels_now(plan: Plan, folder: Path) -> list[tuple[LabelPlan, str, str]]:
    """Every label of a plan with its text, or why it cannot be read now."""
    site = LabelSite(plan, folder, {}, redaction_of(plan.text))

    async def one(label: LabelPlan) -> tuple[LabelPlan, str, str]:
        try:
            return label, await site.text_of(label), ""
        except UnreadLabelError as error:
            return label, "", str(error)

    return list(await asyncio.gather(*map(one, plan.labels)))


def found_in(output: str, pattern: str | None, what: str) -> str:
    """Finds a label in a command's output: the first group of ``pattern`` (or its whole match), or without a pattern
    the only line. Raises UnreadLabelError.

    >>> found_in("Cisco IOS\\nVersion 7.2(1), fc1", r"Version (\\S+),", "ssh"), found_in(" 7.2\\n", None, "cat")
    ('7.2(1)', '7.2')
    """
    if pattern is not None:
        found = user_regex(pattern, flags="m")
        match = found.search(output)
        if match is None:
            raise UnreadLabelError(f"{what}: nothing in its output matches {pattern!r}")
        return match[1] or "" if found.groups else match[0]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        raise UnreadLabelError(f"{what}: it printed nothing")
    if len(lines) > 1:
        raise UnreadLabelError(f"{what}: it printed {len(lines)} lines: give a pattern that finds the label in them")
    return lines[0]


def version_command(package: str, root: str = "/") -> str:
    """A shell command that prints a package's version by dpkg or rpm; ``root`` is the system's root folder."""
    name, beside = shlex.quote(package), root.rstrip("/")
    admin = f"--admindir={shlex.quote(f'{beside}/var/lib/dpkg')} " if beside else ""
    other = f"--root {shlex.quote(beside)} " if beside else ""
    return (
        f"dpkg-query {admin}-W -f='${{db:Status-Status}} ${{Version}}\\n' {name}"
        f" || rpm {other}-q --qf '{_INSTALLED}%{{VERSION}}-%{{RELEASE}}\\n' {name}"
    )


def version_in(output: str, package: str, target: str, failure: str = "") -> str:
    """Parses the output of ``version_command``. Raises UnreadLabelError.

    >>> version_in("installed 1.22.1-9\\n", "nginx", "dut")
    '1.22.1-9'
    """
    lines = [line.strip() for line in output.splitlines()]
    versions = list(dict.fromkeys(line.removeprefix(_INSTALLED) for line in lines if line.startswith(_INSTALLED)))
    if len(versions) > 1:
        raise UnreadLabelError(f"{package} on {target}: {len(versions)} versions are installed: {', '.join(versions)}")
    if versions:
        return versions[0]
    if any(sign in line for line in lines for sign in _ABSENT):
        raise UnreadLabelError(f"{package} is not installed on {target}")
    last = one_line(next((line for line in reversed(lines) if line), ""), 120)
    why = last or failure or "no answer"
    raise UnreadLabelError(f"{package} on {target}: neither dpkg-query nor rpm knows its version: {why}")


def _target(plan: Plan, name: str | None) -> TargetPlan:
    for target in plan.targets:
        if target.name == name or (name is None and target.role == DUT):
            return target
    raise UnreadLabelError("no target has the role dut: name the package's target")


def _root(target: TargetPlan) -> str:
    return next((str(getattr(s.config, "root", "/")) for s in target.sources if s.poller == "local"), "/")


def _metas(folder: Path) -> Mapping[str, str]:
    with RecordView.open(folder) as view:
        return view.metas()

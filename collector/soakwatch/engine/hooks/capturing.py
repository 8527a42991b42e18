"""A capture: where the evidence of a finding is collected, and how it is stored."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable
from pathlib import Path

from soakwatch.core.redaction import Redaction
from soakwatch.engine.hooks.evidence import Evidence, MatchedFile, OpenSource, gather
from soakwatch.engine.hooks.local_evidence import local_host
from soakwatch.engine.hooks.ssh_evidence import AUTO, ssh_host
from soakwatch.engine.hooks.trigger import HookFailedError, Trigger
from soakwatch.plan import Plan, TargetPlan
from soakwatch.plan.hook import CapturePlan
from soakwatch.record import Artifact, artifact_name
from soakwatch.record.queue import Notes
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch_model.roles import DUT


class Capturing:
    """The captures of a run; an unchanged file is fetched only once."""

    def __init__(self, plan: Plan, folder: Path, notes: Notes, redaction: Redaction) -> None:
        self._plan, self._folder, self._notes, self._redaction = plan, folder, notes, redaction
        self._taken: dict[str, set[MatchedFile]] = {}

    async def take(self, planned: CapturePlan, trigger: Trigger) -> list[str]:
        """Stores the evidence; returns sentences on what of it could not be had."""
        if planned.ssh is not None:
            name = trigger.target or planned.ssh.host
            return await self._from(name, ssh_host(planned.ssh, self._folder), planned, trigger)
        troubles = []
        for target in self._targets(trigger):
            source = host_of(target, self._folder)
            if source is None:
                why = "it has no source ssh; give capture the key ssh"
                troubles.append(f"nothing can be captured of {target.name}: {why}")
            else:
                troubles += await self._from(target.name, source, planned, trigger)
        return troubles

    def _targets(self, trigger: Trigger) -> Iterable[TargetPlan]:
        """The finding's target; if it has none, all devices under test."""
        named = [target for target in self._plan.targets if target.name == trigger.target]
        return named or [target for target in self._plan.targets if target.role == DUT]

    async def _from(self, name: str, source: OpenSource, planned: CapturePlan, trigger: Trigger) -> list[str]:
        troubles = []
        try:
            async with source as opened:
                taken, number = self._taken.setdefault(opened.name, set()), 0
                async for piece in gather(opened, planned.commands, planned.files, planned.timeout, taken):
                    number += 1
                    if piece.trouble:
                        troubles.append(piece.trouble if piece.file else f"{piece.of!r}: {piece.trouble}")
                    if piece.data or not piece.trouble:
                        troubles += await self._keep(name, number, piece, trigger)
        except HookFailedError as failure:
            troubles.append(str(failure))
        return troubles

    async def _keep(self, target: str, number: int, piece: Evidence, trigger: Trigger) -> list[str]:
        rule = trigger.on if trigger.finding is None else trigger.finding.rule
        folder = f"{trigger.stamp}-{rule}"
        if piece.file:
            name = artifact_name("capture", target, folder, f"{number:02d}-{posixpath.basename(piece.of)}")
            data = await asyncio.to_thread(self._redaction.file, piece.data)
            media = "application/octet-stream"
        else:
            name = artifact_name("capture", target, folder, f"{number:02d}-{piece.of[:60]}.txt")
            data = await asyncio.to_thread(self._redaction.output, piece.data)
            media = "text/plain"
        about = f"{piece.of[:200]} ({trigger.about})"
        trouble = await self._notes.keep(Artifact(name, media, data, trigger.time_ns, "capture", about))
        return [f"{name} was not kept: {trouble}"] if trouble else []


def host_of(target: TargetPlan, folder: Path) -> OpenSource | None:
    """Where a target's commands run: over its SSH, or locally if it is this machine; None if neither.

    ``folder`` is the run's.
    """
    for source in target.sources:
        config = source.config
        if isinstance(config, Access):
            return ssh_host(config, folder, getattr(config, "os", AUTO), getattr(config, "enable", None))
    return local_host() if any(source.poller == "local" for source in target.sources) else None

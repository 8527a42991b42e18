"""A capture: where the evidence of a finding is taken, and how it is kept."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable
from pathlib import Path

from soakwatch.core.redaction import Redaction
from soakwatch.engine.hooks.evidence import Found, Opened, Piece, gather
from soakwatch.engine.hooks.here import here
from soakwatch.engine.hooks.occasion import HookFailedError, Occasion
from soakwatch.engine.hooks.there import AUTO, there
from soakwatch.plan import Plan, TargetPlan
from soakwatch.plan.hook import CapturePlan
from soakwatch.record import Artifact, artifact_name
from soakwatch.record.queue import Notes
from soakwatch.sources.transport.ssh.access import Access


class Capturing:
    """The captures of a run; a file that was fetched once is not fetched again while it stays as it is."""

    def __init__(self, plan: Plan, folder: Path, notes: Notes, redaction: Redaction) -> None:
        self._plan, self._folder, self._notes, self._redaction = plan, folder, notes, redaction
        self._taken: dict[str, set[Found]] = {}

    async def take(self, planned: CapturePlan, occasion: Occasion) -> list[str]:
        """Keep the evidence; sentences on what of it could not be had."""
        if planned.ssh is not None:
            name = occasion.target or planned.ssh.host
            return await self._from(name, there(planned.ssh, self._folder), planned, occasion)
        troubles = []
        for target in self._targets(occasion):
            try:
                troubles += await self._from(target.name, self._place(target), planned, occasion)
            except HookFailedError as failure:
                troubles.append(str(failure))
        return troubles

    def _targets(self, occasion: Occasion) -> Iterable[TargetPlan]:
        """That of the finding; all devices under test where it is of none."""
        named = [target for target in self._plan.targets if target.name == occasion.target]
        return named or [target for target in self._plan.targets if target.role == "dut"]

    def _place(self, target: TargetPlan) -> Opened:
        for source in target.sources:
            config = source.config
            if isinstance(config, Access):
                return there(config, self._folder, getattr(config, "os", AUTO), getattr(config, "enable", None))
        if any(source.poller == "local" for source in target.sources):
            return here()
        raise HookFailedError(
            f"nothing can be captured of {target.name}: it has no source ssh; give capture the key ssh"
        )

    async def _from(self, name: str, place: Opened, planned: CapturePlan, occasion: Occasion) -> list[str]:
        troubles = []
        try:
            async with place as opened:
                taken, number = self._taken.setdefault(opened.name, set()), 0
                async for piece in gather(opened, planned.commands, planned.files, planned.timeout, taken):
                    number += 1
                    if piece.trouble:
                        troubles.append(piece.trouble if piece.file else f"{piece.of!r}: {piece.trouble}")
                    if piece.data or not piece.trouble:
                        troubles += await self._keep(name, number, piece, occasion)
        except HookFailedError as failure:
            troubles.append(str(failure))
        return troubles

    async def _keep(self, target: str, number: int, piece: Piece, occasion: Occasion) -> list[str]:
        rule = occasion.on if occasion.finding is None else occasion.finding.rule
        folder = f"{occasion.stamp}-{rule}"
        if piece.file:
            name = artifact_name("capture", target, folder, f"{number:02d}-{posixpath.basename(piece.of)}")
            data = await asyncio.to_thread(self._redaction.file, piece.data)
            media = "application/octet-stream"
        else:
            name = artifact_name("capture", target, folder, f"{number:02d}-{piece.of[:60]}.txt")
            data = await asyncio.to_thread(self._redaction.output, piece.data)
            media = "text/plain"
        about = f"{piece.of[:200]} ({occasion.about})"
        trouble = await self._notes.keep(Artifact(name, media, data, occasion.time_ns, "capture", about))
        return [f"{name} is not kept: {trouble}"] if trouble else []

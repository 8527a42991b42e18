"""Judging while the run goes on, in a process of its own: polls are not delayed and the collector stays small.

A judgement reads the whole record so far. So that a long run is not spent on judging it, the next one waits ten times
as long as the last one took, and at least a minute: live judging costs at most a tenth of one core.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from pathlib import Path

from soakwatch.complain import Complaint
from soakwatch.record import finding_from_json
from soakwatch_rules.rule import Finding

JUDGE_EVERY_S = 60.0
REST_PER_WORK = 10.0


class LiveJudge:
    """The newest findings of a run that goes on."""

    def __init__(self, folder: Path, now_ns: Callable[[], int]) -> None:
        self._folder, self._now_ns = folder, now_ns
        self._due_ns = now_ns() + int(JUDGE_EVERY_S * 1e9)
        self._complaint = Complaint("live judging")
        self.findings: tuple[Finding, ...] = ()
        self.judged_ns: int | None = None

    async def judge_when_due(self) -> bool:
        """Judge if it is time; True if there are new findings."""
        if self._now_ns() < self._due_ns:
            return False
        judged_ns, began = self._now_ns(), time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "soakwatch.judging", str(self._folder), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        self._due_ns = self._now_ns() + int(1e9 * max(JUDGE_EVERY_S, REST_PER_WORK * (time.monotonic() - began)))
        if process.returncode != 0:
            self._complaint.failed(judged_ns, f"the judge ended with exit code {process.returncode}; the run goes on")
            return False
        self._complaint.well()
        self.findings = tuple(finding_from_json(line) for line in output.decode().splitlines())
        self.judged_ns = judged_ns
        return True

"""Freezes the baseline of a run after its phase, in a child process so that no poll is delayed.

``python -m soakwatch.engine.baseline_freeze FOLDER`` prints the baseline to store, or nothing if it is stored already.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.supervised_child import AsyncChild, python_module
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.judge.baseline import META, PHASE, baseline_window, freeze_baseline, parse_baseline
from soakwatch.record import Record, RecordView

_AFTER_NS = 5_000_000_000  # the last polls of the phase may still be running when it ends
_MAX_S = 600.0

ComputesBaseline = Callable[[Path], Awaitable[str]]


class Freezing:
    """Freezes the baseline of a running run: call ``check`` regularly; ``keep`` stores it in the record.

    If that fails here, ``freeze`` does it at the end of the run.
    """

    def __init__(self, folder: Path, keep: Callable[[str], Awaitable[None]], compute: ComputesBaseline) -> None:
        self._folder, self._keep, self._compute = folder, keep, compute
        self._frozen_ns: int | None = None  # end of the baseline phase, UTC ns
        self._task: asyncio.Task[None] | None = None

    def check(self, phasing: PhaseTimeline, now_ns: int) -> None:
        """Starts freezing once a baseline phase is over."""
        now = phasing.now
        ends = [
            s.window.end_ns
            for s in phasing.stretches
            if now is not None and s.name == PHASE and s.window.end_ns <= now.window.begin_ns
        ]
        if not ends or ends[-1] == self._frozen_ns or now_ns < ends[-1] + _AFTER_NS:
            return
        if self._task is None or self._task.done():
            self._frozen_ns = ends[-1]
            self._task = asyncio.create_task(self._freeze())

    async def close(self) -> None:
        """Cancels a freezing in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _freeze(self) -> None:
        with suppress(OSError, TimeoutError):
            baseline = await self._compute(self._folder)
            if baseline:
                await self._keep(baseline)


async def baseline_in_process(folder: Path) -> str:
    """The baseline to store, computed by a child process; "" if there is nothing to store.

    Raises OSError and TimeoutError.
    """
    child = await AsyncChild.start(python_module(__name__, str(folder)))
    baseline = (await child.read_all(_MAX_S)).strip()
    return baseline if child.exit_code == 0 else ""


def compute_baseline(folder: Path) -> str | None:
    """The baseline that the record lacks; None if it has it or the run has none. Raises RecordError."""
    from soakwatch.judge.record_verdict import recorded_rules
    from soakwatch.plan.rule_plan import planned_rules

    with RecordView.open(folder) as view:
        own = baseline_window(view.phases())
        kept = parse_baseline(view.meta(META))
        if own is None or (kept is not None and kept.window == own):
            return None
        snapshot = freeze_baseline(view, planned_rules(recorded_rules(view)))
    return None if snapshot is None else snapshot.text()


def freeze(record: Record, folder: Path) -> None:
    """Freezes the baseline of a run that has ended, unless that is done. Raises RecordError."""
    text = compute_baseline(folder)
    if text is not None:
        record.set_meta(META, text)


def main() -> int:
    """Prints the baseline to store."""
    os.nice(10)
    try:
        text = compute_baseline(Path(sys.argv[1]))
    except SoakwatchError:
        return 1
    if text is not None:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

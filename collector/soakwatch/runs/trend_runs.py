"""What a trend reads of each run: when it was, of what, how it ended, and its key figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.labels import LABELS_KEY, RELEASE, labels_in
from soakwatch.judge.proved import ProvedMtbf, proved_in
from soakwatch.record import RecordView
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.catalog import folders_of
from soakwatch.runs.key_figures import FigureSpec, FigureValue, figure_of, standard_figures
from soakwatch.runs.read_once import ReadOnce
from soakwatch.runs.release_under_test import release_in

CELL = "cell"
"""The label of the cell of a campaign: runs of different cells of a plan are no repetitions of one another."""
BY_TIME = ("day", "week", "month", "run")
_MOST_KEPT = 5000
_BELOW = "runs"  # where a campaign's folder holds its runs


@dataclass(frozen=True, slots=True)
class TrendRun:
    """One run that was judged. ``labels`` include its release: the label, otherwise what the devices reported.
    ``values`` are its figures by their expressions, ``proofs`` what its hours prove of each device."""

    folder: Path
    plan: str
    begin_ns: int
    verdict: str
    labels: Mapping[str, str]
    specs: tuple[FigureSpec, ...]
    values: Mapping[str, FigureValue]
    proofs: tuple[ProvedMtbf, ...] = ()

    @property
    def cell(self) -> str:
        """Its cell of a campaign, or nothing."""
        return self.labels.get(CELL, "")

    def group(self, by: str) -> str:
        """The group of the run: the text of a label, or the day, week (ISO 8601) or month of its begin (UTC). "" where
        it has no such label."""
        moment = datetime.fromtimestamp(self.begin_ns * 1e-9, UTC)
        if by == "week":
            year, week, _ = moment.isocalendar()
            return f"{year}-W{week:02d}"
        if by in {"day", "month"}:
            return moment.strftime("%Y-%m-%d" if by == "day" else "%Y-%m")
        return self.folder.name if by == "run" else self.labels.get(by, "")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that is in no trend, and why."""

    folder: Path
    reason: str


def trend_folders(runs: Path) -> list[Path]:
    """The folders of the runs below a folder, or below ``runs`` in it, where a campaign has them; oldest first."""
    return folders_of(runs) or folders_of(runs / _BELOW)


def read_trend_run(folder: Path, wanted: Sequence[FigureSpec] = ()) -> TrendRun | LeftOut:
    """Reads a run with the figures in ``wanted``, or with the usual ones that it has. LeftOut with the reason where it
    is not over, was not judged, or cannot be read."""
    try:
        with RecordView.open(folder) as view:
            metas = view.metas()
            state = lifecycle_of(metas, folder)
            verdict = metas.get("verdict", "")
            if state != "ended" or not verdict:
                return LeftOut(folder, state if state != "ended" else "not judged")
            labels = labels_in(metas.get(LABELS_KEY))
            release = release_in(view)
            specs = tuple(wanted) or standard_figures(view)
            return TrendRun(
                folder,
                metas.get("run") or folder.name,
                view.window().begin_ns,
                verdict,
                {**labels, RELEASE: release} if release else labels,
                specs,
                {spec.text: figure_of(view, spec) for spec in specs},
                proved_in(view),
            )
    except (RecordError, OSError) as error:
        return LeftOut(folder, str(error).replace(f"{folder}/", ""))


class TrendReader:
    """Caches the runs of trends. Thread-safe."""

    def __init__(
        self,
        read: Callable[[Path, Sequence[FigureSpec]], TrendRun | LeftOut] = read_trend_run,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._now_s = read, now_s
        self._kept = ReadOnce[TrendRun | LeftOut](_MOST_KEPT)

    def runs(
        self, folders: Sequence[Path], wanted: Sequence[FigureSpec], within_s: float
    ) -> tuple[list[TrendRun | LeftOut], int]:
        """What is known of these runs in order, and how many are still unread. Each call reads at least one;
        reading that takes longer than ``within_s`` goes on at the next call."""
        texts = tuple(spec.text for spec in wanted)
        end_s = self._now_s() + within_s
        known: dict[Path, TrendRun | LeftOut] = {}
        read = unread = 0
        for folder in reversed(folders):  # the newest first
            kept = self._kept.known(folder, texts)
            if kept is None and read and self._now_s() >= end_s:
                unread += 1
                continue
            read += kept is None
            known[folder] = kept or self._kept.read(partial(self._read, folder, wanted), folder, texts)
        return [known[folder] for folder in folders if folder in known], unread

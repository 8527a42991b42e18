"""Serves the runs in a folder."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from soakwatch.campaign.folder import RUNS, campaigns_in
from soakwatch.core.errors import RecordError
from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import User
from soakwatch.runs.catalog import LAST, RECORD, STAMP, find_run, list_runs, unreadable
from soakwatch.runs.summary import RunSummary, summary_of
from soakwatch.web.json_record import line_data
from soakwatch.web.summaries import Summaries

_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")


class RunFolder:
    """The runs in one folder. A run's name is that of its folder, never a path.

    ``lab`` has the queue and the audit of the folder, with the dispatcher that works on it; None where it is only
    viewed. ``opens`` gives them as soon as there is a need, which is asked until there is: somebody got a token.
    """

    def __init__(
        self,
        runs: Path,
        lab: tuple[Lab, Dispatcher] | None = None,
        opens: Callable[[], tuple[Lab, Dispatcher] | None] = lambda: None,
    ) -> None:
        self._runs = runs.absolute()
        self._lab, self._opens, self._opening = lab, opens, threading.Lock()
        self.summaries = Summaries(self._runs, _summary)

    @property
    def lab(self) -> tuple[Lab, Dispatcher] | None:
        """Queue and audit, and what works on them; None where nobody has a role. Raises LabError if they cannot be
        opened."""
        with self._opening:
            if self._lab is None:
                self._lab = self._opens()
            return self._lab

    @property
    def path(self) -> Path:
        """The folder that contains the runs."""
        return self._runs

    def folder(self, name: str) -> Path | None:
        """The folder of a run by name, or ``last``; ``CAMPAIGN:RUN`` is a run of a campaign that belongs here. Either
        may be preceded by the start time, as in databases."""
        if name == LAST:
            try:
                return find_run(LAST, self._runs)
            except RecordError:
                return None
        if (folder := self._named(name)) is not None:
            return folder
        return self._named(STAMP.sub("", name))  # the name in a database begins with the start time

    def _named(self, name: str) -> Path | None:
        campaign, colon, own = name.partition(":")
        if not colon:
            return _run_in(self._runs, name)
        place = campaigns_in(self._runs).get(campaign)
        return None if place is None else _run_in(place / RUNS, own)

    def listed(self) -> list[Mapping[str, object]]:
        """Every run, oldest first."""
        return [line_data(line) for line in list_runs(self._runs)]

    def now_ns(self) -> int:
        """The wall clock, since a run's clock may be in another process."""
        return time.time_ns()

    def audit(self, user: User, action: str, run: str) -> None:
        """Keep what a user did to a run."""
        if (lab := self.lab) is not None:
            lab[0].record(user, action, run)

    @property
    def single(self) -> bool:
        """Always false: there may be several runs."""
        return False


def _run_in(runs: Path, name: str) -> Path | None:
    """The folder of this name below ``runs`` if it has a record; never outside of ``runs``."""
    if _NAME.fullmatch(name) is None or name in {".", ".."}:
        return None
    folder = runs / name
    return folder if (folder / RECORD).is_file() else None


def _summary(folder: Path) -> RunSummary:
    if _NAME.fullmatch(folder.name) is None:
        return RunSummary(
            unreadable(folder, "the name of its folder cannot be used in a URL: use letters, digits, '.', '_', '-'")
        )
    return summary_of(folder)

"""What is known of a run while it goes on: what every display shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.errors import EXIT_BROKEN, EXIT_INCONCLUSIVE
from soakwatch.judge.rates import Rate
from soakwatch.judge.verdict import EXIT_CODES
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import PollOutcome

JUDGING = "the run has ended and is being judged"

ENDS_IT = "Ctrl-C ends the run properly and judges what is there"
"""What the keys of who started a run do."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The account of one source so far.

    ``silent_s`` is for how long none of the polls that were due was answered, in seconds; None if the last one was, or
    nobody has counted.
    """

    label: str
    outcomes: Counter[PollOutcome]
    silent_s: float | None = None

    @property
    def due(self) -> int:
        """Polls that were due."""
        return self.outcomes.total()

    @property
    def got(self) -> int:
        """Polls that were answered."""
        return self.outcomes[PollOutcome.OK]

    @property
    def failed(self) -> int:
        """Polls that brought none, for whatever reason."""
        return self.due - self.got


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a run at one moment. ``load`` holds the newest values of the generators by metric and object,
    without those of a generator that no longer reports; ``doing`` says what still runs after the end, and ``behind``
    has a sentence about each database that is missing samples.

    ``judged_at_s`` is when the live judge last finished, in seconds of the run; ``rates`` are the growth rates so far.
    ``standing`` is waiting, running, ended or broken off; ``phase_position`` is which phase it is in ("2 of 4"),
    ``coming`` what is planned next and when, ``own`` the state of the monitor itself, ``keys`` what the keys do; all
    in words, "" if unknown. ``clock_steps`` has a sentence for each time that the monitor's wall clock was set.
    ``figures`` has a line a target on its memory, CPU, loss and latency.
    """

    run: str
    phase: str
    elapsed_s: float
    left_s: float
    sources: tuple[SourceStatus, ...]
    load: Mapping[tuple[str, str], float]
    findings: tuple[Finding, ...]
    judged_at_s: float | None
    events: tuple[str, ...]
    trouble: str | None
    doing: str = ""
    behind: tuple[str, ...] = ()
    standing: str = "running"
    phase_position: str = ""
    coming: str = ""
    own: str = ""
    keys: str = ENDS_IT
    rates: tuple[Rate, ...] = ()
    clock_steps: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """One moment of a run. ``over`` says that nothing more will come of it; ``verdict`` is None where there is none."""

    status: Status
    over: bool
    verdict: str | None = None
    reason: str = ""
    report: str = ""

    @property
    def exit_code(self) -> int:
        """That of the verdict; 3 where nothing is decided yet, 4 where the monitor broke off."""
        if self.verdict is not None:
            return EXIT_CODES[Outcome(self.verdict)]
        return EXIT_BROKEN if self.status.standing == "broken off" else EXIT_INCONCLUSIVE

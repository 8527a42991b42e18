"""A run that a script is attached to: it reports events, and asks for the findings so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, TypedDict, Unpack

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.units import seconds
from soakwatch.record import RecordView, StoredEvent
from soakwatch.record.writer_lock import is_written
from soakwatch.runs.mark_event import EventRefusedError, EventRequest, moment, record_event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.traits import Judges, traits_of

RUN_VARIABLE = "SOAKWATCH_RUN"
PATIENCE_S = 10.0
"""How long a reader waits for the record to reach the moment that it asks for; a run commits each second."""
_CHECK_EVERY_S = 0.25
_JUDGED = frozenset({Outcome.PASS, Outcome.WARN, Outcome.FAIL})
_MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class InterimVerdict:
    """What is said of a run, or of a part of it: ``outcome`` (fail, inconclusive, warn, pass), why, and by what.

    ``until_ns`` is how far the record reached, None if it is empty.
    """

    outcome: Outcome
    reason: str
    findings: tuple[Finding, ...] = ()
    until_ns: int | None = None

    def during(self, begin_ns: int, end_ns: int) -> InterimVerdict:
        """What of it concerns a stretch of time, as far as can be said now.

        A finding concerns it if one of its marks lies in it; one without marks (a leak, an announcement that was not
        kept) if its window has that time in it, since it may have been then. Pass needs a rule that looked
        at the whole stretch and judged the device; accounts of polls alone clear nobody.
        """
        concerned = [finding for finding in self.findings if _concerns(finding, begin_ns, end_ns)]
        for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN):
            alarms = [
                finding
                for finding in concerned
                if finding.outcome is outcome and (outcome is Outcome.FAIL or finding.marks)
            ]
            if alarms:
                return InterimVerdict(outcome, _reasons(alarms), tuple(alarms), self.until_ns)
        cleared = [
            finding
            for finding in self.findings
            if finding.outcome in _JUDGED
            and traits_of(finding.rule).judges is Judges.DEVICE
            and _covers(finding.window, begin_ns, end_ns)
        ]
        if self.until_ns is None or self.until_ns < end_ns:
            return InterimVerdict(Outcome.INCONCLUSIVE, "the record does not reach its end yet", (), self.until_ns)
        if not cleared:
            return InterimVerdict(Outcome.INCONCLUSIVE, "no rule has enough data of it yet", (), self.until_ns)
        rules = len({finding.rule for finding in cleared})
        reason = f"nothing failed in it, {rules} rule{'s' if rules > 1 else ''} judged it"
        return InterimVerdict(Outcome.PASS, reason, tuple(cleared), self.until_ns)


class RunClient(Protocol):
    """How a run is reached: by its folder, or by a URL."""

    @property
    def name(self) -> str:
        """The run's name, for people."""
        ...

    def tell(self, ask: EventRequest) -> StoredEvent:
        """Keep an event. Raises EventRefusedError, RecordError, SoakwatchError."""
        ...

    def verdict_so_far(self, until_ns: int | None) -> InterimVerdict:
        """What is said of the run so far, when its record has reached a time (with patience)."""
        ...


@dataclass(frozen=True, slots=True)
class LocalRun:
    """A run on this machine, by its folder or record file."""

    path: Path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name if self.path.is_dir() else self.path.parent.name

    def tell(self, ask: EventRequest) -> StoredEvent:
        """Keep an event in its record. Raises EventRefusedError and RecordError."""
        return record_event(self.path, ask, time.time_ns())

    def verdict_so_far(self, until_ns: int | None) -> InterimVerdict:
        """The verdict of what is recorded, judged now: seconds for a run of days. Raises RecordError."""
        from soakwatch.judge.record_verdict import judge_record

        wait_until_recorded(lambda: self._last_ns() if is_written(self.path) else until_ns, until_ns)
        with RecordView.open(self.path) as view:
            if not view.counts().polls:
                return InterimVerdict(Outcome.INCONCLUSIVE, "the record holds no poll yet")
            verdict, last_ns = judge_record(view), view.last_ns
        return InterimVerdict(verdict.outcome, verdict.reason, verdict.findings, last_ns)

    def _last_ns(self) -> int | None:
        with RecordView.open(self.path) as view:
            return view.last_ns


@dataclass(slots=True)
class OpenEvent:
    """An event within its block: ``labels`` that are put here are kept with it when it ends."""

    kind: str
    labels: dict[str, str] = field(default_factory=dict)
    stored: StoredEvent | None = None  # as the record has it; None where there is no run


class EventFields(TypedDict, total=False):
    """What an event can say besides its kind.

    ``target`` and ``object`` are what it happens to ("" = all of it), ``expect`` what it brings (``{"reboot": 1}``),
    ``within`` how long after its begin all of that must be over (``"5m"``, or seconds).
    """

    target: str
    object: str
    expect: Mapping[str, int] | None
    within: str | float | None
    labels: Mapping[str, str] | None


class SoakRun:
    """A run to which events are reported. Safe to keep: nothing is open between two calls."""

    def __init__(self, client: RunClient) -> None:
        self._client = client
        self.reported: list[StoredEvent] = []
        """What was reported here, in order; an event that ended stands where it began."""

    @property
    def name(self) -> str:
        """The run's name."""
        return self._client.name

    def event(self, kind: str, **fields: Unpack[EventFields]) -> EventBlock:
        """A block that is an event: it begins with it and ends with it, however it ends.

        If the block raises, the label ``error`` has the exception's type. Raises EventRefusedError.
        """
        return EventBlock(self, _request("begin", kind, **fields))

    def mark(
        self,
        kind: str,
        at: datetime | str | None = None,
        until: datetime | str | None = None,
        **fields: Unpack[EventFields],
    ) -> StoredEvent:
        """A moment (default: now), or with ``until`` a stretch that is over. Raises EventRefusedError."""
        return self.tell(_request("mark", kind, _ns(at), _ns(until), **fields))

    def begin(self, kind: str, **fields: Unpack[EventFields]) -> StoredEvent:
        """Begin an event that is ended later. Raises EventRefusedError."""
        return self.tell(_request("begin", kind, **fields))

    def end(
        self,
        kind: str,
        *,
        target: str = "",
        object: str = "",  # noqa: A002
        labels: Mapping[str, str] | None = None,
    ) -> StoredEvent:
        """End the newest open event of a kind, whoever began it. Raises EventRefusedError."""
        return self.tell(EventRequest("end", kind, None, None, target, object, labels=labels or {}))

    def verdict(self, until_ns: int | None = None) -> InterimVerdict:
        """What is said of the run so far, judged when its record has reached a time (UTC ns; default: as it is now).

        ``during`` of the answer is what concerns a stretch of it. Rules that wait for something after an event (the
        device's return, a deadline) cannot have said it yet. Raises RecordError, SoakwatchError.
        """
        return self._client.verdict_so_far(until_ns)

    def tell(self, ask: EventRequest) -> StoredEvent:
        """Record an event, and remember it in ``reported``."""
        stored = self._client.tell(ask)
        indexes = [index for index, other in enumerate(self.reported) if other.id == stored.id]
        if indexes:
            self.reported[indexes[0]] = stored
        else:
            self.reported.append(stored)
        return stored


class EventBlock:
    """The block of ``SoakRun.event``; without a run nothing is recorded."""

    def __init__(self, run: SoakRun | None, ask: EventRequest) -> None:
        self._run, self._ask = run, ask
        self._open = OpenEvent(ask.kind)

    def __enter__(self) -> OpenEvent:
        if self._run is not None:
            self._open.stored = self._run.tell(self._ask)
        return self._open

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if self._run is not None:
            labels = {**self._open.labels} if kind is None else {"error": kind.__name__, **self._open.labels}
            ask = replace(self._ask, action="end", expect={}, within_s=None, labels=labels)
            try:
                self._open.stored = self._run.tell(ask)
            except SoakwatchError as trouble:
                if error is None:
                    raise
                error.add_note(f"soakwatch: the end of {self._ask.kind} was not recorded: {trouble}")
        return False


def run_meant(environment: Mapping[str, str]) -> str | None:
    """The run that the environment names: the one whose script this is, else the one that a person exported."""
    return environment.get(RUN_VARIABLE) or None


def wait_until_recorded(last_ns: Callable[[], int | None], until_ns: int | None) -> None:
    """Wait until a record has reached a time; no longer than ``PATIENCE_S``."""
    deadline = time.monotonic() + PATIENCE_S
    while until_ns is not None and (last_ns() or 0) < until_ns and time.monotonic() < deadline:
        time.sleep(_CHECK_EVERY_S)


def _concerns(finding: Finding, begin_ns: int, end_ns: int) -> bool:
    if not finding.marks:
        return finding.window.begin_ns < end_ns and begin_ns < finding.window.end_ns
    return any(mark.begin_ns <= end_ns and begin_ns <= _over(mark.begin_ns, mark.end_ns) for mark in finding.marks)


def _over(begin_ns: int, end_ns: int | None) -> int:
    return begin_ns if end_ns is None else end_ns


def _covers(window: Window, begin_ns: int, end_ns: int) -> bool:
    return window.begin_ns <= begin_ns and window.end_ns >= end_ns


def _reasons(findings: list[Finding]) -> str:
    reasons = [f"{finding.rule}: {finding.sentence.rstrip('.')}" for finding in findings[:_MAX_REASONS]]
    more = len(findings) - len(reasons)
    return "; ".join(reasons) + (f"; and {more} more" if more else "")


def _request(
    action: Literal["begin", "mark"],
    kind: str,
    at_ns: int | None = None,
    until_ns: int | None = None,
    *,
    target: str = "",
    object: str = "",  # noqa: A002 - the word of a series
    expect: Mapping[str, int] | None = None,
    within: str | float | None = None,
    labels: Mapping[str, str] | None = None,
) -> EventRequest:
    return EventRequest(action, kind, at_ns, until_ns, target, object, expect or {}, _seconds(within), labels or {})


def _seconds(within: str | float | None) -> float | None:
    if within is None or (isinstance(within, int | float) and not isinstance(within, bool)):
        return within
    try:
        return seconds(within)
    except ValueError as error:
        raise EventRefusedError(f"within: {error}") from None


def _ns(moment_given: datetime | str | None) -> int | None:
    if moment_given is None:
        return None
    if isinstance(moment_given, datetime):
        moment_given = (moment_given.replace(tzinfo=UTC) if moment_given.tzinfo is None else moment_given).isoformat()
    try:
        return moment(moment_given)
    except ValueError as error:
        raise EventRefusedError(str(error)) from None

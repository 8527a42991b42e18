"""What of a run is worth a closer look, and in which words it is told: the same event is told by several."""

from __future__ import annotations

from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.finding import Finding, Outcome

WINDOW = "recorder.window"
"""The event that says that a flight recorder's samples are in the record: of a stretch of time, and why."""

IDENTITY = "device.identity"
"""The event that tells what a source talks to: when it was told first, and again with ``changed`` when it changed."""

REACH_NS = 30_000_000_000
"""A closer look begins so long before what happened, and ends so long after."""

CLOCK_STEP = "clock.step"
"""The event that says that the wall clock of the monitor was set, by so many ``seconds``, forward or back (-)."""

SETUP_CHANGE = "setup.change"
"""The event that says what of a target is not as it was when the run began: ``old -> new`` by path."""

LABEL_UNREAD = "label.unread"
"""The event that says that a label of the run could not be read, and why."""

START_WARNING = "start.warning"
"""The event that says what the first polls of a run showed to be missing."""

TERMINAL_LOST = "terminal.lost"
"""The event that says that the terminal of a run is gone: nothing more was shown, and nothing else changed."""

RECORD_RESCUED = "record.rescued"
"""The event that says that the file of a record was taken away while it was written, and where all of it is now."""

STOP, ACKNOWLEDGED = "run.stop", "finding.acknowledged"
"""What people tell a run of itself: that it shall end, and that they know of a finding."""

DRILL = "drill.fault"
"""What a drill breaks, from when to when: no rule is to know of it, else it would be explained."""

FindingKey = tuple[str, str, str]
"""Rule, metric and object of a finding: by these a capture names the finding that it was made for."""

_MAX_LENGTH = 120


def is_internal(kind: str) -> bool:
    """Whether events of this kind tell of the watching, or of what was there before, and of nothing that happened.

    >>> is_internal("device.identity"), is_internal("source.spool.lost"), is_internal("link.down")
    (True, True, False)
    """
    known = event_kind(kind)
    return known.internal or known.admin


def matters(kind: str) -> bool:
    """Whether an event of this kind is to be judged at once: something happened, or was done, to a target.

    >>> matters("process.restart"), matters("phase.turn"), matters("source.spool.lost")
    (True, False, False)
    """
    return not (is_internal(kind) or kind.startswith("phase."))


def is_run_admin(kind: str) -> bool:
    """Whether events of this kind tell what became of scripts, hooks and notifications, or what people said of the run
    itself: nothing that was done to a target, so no rule is to look at them.

    >>> is_run_admin("hook.failed"), is_run_admin("event.skipped"), is_run_admin("failover")
    (True, True, False)
    """
    return event_kind(kind).admin


def words_of(kind: str, subject: str) -> str:
    """An event in a few words.

    >>> words_of("link.down", "interface=eth0"), words_of("failover", "")
    ('link.down interface=eth0', 'failover')
    """
    return short(f"{kind} {subject}".strip())


def of_finding(finding: Finding) -> str:
    """What a finding is about, in a few words."""
    return short(" ".join(part for part in (finding.rule, finding.metric, finding.object) if part))


def key_of(finding: Finding) -> FindingKey:
    """What a capture names a finding by, whatever its outcome becomes."""
    return finding.rule, finding.metric, finding.object


def capture_reason(finding: Finding, outcome: Outcome) -> str:
    """Why something was captured for a finding that had this outcome then, in words without what divides reasons."""
    return f"{outcome.value}: {of_finding(finding)}"


def short(text: str) -> str:
    """One line that is not long, without what divides reasons."""
    line = " ".join(text.replace(";", ",").split())
    return line if len(line) <= _MAX_LENGTH else f"{line[: _MAX_LENGTH - 1]}…"

"""The kinds of events with a meaning to Soakwatch, and the words for events and findings that several parts share."""

from __future__ import annotations

from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.wording.quantities import cut_to

WINDOW = "recorder.window"
"""Event: the record holds detail of a flight recorder, for a time span, with the reason."""

IDENTITY = "device.identity"
"""Event: what device a source talks to; again, with ``changed``, if that changed."""

REACH_NS = 30_000_000_000
"""Detail is captured from so long before a moment until so long after it."""

CLOCK_STEP = "clock.step"
"""Event: the monitor's wall clock was set, by ``seconds`` forward or back (-)."""

SETUP_CHANGE = "setup.change"
"""Event: what of a target differs from the begin of the run, ``old -> new`` by path."""

LABEL_UNREAD = "label.unread"
"""Event: a label of the run could not be read, and why."""

START_WARNING = "start.warning"
"""Event: what the first polls of a run showed to be missing."""

TERMINAL_LOST = "terminal.lost"
"""Event: the terminal of a run is gone; it shows nothing more but goes on."""

RECORD_RESCUED = "record.rescued"
"""Event: the record's file was taken away during the run, and where the record is now."""

RECORD_DAMAGED = "record.damaged"
"""Event: another program took polls that were stored out of the record during the run, and how many."""

STOP, ACKNOWLEDGED = "run.stop", "finding.acknowledged"
"""What people tell a run: to end, and that they know of a finding."""

DECIDED = "run.decided"
"""Event: the run ended because every required rule had its final answer; only the monitor records it."""

RUN_ACTION = "run.action"
"""Event: what a user of a lab server did to the run; only the server records it."""

LIVE_FORGOT = "live.forgot"
"""Event: the live judge forgot the oldest of what is too much to remember; ``text`` says what, in a sentence."""

DRILL = "drill.fault"
"""Event: what a drill breaks, from when to when; no rule may use it, or the fault would count as explained."""

FindingKey = tuple[str, str, str]
"""Rule, metric and object of a finding, by which a capture refers to it."""

_MAX_LENGTH = 120


def is_internal(kind: str) -> bool:
    """True for events about the monitoring itself or about the initial state, not about something that happened.

    >>> is_internal("device.identity"), is_internal("source.spool.lost"), is_internal("link.down")
    (True, True, False)
    """
    known = event_kind(kind)
    return known.internal or known.admin


def matters(kind: str) -> bool:
    """True for events to judge at once: something happened, or was done, to a target.

    >>> matters("process.restart"), matters("phase.turn"), matters("source.spool.lost")
    (True, False, False)
    """
    return not (is_internal(kind) or kind.startswith("phase."))


def is_run_admin(kind: str) -> bool:
    """True for events about scripts, hooks and notifications, or what people told the run: nothing was done to a
    target, so rules ignore them.

    >>> is_run_admin("hook.failed"), is_run_admin("event.skipped"), is_run_admin("failover")
    (True, True, False)
    """
    return event_kind(kind).admin


def event_name(kind: str, subject: str) -> str:
    """An event in a few words.

    >>> event_name("link.down", "interface=eth0"), event_name("failover", "")
    ('link.down interface=eth0', 'failover')
    """
    return short(f"{kind} {subject}".strip())


def finding_words(finding: Finding) -> str:
    """A finding's rule, metric and object in one line."""
    return short(" ".join(part for part in (finding.rule, finding.metric, finding.object) if part))


def key_of(finding: Finding) -> FindingKey:
    """How a capture refers to a finding, whatever its outcome becomes."""
    return finding.rule, finding.metric, finding.object


def capture_reason(finding: Finding, outcome: Outcome) -> str:
    """Why something was captured for a finding with this outcome; has no ``;``, which separates reasons."""
    return f"{outcome.value}: {finding_words(finding)}"


def short(text: str) -> str:
    """One line of at most 120 characters, without ``;``, which separates reasons."""
    return cut_to(" ".join(text.replace(";", ",").split()), _MAX_LENGTH)

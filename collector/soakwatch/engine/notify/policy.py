"""Which failures are sent during a run: the first at once, further ones summed up, and withdrawals of those that did
not last. No more: someone notified fifty times in a night stops reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch.core.formatting import subject
from soakwatch.record.findings import identity_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.causes.moments import since_ns

SENT, FAILED = "notify.sent", "notify.failed"
"""Kinds of the events that say what became of a notification."""
PAUSE_NS = 30 * 60 * 10**9
"""Minimum pause between summaries of further failures, and before a failed message is tried again."""
MAX_SUMMARIES = 20
"""The last one says that no more come before the end of the run."""


@dataclass(frozen=True, slots=True)
class News:
    """What there is to report.

    ``kind``: "failure" is the first one (``findings`` starts with it), "withdrawn" that it no longer holds, "more" what
    else changed since the last message: ``findings`` fail newly, ``gone`` (in words) fail no more. ``standing`` counts
    all that fail now; if ``last``, nothing more is sent before the end.
    """

    kind: str
    findings: tuple[Finding, ...]
    gone: tuple[str, ...]
    standing: int
    last: bool = False


class FailurePolicy:
    """Compares what the recipient knows with what fails now: ``news`` returns the difference if worth a message.

    A message counts only once ``sent`` reports that it arrived; until then nothing else is sent.
    """

    def __init__(self, recorded: Iterable[Event] = ()) -> None:
        self._first = ""  # identity of the first failure that was sent; _about is the same in words
        self._about = ""
        self._believed: dict[str, str] = {}  # identity -> words of what fails, as the recipient knows
        self._withdrawn = False
        self._summaries = 0
        self._quiet_until_ns = 0
        self._missed = False  # True if the last message could not be sent
        self._under_way: tuple[News, dict[str, str]] | None = None
        for event in recorded:
            self._remember(event)

    def news(self, findings: Iterable[Finding], now_ns: int, *, final: bool = False) -> News | None:
        """The news if findings changed enough for a message; ``final`` if the run is over."""
        if self._under_way is not None:
            return None
        failing = {identity_of(f): f for f in findings if f.outcome is Outcome.FAIL}
        news = self._news(failing, now_ns, final=final)
        if news is not None:
            self._under_way = news, {identity: finding_name(f) for identity, f in failing.items()}
        return news

    def sent(self, now_ns: int, *, well: bool) -> None:
        """Takes the outcome of the message under way."""
        if self._under_way is None:
            return
        (news, believed), self._under_way = self._under_way, None
        self._quiet_until_ns = now_ns + PAUSE_NS
        self._summaries += news.kind == "more"
        self._missed = not well
        if not well:
            return
        if news.kind == "failure":
            self._first, self._about = identity_of(news.findings[0]), finding_name(news.findings[0])
        if news.kind == "withdrawn":
            self._withdrawn = True
            self._believed.pop(self._first, None)
        else:
            self._believed = believed

    def _news(self, failing: Mapping[str, Finding], now_ns: int, *, final: bool) -> News | None:
        quiet = now_ns < self._quiet_until_ns and not final
        if not self._first:
            order = sorted(failing.values(), key=began_ns)
            return News("failure", tuple(order), (), len(order)) if order and not quiet else None
        if self._first in self._believed and self._first not in failing and not self._withdrawn:
            # Sent at once: a person may be on the way to the device. But a retry waits like others.
            return None if quiet and self._missed else News("withdrawn", (), (self._about,), len(failing))
        anew = tuple(f for identity, f in failing.items() if identity not in self._believed)
        gone = tuple(words for identity, words in self._believed.items() if identity not in failing)
        if quiet or not (anew or gone) or (self._summaries >= MAX_SUMMARIES and not final):
            return None
        return News("more", anew, gone, len(failing), last=self._summaries == MAX_SUMMARIES - 1 and not final)

    def _remember(self, event: Event) -> None:
        """Takes an event about a message sent before the monitor was restarted."""
        kind = event.detail.get("what", "")
        if event.kind != SENT or kind not in {"failure", "more", "withdrawn"}:
            return
        self._quiet_until_ns = event.begin_ns + PAUSE_NS
        self._summaries += kind == "more"
        if kind == "failure":
            self._first, self._about = event.detail.get("finding", ""), event.detail.get("about", "")
            self._believed = {self._first: self._about}
        if kind == "withdrawn":
            self._withdrawn = True
            self._believed.pop(self._first, None)


def finding_name(finding: Finding) -> str:
    """Names a finding: target, rule and subject."""
    parts = finding.target, finding.rule, subject(finding.metric, finding.object)
    return " ".join(part for part in parts if part)


def began_ns(finding: Finding) -> int:
    """When a finding's failure occurred, UTC ns, as all reports say it; if unknown, when it was found."""
    moment_ns = since_ns(finding)
    return finding.window.end_ns if moment_ns is None else moment_ns

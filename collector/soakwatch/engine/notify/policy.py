"""Which failures a recipient is sent during a run: the first at once, further ones summed up, and those that did not
last withdrawn. No more than that: someone notified fifty times in a night stops reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch.core.formatting import subject
from soakwatch.record.findings import identity_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.causes.when import since_ns

SENT, FAILED = "notify.sent", "notify.failed"
"""The kinds of events that say what became of a notification."""
PAUSE_NS = 30 * 60 * 10**9
"""Later failures are summed up at most so often; what could not be sent is tried again after so long."""
MAX_SUMMARIES = 20
"""The last one says that it is the last before the end of the run."""


@dataclass(frozen=True, slots=True)
class News:
    """What there is to report.

    ``kind``: "failure" is the first one (``findings`` starts with it), "withdrawn" that it no longer holds, "more"
    what else changed since the last message: ``findings`` are newly failing, ``gone`` (in words) no longer fail.
    ``standing`` counts all that fail now; ``last`` says that nothing more is sent before the end.
    """

    kind: str
    findings: tuple[Finding, ...]
    gone: tuple[str, ...]
    standing: int
    last: bool = False


class FailurePolicy:
    """What the recipient knows and what is true now: ``hear`` gives the difference if it is worth a message.

    A message counts only once ``sent`` reports that it arrived; until then nothing else is sent.
    """

    def __init__(self, recorded: Iterable[Event] = ()) -> None:
        self._first = ""  # the identity of the first failure that was sent, and what it is about
        self._about = ""
        self._believed: dict[str, str] = {}  # what fails, as far as the recipient knows: identities, and words
        self._withdrawn = False
        self._summaries = 0
        self._quiet_until_ns = 0
        self._missed = False  # whether the last message could not be sent
        self._under_way: tuple[News, dict[str, str]] | None = None
        for event in recorded:
            self._remember(event)

    def hear(self, findings: Iterable[Finding], now_ns: int, *, final: bool = False) -> News | None:
        """What fails now; ``final`` where the run is over and this is the last word."""
        if self._under_way is not None:
            return None
        failing = {identity_of(f): f for f in findings if f.outcome is Outcome.FAIL}
        news = self._news(failing, now_ns, final=final)
        if news is not None:
            self._under_way = news, {identity: words_of(f) for identity, f in failing.items()}
        return news

    def sent(self, now_ns: int, *, well: bool) -> None:
        """What became of the message that was under way."""
        if self._under_way is None:
            return
        (news, believed), self._under_way = self._under_way, None
        self._quiet_until_ns = now_ns + PAUSE_NS
        self._summaries += news.kind == "more"
        self._missed = not well
        if not well:
            return
        if news.kind == "failure":
            self._first, self._about = identity_of(news.findings[0]), words_of(news.findings[0])
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
            # Sent at once: a person may be on the way to the device. After a try that failed it waits like the rest.
            return None if quiet and self._missed else News("withdrawn", (), (self._about,), len(failing))
        anew = tuple(f for identity, f in failing.items() if identity not in self._believed)
        gone = tuple(words for identity, words in self._believed.items() if identity not in failing)
        if quiet or not (anew or gone) or (self._summaries >= MAX_SUMMARIES and not final):
            return None
        return News("more", anew, gone, len(failing), last=self._summaries == MAX_SUMMARIES - 1 and not final)

    def _remember(self, event: Event) -> None:
        """Take an event of what was sent before the monitor was restarted."""
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


def words_of(finding: Finding) -> str:
    """What a finding is about: target, rule and subject."""
    parts = finding.target, finding.rule, subject(finding.metric, finding.object)
    return " ".join(part for part in parts if part)


def began_ns(finding: Finding) -> int:
    """When the failure of a finding occurred, as all surfaces tell it; where no moment is known, when it was found."""
    moment_ns = since_ns(finding)
    return finding.window.end_ns if moment_ns is None else moment_ns

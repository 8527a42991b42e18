"""The notifications of a run: who gets which message when, and their events in the record."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.engine.notify.message import Kind, Message
from soakwatch.engine.notify.message_text import (
    Where,
    broken_message,
    end_message,
    failure_message,
    more_message,
    start_message,
    withdrawn_message,
)
from soakwatch.engine.notify.policy import FAILED, SENT, FailurePolicy, News
from soakwatch.engine.notify.sending import DeliveryQueue, Sender, Sent
from soakwatch.engine.promises import Promises, notify_action
from soakwatch.plan import Plan
from soakwatch.plan.notify_plan import END, FAILURE, START, NotifyPlan
from soakwatch.runs.catalog import ADDRESS_FILE
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome

if TYPE_CHECKING:
    from soakwatch.judge.verdict import Verdict

FINISH_S = 30.0
"""How long the end of a run waits for its notifications."""
SETTLED_NS = 5 * 10**9
"""The start is sent once the run has lasted this long: the first polls may refuse the plan."""


class Notifying:
    """The recipients of a run. Nothing here raises, and only ``finish`` waits.

    ``recorded`` are the events of messages sent before the monitor was restarted; ``page`` returns the current address
    of the run's page, "" if there is none. ``promises`` hold who was sent the end, so that each gets it once.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        start_ns: int,
        now_ns: Callable[[], int],
        page: Callable[[], str],
        recorded: Sequence[Event] = (),
        promises: Promises | None = None,
    ) -> None:
        self._plan, self._folder, self._start_ns, self._now_ns, self._page = plan, folder, start_ns, now_ns, page
        self._promises = promises or Promises(None)
        self._begun: tuple[int, int] | None = None  # when the start was seen, and the planned end; UTC ns
        self._recipients = [_Recipient(number, planned, recorded) for number, planned in enumerate(plan.notify, 1)]

    def start(self, end_ns: int) -> None:
        """The run begins, planned to end at ``end_ns``; a later call of ``account`` sends the message."""
        self._begun = self._now_ns(), end_ns

    def on_findings(self, findings: Iterable[Finding]) -> None:
        """Takes the current findings; sends what is new to those who want failures."""
        if self._recipients:
            so_far = tuple(findings)
            if self._begun is not None and any(finding.outcome is Outcome.FAIL for finding in so_far):
                self._send_start()  # the start is sent before any failure
            for recipient in self._recipients:
                self._send_failures(recipient, so_far, final=False)

    def account(self) -> list[Event]:
        """Outcomes of messages since the last call, as events for the record. Call it every second."""
        if self._begun is not None and self._now_ns() >= self._begun[0] + SETTLED_NS:
            self._send_start()
        return [
            recipient.event(sent, self._now_ns()) for recipient in self._recipients for sent in recipient.queue.taken()
        ]

    def conclude(self, verdict: Verdict, report: Path, summary: Path) -> None:
        """The run is judged and its report written: sends the verdict; ``summary`` is its Markdown file.

        Skips recipients that an earlier monitor had begun to send it to.
        """
        if self._begun is not None:
            self._send_start()
        text = ""
        for recipient in self._recipients:
            if not self._promises.begin(notify_action(recipient.number)):
                continue
            if END in recipient.planned.on:
                text = text or ("" if recipient.planned.attach == "none" else _read(summary))
                recipient.queue.post(
                    end_message(verdict, self._where(ended=True), recipient.planned.attach, report, text)
                )
            else:
                self._send_failures(recipient, verdict.findings, final=True)

    def broke(self, why: str) -> None:
        """The monitor itself broke: tells those who want the end that there is no verdict."""
        for recipient in self._recipients:
            if END in recipient.planned.on:
                recipient.queue.post(broken_message(self._plan.name, why, self._where(ended=True)))

    def settled(self) -> None:
        """The outcomes of the end's messages are recorded: marks them as done."""
        for recipient in self._recipients:
            action = notify_action(recipient.number)
            if self._promises.in_doubt(action) and not self._promises.is_done(action):
                self._promises.doubts.append(
                    f"notification {recipient.number} to {recipient.planned.to} had been started when the monitor was"
                    " killed and may have been sent: it is not sent again"
                )
            if self._promises.is_begun(action):
                self._promises.done(action)

    @property
    def busy(self) -> bool:
        """True while a message is under way."""
        return any(recipient.queue.busy for recipient in self._recipients)

    def finish(self, longest_s: float = FINISH_S) -> None:
        """Waits for messages under way up to ``longest_s``, then gives them up."""
        deadline = monotonic() + longest_s
        for recipient in self._recipients:
            recipient.queue.wait(deadline)
        self.close()

    def close(self) -> None:
        """Gives up messages under way."""
        for recipient in self._recipients:
            recipient.queue.close()

    def _send_start(self) -> None:
        assert self._begun is not None
        (_, end_ns), self._begun = self._begun, None
        for recipient in self._recipients:
            if START in recipient.planned.on and not recipient.start_sent:
                recipient.queue.post(start_message(self._plan, self._start_ns, end_ns, self._where()))

    def _send_failures(self, recipient: _Recipient, findings: Sequence[Finding], *, final: bool) -> None:
        if FAILURE not in recipient.planned.on:
            return
        news = recipient.policy.news(findings, self._now_ns(), final=final)
        if news is not None:
            recipient.queue.post(self._message(news, final=final))

    def _message(self, news: News, *, final: bool) -> Message:
        run, where = self._plan.name, self._where()
        if news.kind == "failure":
            return failure_message(run, news, self._start_ns, where, final=final)
        if news.kind == "withdrawn":
            return withdrawn_message(run, news, where)
        return more_message(run, news, where, final=final)

    def _where(self, *, ended: bool = False) -> Where:
        """Where to find the run; its own page is gone once it has ended."""
        own = (self._folder / ADDRESS_FILE).is_file()
        return Where(socket.gethostname(), self._folder.absolute(), "" if ended and own else self._page())


class _Recipient:
    """One recipient: what it was sent, and its queue."""

    def __init__(self, number: int, planned: NotifyPlan, recorded: Iterable[Event]) -> None:
        self.planned, self.number = planned, str(number)
        own = [event for event in recorded if event.detail.get("number") == self.number]
        self.start_sent = any(event.detail.get("what") == "start" for event in own)
        self.policy = FailurePolicy(own)
        self.queue = DeliveryQueue(Sender(planned.to))
        self._complaint = ThrottledLog(f"notify {planned.to}")

    def event(self, sent: Sent, now_ns: int) -> Event:
        """The outcome of a message as an event; a failure is also logged, once."""
        message, answer = sent.message, sent.answer
        if message.kind in _OF_FAILURES:
            self.policy.sent(now_ns, well=sent.well)
        detail = {"number": self.number, "to": self.planned.to, "service": answer.service, "what": message.kind}
        if message.finding:
            detail["finding"] = message.finding
        if message.about:
            detail["about"] = message.about
        if sent.well:
            self._complaint.well()
            if message.report is not None:
                detail["attached"] = "report" if answer.attached else "summary"
        else:
            detail |= {"reason": answer.trouble, "tries": str(sent.tries)}
            who = f"{answer.service} did not get" if answer.service else "not delivered:"
            self._complaint.failed(now_ns, f"{who} the message of the {_WORDS[message.kind]}: {answer.trouble}")
        return Event(SENT if sent.well else FAILED, "", "", now_ns, now_ns, detail)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


_OF_FAILURES: frozenset[Kind] = frozenset({"failure", "more", "withdrawn"})
_WORDS: dict[Kind, str] = {
    "start": "start",
    "failure": "first failure",
    "more": "later failures",
    "withdrawn": "withdrawn failure",
    "end": "end",
    "test": "test",
}

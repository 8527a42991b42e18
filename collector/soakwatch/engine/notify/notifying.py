"""The notifications of a run: who hears what and when, and the account of it in the record."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic

from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.engine.notify.courier import DeliveryQueue
from soakwatch.engine.notify.letter import Kind, Message
from soakwatch.engine.notify.sending import Sender, Sent
from soakwatch.engine.notify.telling import FAILED, SENT, News, Telling
from soakwatch.engine.notify.words import (
    Where,
    broken_letter,
    end_letter,
    failure_letter,
    more_letter,
    start_letter,
    withdrawn_letter,
)
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan
from soakwatch.plan.notify import END, FAILURE, START, NotifyPlan
from soakwatch.runs.catalog import ADDRESS_FILE
from soakwatch_rules.rule import Event, Finding

FINISH_S = 30.0
"""How long the end of a run waits for its notifications."""
SETTLED_NS = 5 * 10**9
"""The start is told when the run has lasted so long: a plan that is refused at its first looks has not begun."""


class Notifying:
    """The recipients of a run. Nothing here raises, and nothing waits but ``finish``.

    ``told`` are the events in which an earlier life of the monitor wrote down what it sent; ``page`` gives the address
    of the run's page at the moment, "" if there is none.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        start_ns: int,
        now_ns: Callable[[], int],
        page: Callable[[], str],
        told: Sequence[Event] = (),
    ) -> None:
        self._plan, self._folder, self._start_ns, self._now_ns, self._page = plan, folder, start_ns, now_ns, page
        self._begun: tuple[int, int] | None = None  # when the start was seen, and the planned end
        self._recipients = [_Recipient(number, one, told) for number, one in enumerate(plan.notify, 1)]

    def start(self, end_ns: int) -> None:
        """The run begins, and is planned to end at a time; it is told by one of the next calls of ``account``."""
        self._begun = self._now_ns(), end_ns

    def hear_findings(self, findings: Iterable[Finding]) -> None:
        """What is said of the run so far."""
        if self._recipients:
            said = tuple(findings)
            for one in self._recipients:
                self._tell_failures(one, said, final=False)

    def account(self) -> list[Event]:
        """What became of messages since this was last asked, as events for the record. To be asked every second."""
        if self._begun is not None and self._now_ns() >= self._begun[0] + SETTLED_NS:
            self._tell_start()
        return [one.event(sent, self._now_ns()) for one in self._recipients for sent in one.courier.taken()]

    def conclude(self, verdict: Verdict, report: Path, summary: Path) -> None:
        """The run is judged and its report written: tell the verdict; ``summary`` is the file of it as Markdown."""
        if self._begun is not None:
            self._tell_start()
        text = ""
        for one in self._recipients:
            if END in one.planned.on:
                text = text or ("" if one.planned.attach == "none" else _read(summary))
                one.courier.post(
                    end_letter(verdict, self._start_ns, self._where(ended=True), one.planned.attach, report, text)
                )
            else:
                self._tell_failures(one, verdict.findings, final=True)

    def broke(self, why: str) -> None:
        """The monitor itself broke, and there will be no verdict."""
        for one in self._recipients:
            if END in one.planned.on:
                one.courier.post(broken_letter(self._plan.name, why, self._where(ended=True)))

    @property
    def busy(self) -> bool:
        """Whether a message is on its way."""
        return any(one.courier.busy for one in self._recipients)

    def finish(self, longest_s: float = FINISH_S) -> None:
        """Wait for what is on its way, but not for longer than this; then it is given up."""
        deadline = monotonic() + longest_s
        for one in self._recipients:
            one.courier.wait(deadline)
        self.close()

    def close(self) -> None:
        """Give up what is on its way."""
        for one in self._recipients:
            one.courier.close()

    def _tell_start(self) -> None:
        assert self._begun is not None
        (_, end_ns), self._begun = self._begun, None
        for one in self._recipients:
            if START in one.planned.on and not one.told_start:
                one.courier.post(start_letter(self._plan, self._start_ns, end_ns, self._where()))

    def _tell_failures(self, one: _Recipient, findings: Sequence[Finding], *, final: bool) -> None:
        if FAILURE not in one.planned.on:
            return
        news = one.telling.hear(findings, self._now_ns(), final=final)
        if news is not None:
            one.courier.post(self._letter(news, final=final))

    def _letter(self, news: News, *, final: bool) -> Message:
        run, where = self._plan.name, self._where()
        if news.kind == "failure":
            return failure_letter(run, news, self._start_ns, where, final=final)
        if news.kind == "withdrawn":
            return withdrawn_letter(run, news, where)
        return more_letter(run, news, where, final=final)

    def _where(self, *, ended: bool = False) -> Where:
        """Where the run is found; its own server is gone before anybody reads that it has ended."""
        own = (self._folder / ADDRESS_FILE).is_file()
        return Where(socket.gethostname(), self._folder.absolute(), "" if ended and own else self._page())


class _Recipient:
    """One recipient: what it was told, and the way to it."""

    def __init__(self, number: int, planned: NotifyPlan, told: Iterable[Event]) -> None:
        self.planned, self._number = planned, str(number)
        own = [event for event in told if event.detail.get("number") == self._number]
        self.told_start = any(event.detail.get("what") == "start" for event in own)
        self.telling = Telling(own)
        self.courier = DeliveryQueue(Sender(planned.to))
        self._complaint = ThrottledLog(f"notify {planned.to}")

    def event(self, sent: Sent, now_ns: int) -> Event:
        """What became of a message, for the record; complained of once where it failed."""
        letter, answer = sent.letter, sent.answer
        if letter.kind in _OF_FAILURES:
            self.telling.sent(now_ns, well=sent.well)
        detail = {"number": self._number, "to": self.planned.to, "service": answer.service, "what": letter.kind}
        if letter.finding:
            detail["finding"] = letter.finding
        if letter.about:
            detail["about"] = letter.about
        if sent.well:
            self._complaint.well()
            if letter.report is not None:
                detail["attached"] = "report" if answer.attached else "summary"
        else:
            detail |= {"reason": answer.trouble, "tries": str(sent.tries)}
            who = f"{answer.service} did not get" if answer.service else "nobody got"
            self._complaint.failed(now_ns, f"{who} the message of the {_WORDS[letter.kind]}: {answer.trouble}")
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

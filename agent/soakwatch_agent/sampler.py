"""The agent's own polls: one thread on a fixed time grid puts every poll into the spool, collector or not."""

from __future__ import annotations

import threading
from typing import Optional, Tuple

from soakwatch_agent.agentclock import AgentClock
from soakwatch_agent.context import SECOND
from soakwatch_agent.host import Host
from soakwatch_agent.settings import Settings
from soakwatch_agent.spool import Spool
from soakwatch_agent.wire import encode
from soakwatch_model.sample import NOTHING, Poll, PollOutcome


def passed_over(due: int, last_due: int, step: int) -> int:
    """How many due times between two polls were missed; ns. The grid may have shifted by less than half a step.

    >>> passed_over(3_000_000, 0, 1_000_000), passed_over(1_999_995, 0, 1_000_000), passed_over(999_995, 0, 1_000_000)
    (2, 1, 0)
    """
    return max((2 * (due - last_due) + step) // (2 * step) - 1, 0)


class Sampler:
    """Polls the machine on the time grid of its settings; without settings it does not poll."""

    def __init__(self, clock: AgentClock, spool: Spool, root: str = "/") -> None:
        self._clock, self._spool, self._root = clock, spool, root
        self._wake = threading.Condition()
        self._settings: Optional[Settings] = None
        self._ending = self._at_once = False
        self._last_due = 0
        self._thread = threading.Thread(target=self._work, name="polls", daemon=True)
        self.skipped = 0  # due times missed because the poll before took too long

    @property
    def settings(self) -> Optional[Settings]:
        """What is polled now; None if nothing is."""
        return self._settings

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def set(self, settings: Optional[Settings], *, at_once: bool = False) -> None:
        """Changes the settings from the next due time on, or with ``at_once`` from the last one passed; None stops."""
        with self._wake:
            self._at_once = at_once
            self._settings = settings
            self._wake.notify_all()

    def end(self) -> None:
        """Stops after the running poll, waiting 5 s at most."""
        with self._wake:
            self._ending = True
            self._wake.notify_all()
        self._thread.join(5.0)

    def _work(self) -> None:
        host: Optional[Host] = None
        what: object = None
        while True:
            due_poll = self._next()
            if due_poll is None:
                break
            settings, due = due_poll
            if host is None or what != settings.what:
                if host is not None:
                    host.close()
                host, what = settings.host(self._root), settings.what
            self._spool.append(self._clock.epoch, self._poll(host, due).encode("utf-8", "backslashreplace"))
        if host is not None:
            host.close()

    def _next(self) -> Optional[Tuple[Settings, int]]:
        """Waits for the next due time; None when the sampler ends."""
        with self._wake:
            due: Optional[int] = None
            active: Optional[Settings] = None
            while not self._ending:
                if self._settings is not active:
                    active, due = self._settings, None
                if active is None:
                    self._last_due = 0
                    self._wake.wait()
                    continue
                now = self._clock.now_ns()
                step = active.interval_ns
                if due is None:
                    due = active.due_ns(now) - (step if self._at_once else 0)
                    if due - self._last_due < step // 2:  # the grid shifted a little: this due time was polled already
                        due += step
                    self._at_once = False
                if now >= due:
                    if self._last_due:
                        self.skipped += passed_over(due, self._last_due, step)
                    self._last_due = due
                    return active, due
                self._wake.wait((due - now) / SECOND)
            return None

    def _poll(self, host: Host, due: int) -> str:
        start = self._clock.now_ns()
        try:
            answer = host.poll(start)
            took = self._clock.now_ns() - start
            return encode(Poll(0, due, start, took, PollOutcome.OK, None, answer))
        except Exception as error:  # noqa: BLE001 - a poll that cannot be encoded counts as failed; the next may work
            took = self._clock.now_ns() - start
            sentence = f"the agent's poll failed: {type(error).__name__}"
            return encode(Poll(0, due, start, took, PollOutcome.FAILED, sentence, NOTHING))

"""The agent's own looks: one thread, a fixed grid, every look into the spool, whoever listens or does not."""

from __future__ import annotations

import threading
from typing import Optional, Tuple

from soakwatch_agent.agentclock import AgentClock
from soakwatch_agent.host import Host
from soakwatch_agent.place import SECOND
from soakwatch_agent.sample import NOTHING, Poll, PollOutcome
from soakwatch_agent.settings import Settings
from soakwatch_agent.spool import Spool
from soakwatch_agent.wire import encode


class Sampler:
    """Looks at the machine on the grid of its settings; none are made until it has some."""

    def __init__(self, clock: AgentClock, spool: Spool, root: str = "/") -> None:
        self._clock, self._spool, self._root = clock, spool, root
        self._wake = threading.Condition()
        self._settings: Optional[Settings] = None
        self._ending = self._at_once = False
        self._last_due = 0
        self._thread = threading.Thread(target=self._work, name="looks", daemon=True)
        self.skipped = 0  # due times that a look before them ran over

    @property
    def settings(self) -> Optional[Settings]:
        """What is looked at now."""
        return self._settings

    def begin(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def set(self, settings: Optional[Settings], *, at_once: bool = False) -> None:
        """Looks by other settings from the next due time on, or from the last one that passed; None rests."""
        with self._wake:
            self._at_once = at_once
            self._settings = settings
            self._wake.notify_all()

    def end(self) -> None:
        """Ends after the look that is under way, or without it if it hangs for 5 s."""
        with self._wake:
            self._ending = True
            self._wake.notify_all()
        self._thread.join(5.0)

    def _work(self) -> None:
        host: Optional[Host] = None
        what: object = None
        while True:
            turn = self._next()
            if turn is None:
                break
            settings, due = turn
            if host is None or what != settings.what:
                if host is not None:
                    host.close()
                host, what = settings.host(self._root), settings.what
            self._spool.append(self._clock.epoch, self._look(host, due).encode("utf-8", "backslashreplace"))
        if host is not None:
            host.close()

    def _next(self) -> Optional[Tuple[Settings, int]]:
        """Waits for the next due time; None when all ends."""
        with self._wake:
            due: Optional[int] = None
            meant: Optional[Settings] = None
            while not self._ending:
                if self._settings is not meant:
                    meant, due = self._settings, None
                if meant is None:
                    self._last_due = 0
                    self._wake.wait()
                    continue
                now = self._clock.now_ns()
                step = meant.interval_ns
                if due is None:
                    due = meant.due_ns(now) - (step if self._at_once else 0)
                    if due - self._last_due < step // 2:  # the grid was moved a little: not two looks for one due time
                        due += step
                    self._at_once = False
                if now >= due:
                    if self._last_due and due - self._last_due > step * 3 // 2:
                        self.skipped += (due - self._last_due) // step - 1
                    self._last_due = due
                    return meant, due
                self._wake.wait((due - now) / SECOND)
            return None

    def _look(self, host: Host, due: int) -> str:
        start = self._clock.now_ns()
        try:
            answer = host.look(start)
            took = self._clock.now_ns() - start
            return encode(Poll(0, due, start, took, PollOutcome.OK, None, answer))
        except Exception as error:  # noqa: BLE001 - a look that cannot be told is told as failed; the next may work
            took = self._clock.now_ns() - start
            sentence = f"the agent's look failed: {type(error).__name__}"
            return encode(Poll(0, due, start, took, PollOutcome.FAILED, sentence, NOTHING))

"""Sends by a process of its own with a time limit per try, and retries if that may help; the queue of each recipient
has a thread that sends, so that nothing else waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.core.supervised_child import Child, python_module
from soakwatch.engine.notify.message import Answer, Message, answer_of, order_line

DEADLINE_S = 20.0
"""Time limit of one try."""
PAUSES_S = (2.0, 8.0)
"""Pauses between tries: there is one more try than pauses."""
MAX_WAITING = 8
GIVEN_UP = "given up: the run was over"


@dataclass(frozen=True, slots=True)
class Sent:
    """The outcome of a message. ``tries`` is 0 if it was given up before the first."""

    message: Message
    answer: Answer
    tries: int

    @property
    def well(self) -> bool:
        """True if the service accepted it."""
        return not self.answer.trouble


class Sender:
    """Sends to one reference, one message after the other; ``give_up`` may be called from another thread."""

    def __init__(self, to: str, deadline_s: float = DEADLINE_S, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._to, self._deadline_s, self._pauses_s = to, deadline_s, tuple(pauses_s)
        self._over, self._guard = threading.Event(), threading.Lock()
        self._child: Child | None = None

    def check(self) -> Answer:
        """What the service is, or what is wrong with its address; sends nothing."""
        return self._ask(None)

    def send(self, message: Message) -> Sent:
        """Sends it in at most ``len(pauses_s) + 1`` tries."""
        answer, tries = Answer(trouble=GIVEN_UP), 0
        for pause_s in (*self._pauses_s, None):
            if self._over.is_set():
                break
            earlier, answer, tries = answer, self._ask(message), tries + 1
            if answer.trouble == GIVEN_UP and tries > 1:
                answer = earlier  # the service's own answer says more than that the retry was given up
            if not answer.trouble or not answer.again or pause_s is None:
                break
            self._over.wait(pause_s)
        return Sent(message, answer, tries)

    def give_up(self) -> None:
        """Sends nothing more; kills the try that is running."""
        self._over.set()
        with self._guard:
            if self._child is not None:
                self._child.kill()

    def _ask(self, message: Message | None) -> Answer:
        try:
            with self._guard:
                if self._over.is_set():
                    return Answer(trouble=GIVEN_UP)
                self._child = child = Child(python_module("soakwatch.engine.notify"))
        except OSError as error:
            return Answer(trouble=f"no process can be started to send it: {error.strerror}", again=True)
        try:
            printed = child.exchange(order_line(self._to, message) + "\n", self._deadline_s)
        except TimeoutError:
            return Answer(trouble=f"it did not answer within {self._deadline_s:g} s", again=True)
        if self._over.is_set() and not printed:
            return Answer(trouble=GIVEN_UP)
        with suppress(ValueError):
            return answer_of(printed)
        return Answer(trouble=f"the sending process ended with exit code {child.exit_code}", again=True)


class DeliveryQueue:
    """The messages to one recipient. ``post`` never waits; ``taken`` returns what became of them."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._waiting: deque[Message] = deque()
        self._done: deque[Sent] = deque()
        self._changed = threading.Condition()
        self._under_way = self._over = False
        self._thread: threading.Thread | None = None

    def post(self, message: Message) -> None:
        """Queues a message to be sent after those before it."""
        with self._changed:
            if self._over or len(self._waiting) >= MAX_WAITING:
                self._done.append(Sent(message, Answer(trouble="too many messages are queued before it"), 0))
                return
            self._waiting.append(message)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def taken(self) -> list[Sent]:
        """The messages sent or given up since the last call."""
        with self._changed:
            done = list(self._done)
            self._done.clear()
            return done

    @property
    def busy(self) -> bool:
        """True while a message is being sent or queued."""
        with self._changed:
            return self._under_way or bool(self._waiting)

    def wait(self, deadline: float) -> bool:
        """Waits until no message is under way, at most until ``deadline`` (``time.monotonic``); whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._under_way or self._waiting), max(0.0, deadline - time.monotonic())
            )

    def close(self) -> None:
        """Gives up queued and running messages; ``taken`` reports them so."""
        with self._changed:
            self._over = True
            self._done.extend(Sent(message, Answer(trouble=GIVEN_UP), 0) for message in self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        self._sender.give_up()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or bool(self._waiting))
                if self._over:
                    return
                message = self._waiting.popleft()
                self._under_way = True
            sent = self._sender.send(message)
            with self._changed:
                self._done.append(sent)
                self._under_way = False
                self._changed.notify_all()

"""Delivers messages to one recipient: its own thread sends them one by one, so that nothing else waits."""

from __future__ import annotations

import threading
import time
from collections import deque

from soakwatch.engine.notify.message import Answer, Message
from soakwatch.engine.notify.sending import GIVEN_UP, Sender, Sent

MAX_WAITING = 8


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

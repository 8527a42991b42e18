"""How much is requested at once: learnt from what the agent, the network and the library can take. Arithmetic only.

What is lost for its size looks like any other loss, so an amount that was lowered is tried again after ten minutes,
and then each time only after twice as long: a network that drops large datagrams costs few polls in three days.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RETRY_S = 600.0
_MAX_COLUMNS = 1000


@dataclass(slots=True)
class Amount:
    """One amount: at most ``max_amount``, now ``now``."""

    max_amount: int
    now: int
    _wait_s: float = RETRY_S
    _retry_s: float = 0.0

    def less(self, size: int, now_s: float, *, least: int = 1) -> None:
        """What was lost or refused was of this size: half of it, for a while.

        >>> amount = Amount(40, 40)
        >>> amount.less(40, 0.0)
        >>> amount.now, amount.whole(599.0), amount.whole(600.0)
        (20, 20, 40)
        """
        self.now = max(least, size // 2)
        if now_s >= self._retry_s:  # a row of halvings is one lesson
            self._retry_s, self._wait_s = now_s + self._wait_s, self._wait_s * 2

    def whole(self, now_s: float) -> int:
        """The amount to use; all of it once the while is over."""
        if now_s >= self._retry_s:
            self.now = max(self.now, self.max_amount)
        return self.now

    def more(self, now_s: float) -> None:
        """There was room for more: half as much again, unless it was too much not long ago.

        >>> amount = Amount(50, 20)
        >>> amount.more(0.0)
        >>> amount.now
        31
        """
        if now_s >= self._retry_s:
            self.now = min(self.max_amount, self.now + self.now // 2 + 1)

    def forgive(self) -> None:
        """It was one object, not the amount."""
        self.now, self._retry_s, self._wait_s = self.max_amount, 0.0, RETRY_S


@dataclass(slots=True)
class Columns:
    """How many rows of a column fit into an answer, where it was seen that fewer do than elsewhere."""

    fit: dict[str, int] = field(default_factory=dict)

    def rows(self, oid: str, amount: int) -> int:
        """How many to ask for."""
        return min(amount, self.fit.get(oid, amount))

    def less(self, oid: str, size: int) -> None:
        """So many did not fit."""
        if oid in self.fit or len(self.fit) < _MAX_COLUMNS:
            self.fit[oid] = max(1, size // 2)

"""SetAside: impossible readings of one series, which no rule saw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetAside:
    """``count`` of the ``of`` readings of a series in [begin_ns, end_ns] are impossible; ``why`` has the first reasons,
    a phrase each.

    ``undecided`` says why the rest of the series cannot pass (too many, or something may hide there); empty if the
    neighbouring readings show what was counted.
    """

    target: str
    metric: str
    object: str
    count: int
    of: int
    begin_ns: int
    end_ns: int
    why: tuple[str, ...]
    undecided: str = ""

    @property
    def text(self) -> str:
        """One sentence without full stop.

        >>> SetAside("fw", "queue.dropped", "queue=0", 1, 60, 0, 0, ("it fell to 0 and was back",)).text
        '1 of 60 readings of queue.dropped queue=0 was set aside: it cannot be (it fell to 0 and was back)'
        """
        were, they = ("was", "it") if self.count == 1 else ("were", "they")
        name = f"{self.metric} {self.object}".rstrip()
        return (
            f"{self.count} of {self.of} readings of {name} {were} set aside: {they} cannot be ({'; '.join(self.why)})"
        )

"""SetAside: readings of one series that cannot be, and that no rule saw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetAside:
    """``count`` of the ``of`` readings of a series, in [begin_ns, end_ns], with ``why`` they cannot be: a phrase for
    each way, the first ones.

    ``undecided`` says why nothing passes by what is left of the series: too many, or something may hide where they
    were; empty where what was really counted is known from the readings around them.
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
        """One sentence without its full stop.

        >>> SetAside("fw", "queue.dropped", "queue=0", 1, 60, 0, 0, ("it fell to 0 and was back",)).text
        '1 of 60 readings of queue.dropped queue=0 was set aside: it cannot be (it fell to 0 and was back)'
        """
        were, they = ("was", "it") if self.count == 1 else ("were", "they")
        name = f"{self.metric} {self.object}".rstrip()
        return (
            f"{self.count} of {self.of} readings of {name} {were} set aside: {they} cannot be ({'; '.join(self.why)})"
        )

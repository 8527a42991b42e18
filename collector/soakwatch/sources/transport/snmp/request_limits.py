"""How much is asked for at once, and which objects not at all: learnt from what the agent, the way to it and the
library can take. Values and arithmetic only.

What is lost for its size looks like any other loss, so an amount that was lowered is tried again after ten minutes,
and then each time only after twice as long: a network that drops large datagrams costs few polls in three days.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from soakwatch.sources.transport.snmp.snmp_connection import Value
from soakwatch.sources.transport.snmp.snmp_errors import NO_SUCH_NAME, TOO_BIG, FailureKind, SnmpPollError, status_name

RETRY_S = 600.0
_MAX_REPETITIONS = 150  # of a table that has more rows: some 3 kB of counters, which gufo-snmp has room for
_MAX_COLUMNS = 1000
_MAX_OVERSIZED = 1000
_MAX_REFUSALS = 10_000
_MAX_ANSWERED = 1000
_CHANCES = 3
_SMALL = 8  # a request of so few objects was not lost for its size
_LONG = 1500  # bytes of a value that may be too much for an answer of SNMPv3 (gufo-snmp takes 2048)
Batch = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Amount:
    """One amount: at most ``max_amount``, now ``now``."""

    max_amount: int
    now: int
    wait_s: float = RETRY_S
    retry_s: float = 0.0

    def less(self, size: int, now_s: float, *, least: int = 1) -> Amount:
        """What was lost or refused was of this size: half of it, for a while.

        >>> amount = Amount(40, 40).less(40, 0.0)
        >>> amount.now, amount.whole(599.0).now, amount.whole(600.0).now
        (20, 20, 40)
        """
        now = max(least, size // 2)
        if now_s < self.retry_s:  # a row of halvings is one lesson
            return replace(self, now=now)
        return replace(self, now=now, retry_s=now_s + self.wait_s, wait_s=self.wait_s * 2)

    def whole(self, now_s: float) -> Amount:
        """The amount to use; all of it once the while is over."""
        return replace(self, now=self.max_amount) if now_s >= self.retry_s and self.now < self.max_amount else self

    def more(self, now_s: float) -> Amount:
        """There was room for more: half as much again, unless it was too much not long ago.

        >>> Amount(50, 20).more(0.0).now
        31
        """
        return self if now_s < self.retry_s else replace(self, now=min(self.max_amount, self.now + self.now // 2 + 1))


@dataclass(slots=True)
class AnsweredSizes:
    """What was answered at its size before, by its first object: if it is lost now, its size is not the reason.

    >>> sizes = AnsweredSizes()
    >>> sizes.answered("1.1", 40)
    >>> [sizes.by_chance("1.1", 40) for _ in range(4)], sizes.by_chance("1.2", 40)
    ([True, True, True, False], False)
    """

    _known: dict[str, tuple[int, int]] = field(default_factory=dict)  # the size, and how often it was lost since

    def answered(self, first: str, size: int) -> None:
        """A request for so many objects, or rows, from this one on was answered."""
        if self._known.get(first) != (size, 0) and (first in self._known or len(self._known) < _MAX_ANSWERED):
            self._known[first] = size, 0

    def by_chance(self, first: str, size: int) -> bool:
        """They are lost, with all repeats: whether to ask the same again. ``_CHANCES`` times in a row at most, for the
        path may have changed."""
        if first not in self._known:
            return False
        known, lost = self._known[first]
        self._known[first] = known, lost + 1
        return size <= known and lost < _CHANCES


@dataclass(frozen=True, slots=True)
class Limits:
    """What one agent is asked for. Each method that takes a failure raises it where asking for less would not help.

    ``switches`` says that pysnmp may be asked for what gufo-snmp cannot read: those objects and columns are ``beyond``.
    """

    objects: Amount  # of a GET
    repetitions: Amount  # of a GETBULK
    switches: bool
    beyond: frozenset[str] = frozenset()
    columns: Mapping[str, int] = field(default_factory=dict)  # rows of those of which fewer fit into an answer
    refused: Mapping[str, str] = field(default_factory=dict)  # object -> why it is not to be had

    def batches(self, oids: Iterable[str], now_s: float) -> tuple[Limits, list[Batch]]:
        """The requests for some objects; those that make trouble are asked for one by one."""
        objects = self.objects.whole(now_s)
        limits = self if objects is self.objects else replace(self, objects=objects)
        return limits, batches(oids, objects.now, {*self.refused, *self.beyond})

    def rows(self, oid: str) -> int:
        """How many rows of a column to ask for."""
        return min(self.repetitions.now, self.columns.get(oid, self.repetitions.now))

    # --- GET ----------------------------------------------------------------------------------------------

    def answered(self, batch: Batch, answer: Mapping[str, Value]) -> Limits:
        """A request was answered: nothing of it is refused, and a value that was large may have become small."""
        limits = self
        if len(batch) == 1 and batch[0] in self.beyond and not _long(answer.get(batch[0])):
            limits = replace(limits, beyond=self.beyond - {*batch})
        again = self.refused and any(oid in self.refused for oid in batch)
        return limits.with_refusals({}, batch) if again else limits

    def hidden(self, batch: Batch, now_s: float) -> tuple[Limits, list[Batch]]:
        """An answer without any object, whose error-status encryption hides: what to ask next."""
        if len(batch) == 1:
            return self._lone(batch[0], "an error that encryption hides")
        return replace(self, objects=self.objects.less(len(batch), now_s)), halves(batch)  # it may have been tooBig

    def failed(self, batch: Batch, failure: SnmpPollError, now_s: float, *, alive: bool) -> tuple[Limits, list[Batch]]:
        """A request failed: what to ask next. ``alive``: the agent has answered before, and there is time."""
        if failure.status == TOO_BIG or failure.kind is FailureKind.TOO_LARGE:
            if len(batch) == 1:
                return self._lone(batch[0], "its value is too large for an answer", there=not failure.status)
            return replace(self, objects=self.objects.less(len(batch), now_s)), halves(batch)
        if failure.status:
            rest, culprit = without(batch, failure)
            if culprit is None:
                return self, rest
            # An error, and nothing large: the fast library sees it as well.
            limits = replace(self, beyond=self.beyond - {culprit})
            return limits.with_refusals({culprit: status_name(failure.status)}), rest
        if not alive:
            raise failure
        if failure.kind is FailureKind.NO_ANSWER and len(batch) > _SMALL:
            return replace(self, objects=self.objects.less(len(batch), now_s, least=_SMALL)), halves(batch)
        if failure.kind is FailureKind.NO_ANSWER and batch[0] in self.beyond:
            return self.with_refusals({batch[0]: "its answer is so large that it is lost on the way"}), []
        if failure.kind is FailureKind.MALFORMED:  # one value that cannot be read spoils the whole answer
            refused = {batch[0]: "its value cannot be read"} if len(batch) == 1 else {}
            return self.with_refusals(refused), halves(batch)
        raise failure

    def _lone(self, oid: str, why: str, *, there: bool = False) -> tuple[Limits, list[Batch]]:
        """One object that gufo-snmp cannot read: pysnmp is asked for it, once or whenever a value is known to be
        ``there``; if that fails as well, the object is refused."""
        known, limits = oid in self.refused, self
        if not known:  # it was one object, not the amount
            limits = replace(self, objects=Amount(self.objects.max_amount, self.objects.max_amount))
        if (there or not known) and (switched := limits.switched(oid)):
            return switched, [(oid,)]
        return (limits if known else limits.with_refusals({oid: why})), []

    def with_refusals(self, refused: Mapping[str, str], allowed: Container[str] = ()) -> Limits:
        """Some more objects are refused, and others not any more; beyond a number all are tried anew."""
        kept = self.refused if len(self.refused) < _MAX_REFUSALS else {}
        return replace(self, refused={oid: why for oid, why in kept.items() if oid not in allowed} | dict(refused))

    def switched(self, oid: str) -> Limits | None:
        """An object or a column is left to pysnmp; None if it is already, or may not be."""
        if not self.switches or oid in self.beyond or len(self.beyond) >= _MAX_OVERSIZED:
            return None
        columns = {other: rows for other, rows in self.columns.items() if other != oid}
        return replace(self, beyond=self.beyond | {oid}, columns=columns)

    # --- walks --------------------------------------------------------------------------------------------

    def quick(self, now_s: float) -> Limits:
        """A whole answer came so soon that it could have been longer."""
        return replace(self, repetitions=self.repetitions.more(now_s))

    def lighter(self, oid: str, asked: int, failure: SnmpPollError, now_s: float, *, alive: bool) -> Limits:
        """A walk failed that asked for so many rows at once: the next attempt asks for less."""
        if failure.status == TOO_BIG or failure.kind is FailureKind.TOO_LARGE:
            if asked > 1:
                room = oid in self.columns or len(self.columns) < _MAX_COLUMNS
                return replace(self, columns={**self.columns, oid: max(1, asked // 2)}) if room else self
            if switched := self.switched(oid):
                return switched
        elif failure.kind is FailureKind.NO_ANSWER and alive and asked > 1:
            return replace(self, repetitions=self.repetitions.less(asked, now_s))
        raise failure


def limits_at_first(objects: int, repetitions: int, *, switches: bool) -> Limits:
    """What an agent is asked for that nothing is known of."""
    most = Amount(max(_MAX_REPETITIONS, repetitions), repetitions)
    return Limits(Amount(objects, objects), most, switches)


def batches(oids: Iterable[str], max_objects: int, lone: Container[str]) -> list[Batch]:
    """Requests of at most ``max_objects`` objects; those in ``lone`` are asked one by one, at the end.

    >>> batches(["1.1", "1.2", "1.3", "1.2"], 2, {"1.1"})
    [('1.2', '1.3'), ('1.1',)]
    """
    wanted = list(dict.fromkeys(oids))
    calm = [oid for oid in wanted if oid not in lone]
    return [tuple(calm[start : start + max_objects]) for start in range(0, len(calm), max_objects)] + [
        (o,) for o in wanted if o in lone
    ]


def halves(batch: Batch) -> list[Batch]:
    """Two requests instead of one; nothing of a single object."""
    middle = (len(batch) + 1) // 2
    return [batch[:middle], batch[middle:]] if len(batch) > 1 else []


def without(batch: Batch, failure: SnmpPollError) -> tuple[list[Batch], str | None]:
    """What is left to ask after an error-status, and the object that is refused for it.

    The index of the answer names the object; if it does not, the batch is halved until one object is left. A missing
    object is an error in v1 (noSuchName), and is no refusal. Raises the failure if access is denied as a whole.
    """
    if 1 <= failure.index <= len(batch):
        culprit = batch[failure.index - 1]
        rest = tuple(oid for oid in batch if oid != culprit)
        return [rest] if rest else [], None if failure.status == NO_SUCH_NAME else culprit
    if failure.kind is FailureKind.DENIED:
        raise failure
    return halves(batch), batch[0] if len(batch) == 1 and failure.status != NO_SUCH_NAME else None


def _long(value: Value | None) -> bool:
    return isinstance(value, bytes | str) and len(value) > _LONG

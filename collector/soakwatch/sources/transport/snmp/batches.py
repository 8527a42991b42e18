"""How a GET of many objects is cut into requests, and what of one that failed is asked again. Arithmetic only."""

from __future__ import annotations

from collections.abc import Container, Iterable

from soakwatch.sources.transport.snmp.errors import NO_SUCH_NAME, Kind, SnmpPollError

Batch = tuple[str, ...]


def batches(oids: Iterable[str], most: int, lone: Container[str]) -> list[Batch]:
    """Requests of at most ``most`` objects; those in ``lone`` (refused before) are asked one by one, at the end.

    >>> batches(["1.1", "1.2", "1.3", "1.2"], 2, {"1.1"})
    [('1.2', '1.3'), ('1.1',)]
    """
    wanted = list(dict.fromkeys(oids))
    calm = [oid for oid in wanted if oid not in lone]
    return [tuple(calm[at : at + most]) for at in range(0, len(calm), most)] + [(o,) for o in wanted if o in lone]


def halves(batch: Batch) -> list[Batch]:
    """Two requests instead of one; nothing of a single object."""
    middle = (len(batch) + 1) // 2
    return [part for part in (batch[:middle], batch[middle:]) if part] if len(batch) > 1 else []


def without(batch: Batch, failure: SnmpPollError) -> tuple[list[Batch], str | None]:
    """What is left to ask after an error-status, and the object that is refused for it.

    The index of the answer names the object; if it does not, the batch is halved until one object is left. A missing
    object is an error in v1 (noSuchName), and is no refusal. Raises the failure if access is denied as a whole.
    """
    if 1 <= failure.index <= len(batch):
        culprit = batch[failure.index - 1]
        rest = tuple(oid for oid in batch if oid != culprit)
        return [rest] if rest else [], None if failure.status == NO_SUCH_NAME else culprit
    if failure.kind is Kind.DENIED:
        raise failure
    return halves(batch), batch[0] if len(batch) == 1 and failure.status != NO_SUCH_NAME else None

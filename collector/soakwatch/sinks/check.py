"""Checks the sinks of a plan before a run needs them: the server, the certificate, the token and the bucket."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.sinks.abc import Destination, SinkUnavailableError

MAX_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class SinkCheck:
    """The result of a check: ``error`` is one sentence with the remedy (None: lines would be taken), and ``wrong``
    says that waiting does not help."""

    where: str
    error: str | None = None
    wrong: bool = False


def check_sinks(sinks: Iterable[Destination]) -> tuple[SinkCheck, ...]:
    """Check all of them at the same time; nothing is written."""
    all_sinks = tuple(sinks)
    if not all_sinks:
        return ()
    with ThreadPoolExecutor(max_workers=min(8, len(all_sinks))) as pool:
        return tuple(pool.map(_check, all_sinks))


def _check(to: Destination) -> SinkCheck:
    try:
        sink = to.open(lambda _: None, MAX_TIMEOUT_S)
    except PlanError as error:
        return SinkCheck(to.where, str(error), wrong=True)
    try:
        sink.try_out()
    except SinkUnavailableError as error:
        return SinkCheck(to.where, str(error), error.wrong)
    finally:
        sink.close()
    return SinkCheck(to.where)

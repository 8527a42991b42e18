"""Checks a plan's sinks before the run: server, certificate, token and bucket."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.transfer.sinks.abc import Destination, SinkUnavailableError

MAX_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class SinkCheck:
    """``error`` is one sentence with the remedy (None: lines would be accepted); ``wrong``: waiting does not help."""

    where: str
    error: str | None = None
    wrong: bool = False


def check_sinks(sinks: Iterable[Destination]) -> tuple[SinkCheck, ...]:
    """Check all of them concurrently, without writing."""
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

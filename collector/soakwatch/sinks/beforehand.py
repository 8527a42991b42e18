"""A look at the sinks of a plan before a run needs them: the server, the certificate, the token and the bucket."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from soakwatch.core.errors import PlanError
from soakwatch.plan.sink import Influxdb
from soakwatch.sinks.influxdb.write import Passing, Writer

LONGEST_S = 10.0


@dataclass(frozen=True, slots=True)
class SinkLook:
    """What came of a look: ``trouble`` is one sentence with the remedy (None: all is well), and ``wrong`` says that
    waiting does not mend it."""

    where: str
    trouble: str | None = None
    wrong: bool = False


def look_at_sinks(sinks: Iterable[Influxdb]) -> tuple[SinkLook, ...]:
    """A look at each of them, at the same time; nothing is written."""
    all_sinks = tuple(sinks)
    if not all_sinks:
        return ()
    with ThreadPoolExecutor(max_workers=min(8, len(all_sinks))) as pool:
        return tuple(pool.map(_look, all_sinks))


def _look(to: Influxdb) -> SinkLook:
    where = f"{to.url} {to.org}/{to.bucket}"
    try:
        writer = Writer(replace(to, timeout_s=min(to.timeout_s, LONGEST_S)), lambda _: None)
    except PlanError as error:
        return SinkLook(where, str(error), wrong=True)
    try:
        writer.try_out()
    except Passing as passing:
        return SinkLook(where, str(passing), passing.wrong)
    finally:
        writer.close()
    return SinkLook(where)

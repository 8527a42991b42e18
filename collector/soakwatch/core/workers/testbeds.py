"""Testbeds as resources of an executor: a worker started with ``--resources "testbed-NAME=1"`` has one."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch.core.workers.executor import ClusterError, Executor

_PREFIX = "testbed-"


def testbed_resource(name: str) -> str:
    """The resource that a run on the testbed holds; "" for none.

    >>> testbed_resource("a"), testbed_resource("")
    ('testbed-a', '')
    """
    return f"{_PREFIX}{name}" if name else ""


def require_testbeds(executor: Executor, names: Iterable[str]) -> None:
    """Raises ClusterError if no worker has a testbed, naming those that exist."""
    there = executor.resources()
    if there is None:
        return
    missing = [name for name in names if testbed_resource(name) not in {*there, ""}]
    if missing:
        known = sorted(name.removeprefix(_PREFIX) for name in there if name.startswith(_PREFIX))
        have = f"there are {', '.join(known)}" if known else "no worker has any"
        raise ClusterError(
            f"no worker has the testbed {' or '.join(missing)}: {have};"
            f' start one with dask worker … --resources "{testbed_resource(missing[0])}=1"'
        )

"""Runs of a campaign and judging of records on the workers of a dask scheduler: ``--on dask://HOST:8786``."""

from __future__ import annotations

import re
from typing import Final

from soakwatch.core.workers.executor import ClusterError, Executor

SCHEMES: Final = {"dask": "tcp", "tcp": "tcp", "dask+tls": "tls", "tls": "tls"}
PORT: Final = 8786
"""The default port of a scheduler."""
ADDRESSES: Final = f"dask://HOST:{PORT}, or tls://HOST:{PORT}"
_ADDRESS = re.compile(r"([a-z+]+)://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?/?")


def connect(on: str) -> Executor:
    """Connect to the cluster of a scheduler. Raises ClusterError."""
    address = scheduler_address(on)
    from soakwatch_dask.cluster import DaskCluster

    return DaskCluster.connect(address)


def scheduler_address(on: str) -> str:
    """The address in the form that distributed takes. Raises ClusterError.

    >>> scheduler_address("dask://lab7"), scheduler_address("dask+tls://lab7:9000"), scheduler_address("tls://[::1]:9")
    ('tcp://lab7:8786', 'tls://lab7:9000', 'tls://[::1]:9')
    """
    match = _ADDRESS.fullmatch(on)
    if match is None or match[1] not in SCHEMES or not 0 < int(match[3] or PORT) < 65536:
        raise ClusterError(f"{on!r} is no address of a scheduler: write {ADDRESSES}")
    return f"{SCHEMES[match[1]]}://{match[2]}:{match[3] or PORT}"

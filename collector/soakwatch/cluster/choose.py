"""Where ``--on`` says that work is done."""

from __future__ import annotations

import re

from soakwatch.cluster.executor import ClusterError, Executor
from soakwatch.cluster.local import LocalProcesses

SCHEMES = {"dask": "tcp", "tcp": "tcp", "dask+tls": "tls", "tls": "tls"}
PORT = 8786
"""On which a scheduler listens unless it is told otherwise."""
_ADDRESS = re.compile(r"([a-z+]+)://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?/?")


def executor_for(on: str | None, jobs: int | None = None) -> Executor:
    """The executor that ``on`` names (``dask://HOST:8786``, ``tls://HOST``); None: at most ``jobs`` processes of this
    machine. Raises ClusterError: no such address, library missing, nobody there, other versions there."""
    if on is None:
        return LocalProcesses(jobs)
    address = scheduler_address(on)
    from soakwatch.cluster.dask import DaskCluster

    return DaskCluster.connect(address)


def scheduler_address(on: str) -> str:
    """The address as distributed writes it. Raises ClusterError.

    >>> scheduler_address("dask://lab7"), scheduler_address("dask+tls://lab7:9000"), scheduler_address("tls://[::1]:9")
    ('tcp://lab7:8786', 'tls://lab7:9000', 'tls://[::1]:9')
    """
    match = _ADDRESS.fullmatch(on)
    if match is None or match[1] not in SCHEMES or not 0 < int(match[3] or PORT) < 65536:
        raise ClusterError(f"{on!r} is no address of a scheduler: write dask://HOST:{PORT}, or tls://HOST:{PORT}")
    return f"{SCHEMES[match[1]]}://{match[2]}:{match[3] or PORT}"

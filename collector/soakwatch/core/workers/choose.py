"""Chooses the executor that ``--on`` names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, cast

from soakwatch.core.registry import INSTALLED, not_installed
from soakwatch.core.workers.executor import ClusterError, Executor
from soakwatch.core.workers.local import LocalProcesses


class ExecutorModule(Protocol):
    """What a module of the entry-point group ``soakwatch.executors`` has."""

    SCHEMES: Collection[str]
    """Schemes of its addresses, without ``://``."""
    ADDRESSES: str
    """An example address for errors: ``dask://HOST:8786``."""

    def connect(self, on: str) -> Executor:
        """The executor at an address of one of the schemes. Raises ClusterError."""
        ...


def executor_for(on: str | None, jobs: int | None = None) -> Executor:
    """The executor at address ``on`` (``dask://HOST:8786``, ``tls://HOST``); None: up to ``jobs`` processes of this
    machine. Raises ClusterError: bad address, plug-in missing, no answer, other versions."""
    if on is None:
        return LocalProcesses(jobs)
    executors = INSTALLED.executors
    installed = [cast("ExecutorModule", executors.module(name)) for name in executors.names()]
    if not installed:
        raise ClusterError(f"--on {on}: {not_installed('dask')}")
    for module in installed:
        if on.partition("://")[0] in module.SCHEMES:
            return module.connect(on)
    written = ", or ".join(module.ADDRESSES for module in installed)
    raise ClusterError(f"{on!r} is no address of a scheduler: write {written}")

"""Where ``--on`` says that work is done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, cast

from soakwatch.core.registry import INSTALLED, not_installed
from soakwatch.core.workers.executor import ClusterError, Executor
from soakwatch.core.workers.local import LocalProcesses


class ExecutorModule(Protocol):
    """What a module of the entry-point group ``soakwatch.executors`` holds."""

    SCHEMES: Collection[str]
    """What its addresses begin with, without ``://``."""
    ADDRESSES: str
    """How they are written, for an error: ``dask://HOST:8786``."""

    def connect(self, on: str) -> Executor:
        """The executor at an address with one of the schemes. Raises ClusterError."""
        ...


def executor_for(on: str | None, jobs: int | None = None) -> Executor:
    """The executor that ``on`` names (``dask://HOST:8786``, ``tls://HOST``); None: at most ``jobs`` processes of this
    machine. Raises ClusterError: no such address, plug-in missing, nobody there, other versions there."""
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
